"""What sessions send and receive, counted."""

from collections import Counter
from typing import Any

from shoal.coordination import ZkSession

HEARTBEAT = "Sync"


class Traffic:
    """The requests of sessions by their kinds, and all bytes, from now on; heartbeats excepted."""

    def __init__(self, *sessions: ZkSession) -> None:
        self.requests: Counter[str] = Counter()
        self.bytes = 0
        for session in sessions:
            self._watch(session._client)

    def _watch(self, client: Any) -> None:
        submit, receive = client.submit, client._connection._received_now

        def submitted(request: Any, body: bytes, *rest: Any) -> None:
            kind = type(request).__name__.removeprefix("_")
            if kind != HEARTBEAT:
                self.requests[kind] += 1
                self.bytes += len(body)
            submit(request, body, *rest)

        def received() -> bytes:
            chunk: bytes = receive()
            self.bytes += len(chunk)
            return chunk

        client.submit, client._connection._received_now = submitted, received
