"""Where the alert servers of the cluster under test send their messages."""

import json
import time
from collections import Counter
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self

from shoal.client.local.zookeeper import HOST

_LOOK_S = 0.1


class Mood(Enum):
    """What the server does with a message."""

    ANSWERING = "answering"
    HANGING = "hanging"  # it takes the message and says nothing until that is over
    FAILING = "failing"  # it answers that it cannot take it


class Sink:
    """An HTTP server that takes everything, and counts by the keys of messages."""

    def __init__(self) -> None:
        self.received: Counter[str] = Counter()
        self.mood = Mood.ANSWERING
        self.spoilt = 0  # messages that got no good answer
        sink = self

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if sink.mood is not Mood.ANSWERING:
                    sink.spoilt += 1
                while sink.mood is Mood.HANGING:
                    time.sleep(_LOOK_S)
                    if sink.mood is not Mood.HANGING:
                        return  # the sender has given up long ago
                if sink.mood is Mood.FAILING:
                    self.send_error(503)
                    return
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
        self.mood = Mood.ANSWERING
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
