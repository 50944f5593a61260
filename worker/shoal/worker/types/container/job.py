"""What a CONTAINER task is in Kubernetes: a Job of one pod, and what belongs to it."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from shoal.worker.types.container.kind import INSIDE, ContainerParams, Registry, size
from shoal.worker.types.kubernetes.client import TAG

ATTEMPT = "shoal-attempt"  # label
OUTPUT = "/dev/termination-log"  # whose text Kubernetes shows with the end
MOST_OUTPUT = 4096  # bytes; Kubernetes cuts what is longer
_PULL = {"missing": "IfNotPresent", "always": "Always", "never": "Never"}
_KEPT_S = 24 * 3600  # a Job that no attempt ends, once it has ended by itself
_DEFAULT_REGISTRY = "https://index.docker.io/v1/"
_READABLE = 0o444


def job(
    params: ContainerParams,
    labels: Mapping[str, str],
    environment: Mapping[str, str],
    files: Mapping[str, str],
    *,
    grace_s: float,
    deadline_s: float | None,
) -> dict[str, Any]:
    """Return a Job whose one container runs once. ``labels`` hold its tag, which is its name.

    The texts of ``files`` are in a Secret (``secret``): a person who may only look at pods does
    not see them.
    """
    name = labels[TAG]
    spec = {
        "backoffLimit": 0,
        "completions": 1,
        "parallelism": 1,
        "ttlSecondsAfterFinished": _KEPT_S,
        "template": {
            "metadata": {"labels": dict(labels)},
            "spec": _pod(params, labels, environment, files, grace_s),
        },
    }
    if deadline_s is not None:
        spec["activeDeadlineSeconds"] = round(deadline_s)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": spec,
    }


def _pod(
    params: ContainerParams,
    labels: Mapping[str, str],
    environment: Mapping[str, str],
    files: Mapping[str, str],
    grace_s: float,
) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": max(1, round(grace_s)),
        "enableServiceLinks": False,
        "automountServiceAccountToken": bool(params.service_account),
        "containers": [_container(params, environment)],
        "volumes": [
            {
                "name": "shoal",
                "secret": {
                    "secretName": secret_name(labels),
                    "defaultMode": _READABLE,
                    "items": [{"key": _key(path), "path": path} for path in files],
                },
            }
        ],
    }
    if params.service_account:
        pod["serviceAccountName"] = params.service_account
    if params.registry is not None:
        pod["imagePullSecrets"] = [{"name": registry_name(labels)}]
    return pod


def _container(params: ContainerParams, environment: Mapping[str, str]) -> dict[str, Any]:
    security: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if params.user:
        user, _, group = params.user.partition(":")
        security["runAsUser"] = int(user)
        if group:
            security["runAsGroup"] = int(group)
    limits: dict[str, str] = {}
    if params.cpus:
        limits["cpu"] = f"{round(params.cpus * 1000)}m"
    if params.memory:
        limits["memory"] = str(size(params.memory))
    container: dict[str, Any] = {
        "name": "task",
        "image": params.image,
        "imagePullPolicy": _PULL[params.pull],
        "env": [{"name": name, "value": _literal(text)} for name, text in environment.items()],
        "securityContext": security,
        "resources": {"limits": limits},
        "terminationMessagePath": OUTPUT,
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"name": "shoal", "mountPath": INSIDE, "readOnly": True}],
    }
    if params.command:
        container["command"] = [_literal(text) for text in params.command]
    if params.arguments:
        container["args"] = [_literal(text) for text in params.arguments]
    if params.working_dir:
        container["workingDir"] = params.working_dir
    return container


def _literal(text: str) -> str:
    """Return what becomes ``text``: Kubernetes reads ``$(NAME)`` and ``$$`` in it."""
    return text.replace("$", "$$")


def secret_name(labels: Mapping[str, str]) -> str:
    """Return the name of the Secret with the files, other than that of an earlier attempt."""
    return f"{labels[TAG]}-{labels[ATTEMPT]}"


def registry_name(labels: Mapping[str, str]) -> str:
    """Return the name of the Secret by which the image is pulled."""
    return f"{secret_name(labels)}-registry"


def secret(labels: Mapping[str, str], owner: Any, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the Secret with the files; it goes with its Job ``owner``, a V1Job."""
    texts = {_key(path): text for path, text in files.items()}
    return _secret(secret_name(labels), labels, owner, "Opaque", texts)


def registry_secret(
    labels: Mapping[str, str], owner: Any, image: str, registry: Registry
) -> dict[str, Any]:
    """Return the Secret by which a node signs in where the image comes from."""
    both = base64.b64encode(f"{registry.user}:{registry.password}".encode()).decode()
    login = {"username": registry.user, "password": registry.password, "auth": both}
    texts = {".dockerconfigjson": json.dumps({"auths": {registry_of(image): login}})}
    kind = "kubernetes.io/dockerconfigjson"
    return _secret(registry_name(labels), labels, owner, kind, texts)


def registry_of(image: str) -> str:
    """Return the host in the name of an image; that of Docker's own registry if there is none."""
    host, slash, _ = image.partition("/")
    return host if slash and (set(".:") & set(host) or host == "localhost") else _DEFAULT_REGISTRY


def _secret(
    name: str, labels: Mapping[str, str], owner: Any, kind: str, texts: Mapping[str, str]
) -> dict[str, Any]:
    reference = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": dict(labels), "ownerReferences": [reference]},
        "type": kind,
        "immutable": True,
        "stringData": dict(texts),
    }


def _key(path: str) -> str:
    return path.replace("/", ".")
