"""A small stand-in for a container engine, whose containers a test moves by hand.

Not an engine: nothing runs, nothing is isolated, no image exists. It keeps what it is asked to
make, answers in the shape of Docker's API, and does what the test says. So tests on it show what
Shoal asks for and what it makes of the answers; ``tests/containers`` has real engines.
"""

import json
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.waiting import DEADLINE_S

_OK, _CREATED, _NOTHING, _MISSING, _CONFLICT = 200, 201, 204, 404, 409


@dataclass
class Made:
    """One container. It ends when a test says so, or when it is stopped or removed."""

    engine: "EngineApi"
    id: str
    name: str
    body: dict[str, Any]
    status: str = "created"
    code: int = 0
    output: bytes = b""

    def ends(self, code: int) -> None:
        with self.engine.changed:
            self.status, self.code = "exited", code
            self.engine.changed.notify_all()

    def writes(self, text: str) -> None:
        with self.engine.changed:
            self.output += text.encode()
            self.engine.changed.notify_all()

    def shown(self) -> dict[str, Any]:
        state = {"Status": self.status, "ExitCode": self.code, "OOMKilled": False, "Error": ""}
        config = {"Labels": self.body["Labels"], "Tty": False}
        host = {"LogConfig": {"Type": "json-file"}}
        return {"Id": self.id, "Name": f"/{self.name}", "State": state, "Config": config,
                "HostConfig": host}  # fmt: skip


class EngineApi:
    """What the engine keeps: its containers, in the order in which they were made."""

    def __init__(self, socket: Path) -> None:
        self.changed = threading.Condition()
        self.containers: list[Made] = []
        self.ever: list[Made] = []  # the removed ones, too
        self.asked: list[str] = []  # such as ``POST start``
        self.refuses: dict[str, int] = {}  # statuses, by what is asked
        self.before: Callable[[str], object] = lambda asked: None
        self.socket = socket

    @property
    def settings(self) -> dict[str, str]:
        return {"docker_socket": f"unix://{self.socket}", "kill_grace_s": "5.0"}

    def container(self, status: str) -> Made:
        """Return the newest container, once it has that status."""

        def is_there() -> bool:
            return bool(self.containers) and self.containers[-1].status == status

        with self.changed:
            assert self.changed.wait_for(is_there, DEADLINE_S), f"no container {status}"
            return self.containers[-1]

    def find(self, name: str) -> Made | None:
        return next((one for one in self.containers if name in (one.name, one.id)), None)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def _serve(self, method: str) -> None:
        engine = self.server.engine
        url = urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        # /v1.41/containers/NAME/start
        kind, _, rest = url.path.partition("/v1.41/")[2].partition("/")
        name, _, action = rest.rpartition("/") if kind == "containers" else ("", "", kind)
        asked = f"{method} {action if method != 'DELETE' else 'container'}"
        engine.before(asked)
        with engine.changed:
            engine.asked.append(asked)
            if status := engine.refuses.get(asked):
                return self._answer(status, {"message": f"{asked} is refused"})
            if kind != "containers":
                version = {"ApiVersion": "1.41", "Version": "stand-in"}
                return self._answer(_OK, version if kind in ("version", "") else {"Id": "image"})
            if asked == "POST create":
                return self._create(parse_qs(url.query)["name"][0], body)
            one = engine.find(action if method == "DELETE" else name)
            if one is None:
                return self._answer(_MISSING, {"message": "no such container"})
            if action not in ("logs", "wait"):
                return self._do(asked, one)
        return self._log(one) if action == "logs" else self._wait(one)

    def _create(self, name: str, body: dict[str, Any]) -> None:
        engine = self.server.engine
        if engine.find(name):
            return self._answer(_CONFLICT, {"message": f"the name {name} is in use"})
        one = Made(engine, f"{len(engine.ever):064x}", name, body)
        engine.containers.append(one)
        engine.ever.append(one)
        engine.changed.notify_all()
        return self._answer(_CREATED, {"Id": one.id, "Warnings": []})

    def _do(self, asked: str, one: Made) -> None:
        engine = self.server.engine
        if asked == "GET json":
            return self._answer(_OK, one.shown())
        if asked == "POST start":
            one.status = "running"
        elif one.status == "running":
            one.status, one.code = "exited", 137
        if asked == "DELETE container":
            engine.containers.remove(one)
        engine.changed.notify_all()
        return self._answer(_NOTHING, None)

    def _log(self, one: Made) -> None:
        self.send_response(_OK)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = 0
        while True:
            with one.engine.changed:
                if one.status == "running" and len(one.output) == sent:
                    one.engine.changed.wait(0.2)
                new, is_over = one.output[sent:], one.status != "running"
            if new:
                frame = struct.pack(">BxxxL", 1, len(new)) + new
                self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
                sent += len(new)
            elif is_over:
                break
        self.wfile.write(b"0\r\n\r\n")

    def _wait(self, one: Made) -> None:
        with one.engine.changed:
            one.engine.changed.wait_for(lambda: one.status != "running", DEADLINE_S)
        self._answer(_OK, {"StatusCode": one.code})

    def _answer(self, status: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, engine: EngineApi) -> None:
        super().__init__(str(engine.socket), _Handler)
        self.engine = engine

    def get_request(self) -> Any:
        request, _ = super().get_request()
        return request, ("local", 0)  # the handler's base expects an address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients are killed in these tests."""


@contextmanager
def serving(socket: Path) -> Iterator[EngineApi]:
    """Serve an engine without containers on a socket."""
    engine = EngineApi(socket)
    server = _Server(engine)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield engine
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
