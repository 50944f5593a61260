"""A real HTTP server that answers as a test says, and remembers what it was asked."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from shoal.proto.tls import TlsFiles


@dataclass(frozen=True)
class Request:
    """What came in. ``query`` holds lists, as parameters may repeat."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    """What goes out. ``hang_up``: say that more would come, then close the connection."""

    status: int = 200
    body: Any = None
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False


HANG_UP = Answer(status=0)  # close the connection without a word


def problem(status: int, kind: str, detail: str, **fields: str) -> Answer:
    """A problem document as the API writes it."""
    errors = [{"field": name, "message": message} for name, message in fields.items()]
    body = {
        "type": f"/problems/{kind}",
        "title": kind,
        "status": status,
        "detail": detail,
        "instance": "/",
        "errors": errors,
    }
    return Answer(status, body, "application/problem+json")


def stream(text: str, *, hang_up: bool = False) -> Answer:
    """Server-sent events."""
    return Answer(200, text, "text/event-stream", hang_up=hang_up)


@dataclass
class ScriptedServer:
    """``answer`` decides on each request; ``requests`` are in the order of their arrival."""

    url: str
    answer: Callable[[Request], Answer]
    requests: list[Request] = field(default_factory=list)

    def answers(self, *answers: Answer) -> None:
        """Give these answers in turn, the last one for ever."""
        left = list(answers)
        self.answer = lambda _request: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def scripted_server(tls: TlsFiles | None = None) -> Iterator[ScriptedServer]:
    """Run a server on a free port of this machine, with a certificate for https."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length", 0))
            content = self.rfile.read(length)
            request = Request(
                self.command,
                parts.path,
                parse_qs(parts.query),
                {name.lower(): value for name, value in self.headers.items()},
                json.loads(content) if content else None,
            )
            script.requests.append(request)
            self._send(script.answer(request))

        def _send(self, answer: Answer) -> None:
            if answer.status == 0:
                self.close_connection = True
                return
            body = answer.body
            if not isinstance(body, bytes):
                text = body if isinstance(body, str) else json.dumps(body)
                body = text.encode() if body is not None else b""
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(body) + (1000 if answer.hang_up else 0)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = answer.hang_up

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815  names of the base class

        def log_message(self, *_: Any) -> None:
            """Tests look at ``requests``."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scheme = "http"
    if tls is not None:
        context, scheme = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), "https"
        context.load_cert_chain(tls.cert, tls.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    script = ScriptedServer(
        f"{scheme}://127.0.0.1:{server.server_address[1]}", lambda _request: Answer(200, {})
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
