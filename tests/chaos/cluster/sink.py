"""Where the alert servers of the cluster under test send their messages."""

import json
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self

from shoal.client.local.zookeeper import HOST


class Sink:
    """An HTTP server that takes everything, and counts by the keys of messages."""

    def __init__(self) -> None:
        self.received: Counter[str] = Counter()
        sink = self

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                sink.received[body["key"]] += 1
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Be silent."""

        self._server = ThreadingHTTPServer((HOST, 0), Taking)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self._server.server_port}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
