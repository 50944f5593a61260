"""Follow what a pod writes. A connection that is cut is made anew, and no line is logged twice."""

import threading
import time
from collections.abc import Callable

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from shoal.worker.types.kubernetes.client import KubernetesCluster

_AGAIN_S = 0.5
_CONNECT_S = 5.0
_SILENT_S = 300.0  # then it is asked anew: a connection may be dead without a word


class PodLog(threading.Thread):
    """Follows one pod until ``finish``."""

    def __init__(
        self, cluster: KubernetesCluster, namespace: str, pod: str, log: Callable[[bytes], None]
    ) -> None:
        super().__init__(name="pod log", daemon=True)
        self._cluster, self._namespace, self._pod, self._log = cluster, namespace, pod, log
        self._last = ("", "")  # the time of the newest line
        self._told = 0  # so many lines of that time
        self._since = time.monotonic()
        self._ended = threading.Event()  # the pod

    def finish(self, timeout_s: float) -> bool:
        """Read the rest of a pod that has ended; return whether it could be read."""
        self._ended.set()
        self.join(timeout_s)
        return not self.is_alive()

    def run(self) -> None:
        """See Thread."""
        while True:
            has_ended = self._ended.is_set()
            is_whole = self._read()
            if has_ended and is_whole:
                return
            self._ended.wait(_AGAIN_S) if not has_ended else time.sleep(_AGAIN_S)

    def _read(self) -> bool:
        """Tell what is new; return whether the log was read to its present end."""
        since_s = int(time.monotonic() - self._since) + 2 if self._told else None
        newest, to_skip, rest = self._last, self._told, b""
        try:
            answer = self._cluster.core.read_namespaced_pod_log(
                self._pod,
                self._namespace,
                follow=True,
                timestamps=True,
                since_seconds=since_s,
                _preload_content=False,
                _request_timeout=(_CONNECT_S, _SILENT_S),
            )
            for chunk in answer.stream(amt=None, decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    to_skip -= self._line(line + b"\n", newest, to_skip)
            if rest:
                self._line(rest, newest, to_skip)
        except (ApiException, HTTPError, OSError):
            return False
        return True

    def _line(self, line: bytes, newest: tuple[str, str], to_skip: int) -> int:
        """Tell a line that is new; return 1 if it is one of those of the time ``newest``."""
        stamp, _, text = line.partition(b" ")
        at = _parsed(stamp.decode("ascii", "replace"))
        if at < newest:
            return 0
        if at == newest and to_skip > 0:
            return 1
        self._told = self._told + 1 if at == self._last else 1
        self._last, self._since = at, time.monotonic()
        self._log(text)
        return 0


def _parsed(stamp: str) -> tuple[str, str]:
    """Return a time of RFC 3339 in UTC as texts whose order is that of the times."""
    seconds, _, fraction = stamp.rstrip("Z").partition(".")
    return seconds, fraction.ljust(9, "0")
