"""End what a task has in a cluster; return when it is gone."""

import time
from typing import Any

from kubernetes.client.exceptions import ApiException

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.kubernetes.client import ANSWER_S, TAG, KubernetesCluster, is_missing

_LOOK_S = 0.25
_CONFLICT = 409
_NOW_S = 5  # what a pod gets between TERM and KILL by default


def pods_of(cluster: KubernetesCluster, namespace: str, tag: str) -> list[Any]:
    """Return all pods that carry a tag. Raises WorkFailed."""
    with cluster.told(f"list pods in the namespace {namespace}"):
        found = cluster.core.list_namespaced_pod(
            namespace, label_selector=f"{TAG}={tag}", _request_timeout=ANSWER_S
        )
    return list(found.items)


def job_of(cluster: KubernetesCluster, namespace: str, tag: str) -> Any | None:
    """Return the Job whose name is the tag. Raises WorkFailed."""
    with cluster.told(f"read the Job {tag} in the namespace {namespace}"):
        try:
            return cluster.batch.read_namespaced_job(tag, namespace, _request_timeout=ANSWER_S)
        except ApiException as error:
            if is_missing(error):
                return None
            raise


def end_job(cluster: KubernetesCluster, job: Any, tag: str, timeout_s: float) -> None:
    """Delete a Job with its pods; return when all of that is gone. Raises WorkFailed.

    It means this Job, not one that was made anew under its name.
    """
    namespace, uid = job.metadata.namespace, job.metadata.uid
    body = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}
    with cluster.told(f"delete the Job {tag} in the namespace {namespace}"):
        try:
            cluster.batch.delete_namespaced_job(
                tag, namespace, body=body, _request_timeout=ANSWER_S
            )
        except ApiException as error:
            if not is_missing(error) and error.status != _CONFLICT:
                raise
    deadline = time.monotonic() + timeout_s
    while _is_there(cluster, job, tag):
        if time.monotonic() > deadline:
            raise WorkFailed(
                f"{cluster}: the Job {tag} was deleted, but what belongs to it is still there; is "
                "the node of its pod lost?"
            )
        time.sleep(_LOOK_S)


def _is_there(cluster: KubernetesCluster, job: Any, tag: str) -> bool:
    found = job_of(cluster, job.metadata.namespace, tag)
    if found is not None:
        return bool(found.metadata.uid == job.metadata.uid)
    return bool(pods_of(cluster, job.metadata.namespace, tag))


def end_pods(cluster: KubernetesCluster, namespace: str, tag: str, timeout_s: float) -> None:
    """Delete all pods that carry a tag and have not ended; return when they are gone.

    Those that have ended stay: their logs are of use, and nothing runs in them. Raises WorkFailed.
    """
    deadline = time.monotonic() + timeout_s
    deleted: set[str] = set()
    while pods := [
        pod
        for pod in pods_of(cluster, namespace, tag)
        if pod.status.phase not in ("Succeeded", "Failed")
    ]:
        for pod in pods:
            if pod.metadata.uid not in deleted:
                deleted.add(pod.metadata.uid)
                _delete(cluster, pod)
        if time.monotonic() > deadline:
            raise WorkFailed(f"{cluster}: pods of this task are deleted, but still there")
        time.sleep(_LOOK_S)


def _delete(cluster: KubernetesCluster, pod: Any) -> None:
    with cluster.told(f"delete the pod {pod.metadata.name}"):
        try:
            cluster.core.delete_namespaced_pod(
                pod.metadata.name,
                pod.metadata.namespace,
                grace_period_seconds=_NOW_S,
                _request_timeout=ANSWER_S,
            )
        except ApiException as error:
            if not is_missing(error):
                raise
