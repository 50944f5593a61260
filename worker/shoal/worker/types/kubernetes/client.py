"""The way into a cluster: the worker's own, whatever the task says."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import kubernetes.client
import kubernetes.config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

from shoal.core.errors import shortened
from shoal.core.untrusted import read_json
from shoal.worker.types.child.outcome import WorkFailed

#: Label of everything that belongs to a task: its tag.
TAG = "shoal-tag"
IN_CLUSTER = "in-cluster"
#: Seconds until a connection stands, and until an answer has come.
ANSWER_S = (5.0, 15.0)
_NOT_FOUND, _FORBIDDEN, _UNAUTHORIZED = 404, 403, 401
_HTTPS = 443


class NoKubernetes(WorkFailed):
    """The worker's administrator names no cluster, or one that cannot be read."""

    def __init__(self, text: str) -> None:
        super().__init__(f"this worker has no Kubernetes: {text}", permanent=True)


class KubernetesCluster:
    """A connection to an API server; ``told`` goes around what ``core`` and ``batch`` are asked."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Read the settings ``kubernetes_…``; no server is asked yet. Raises NoKubernetes."""
        file = settings.get("kubernetes_config", "")
        if not file:
            raise NoKubernetes("its administrator names one by kubernetes_config")
        configuration = kubernetes.client.Configuration()
        config: Any = kubernetes.config  # without types
        try:
            if file == IN_CLUSTER:
                config.load_incluster_config(client_configuration=configuration)
            else:
                config.load_kube_config(
                    file,
                    context=settings.get("kubernetes_context") or None,
                    client_configuration=configuration,
                    persist_config=False,
                )
        except (ConfigException, OSError, ValueError) as error:
            raise NoKubernetes(
                f"kubernetes_config = {file}: {shortened(str(error), 300)}"
            ) from error
        self._host = str(configuration.host)
        api = kubernetes.client.ApiClient(configuration)
        self.core: Any = kubernetes.client.CoreV1Api(api)
        self.batch: Any = kubernetes.client.BatchV1Api(api)

    def __str__(self) -> str:
        return f"Kubernetes at {self._host}"

    def require_server(self, url: str) -> None:
        """Raise WorkFailed unless ``url`` is where this cluster's API server is."""
        if _place(url) != _place(self._host):
            text = f"the worker's kubernetes_config is for {self._host}, not for {url}"
            raise WorkFailed(text, permanent=True)

    @contextmanager
    def told(self, doing: str) -> Iterator[None]:
        """Say what has failed, and where. Raises WorkFailed."""
        try:
            yield
        except ApiException as error:
            text = f"{self}: could not {doing}: {said(error)}"
            if error.status in (_FORBIDDEN, _UNAUTHORIZED):
                text += "; the account of kubernetes_config needs the role for it"
            is_wrong = error.status in (400, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, 422)
            raise WorkFailed(text, permanent=is_wrong) from error
        except (HTTPError, OSError) as error:
            text = f"{self} does not answer, which was to {doing}: {shortened(str(error), 300)}"
            raise WorkFailed(text) from error


def is_missing(error: ApiException) -> bool:
    """Whether the API server says that there is no such object."""
    return bool(error.status == _NOT_FOUND)


def said(error: ApiException) -> str:
    """Return what the API server says, in its own words."""
    try:
        message = read_json(error.body or "{}").get("message")
    except (ValueError, AttributeError):
        message = None
    return shortened(str(message or error.reason or error.status), 500)


def _place(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url if "://" in url else f"https://{url}")
    return parts.scheme, parts.hostname or "", parts.port or _HTTPS
