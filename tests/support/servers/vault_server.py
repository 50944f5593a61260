"""What Shoal uses of the HTTP API of HashiCorp Vault and OpenBao, over TLS, on loopback.

A contract: written from the published API (KV version 2, AppRole, Kubernetes, namespaces, answers
with errors), not the product. It can also do what the product does on bad days, and what no server
should do.
"""

import json
import ssl
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from shoal.proto.tls import create_identity

ROOT_TOKEN = "hvs.root-of-the-tests"
ROLE, SECRET_ID, JWT = "9b2c-role", "4f1e-secret-id", "eyJhbGciOiJSUzI1NiJ9.pod.sig"


@dataclass
class Versioned:
    """The newest version of the secret at one path."""

    data: Mapping[str, Any]
    is_deleted: bool = False


@dataclass
class VaultServer:
    """What it has and does. ``policies``: prefixes that each token may read."""

    mount: str = "secret"
    namespace: str = ""
    secrets: dict[str, Versioned] = field(default_factory=dict)
    tokens: dict[str, tuple[str, ...]] = field(default_factory=lambda: {ROOT_TOKEN: ("",)})
    role_may: tuple[str, ...] = ("",)
    lease_s: int = 3600
    # -- on bad days --
    status: int = 0  # of every answer
    errors: list[str] = field(default_factory=list)
    retry_after: str = ""
    redirect: str = ""
    silence_s: float = 0.0  # before an answer
    drip_s: float = 0.0  # between the bytes of an answer
    raw: bytes | None = None  # in place of JSON
    # -- what it has seen --
    seen: list[tuple[str, str]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)  # tokens
    at_once: int = 0
    most_at_once: int = 0
    url: str = ""
    ca: Path = Path()

    def put(self, path: str, **data: Any) -> None:
        """Store a new version."""
        self.secrets[path] = Versioned(data)

    def logins(self) -> int:
        """Return how often somebody has signed in."""
        return sum(path.endswith("/login") for _, path in self.seen)

    def reads(self) -> int:
        """Return how often something was read."""
        return sum("/data/" in path for _, path in self.seen)


@contextmanager
def serving(folder: Path) -> Iterator[VaultServer]:
    """Serve a Vault; its certificate is signed by an authority of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    files = create_identity(folder)
    vault = VaultServer(ca=files.ca)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            self._answer(json.loads(self.rfile.read(length) or b"{}"))

        def _answer(self, body: Mapping[str, Any]) -> None:
            with lock:
                vault.seen.append((self.command, self.path))
                vault.shown.append(self.headers.get("X-Vault-Token", ""))
                vault.at_once += 1
                vault.most_at_once = max(vault.most_at_once, vault.at_once)
            try:
                time.sleep(vault.silence_s)
                status, content = self._judged(body)
                raw = json.dumps(content).encode() if vault.raw is None else vault.raw
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                if vault.retry_after:
                    self.send_header("Retry-After", vault.retry_after)
                if vault.redirect:
                    self.send_header("Location", vault.redirect + self.path)
                self.end_headers()
                for byte in (raw[i : i + 1] for i in range(len(raw))) if vault.drip_s else [raw]:
                    self.wfile.write(byte)
                    self.wfile.flush()
                    time.sleep(vault.drip_s)
            except OSError:
                self.close_connection = True  # the client has had enough
            finally:
                with lock:
                    vault.at_once -= 1

        def _judged(self, body: Mapping[str, Any]) -> tuple[int, Any]:
            if vault.status:
                return vault.status, {"errors": vault.errors}
            if self.headers.get("X-Vault-Request") != "true":
                return 412, {"errors": ["X-Vault-Request header is missing"]}
            if self.headers.get("X-Vault-Namespace", "") != vault.namespace:
                return 404, {"errors": []}
            if self.command == "POST":
                return self._login(body)
            return self._data()

        def _login(self, body: Mapping[str, Any]) -> tuple[int, Any]:
            good = {
                "/v1/auth/approle/login": {"role_id": ROLE, "secret_id": SECRET_ID},
                "/v1/auth/kubernetes/login": {"role": "shoal", "jwt": JWT},
            }
            if self.path not in good:
                return 403, {"errors": ["permission denied"]}
            if body != good[self.path]:
                return 400, {"errors": ["invalid role or secret ID"]}
            token = f"hvs.{uuid.uuid4().hex}"
            vault.tokens[token] = vault.role_may
            auth = {"client_token": token, "lease_duration": vault.lease_s, "renewable": True}
            return 200, {"request_id": uuid.uuid4().hex, "auth": auth, "data": None}

        def _data(self) -> tuple[int, Any]:
            front = f"/v1/{vault.mount}/data/"
            path = self.path.removeprefix(front)
            may = vault.tokens.get(self.headers.get("X-Vault-Token", ""))
            if may is None or not any(path.startswith(one) for one in may):
                return 403, {"errors": ["1 error occurred:\n\t* permission denied\n\n"]}
            if not self.path.startswith(front) or path not in vault.secrets:
                return 404, {"errors": []}
            found = vault.secrets[path]
            metadata = {"version": 1, "destroyed": False, "deletion_time": ""}
            if found.is_deleted:
                metadata["deletion_time"] = "2026-01-01T00:00:00Z"
                return 404, {"data": {"data": None, "metadata": metadata}}
            return 200, {"data": {"data": dict(found.data), "metadata": metadata}}

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            return  # a client that does not trust us hangs up

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    server = Server(("127.0.0.1", 0), Handler)
    # The handshake is each connection's own thread's: a client that sends nothing holds up nobody.
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    vault.url = f"https://127.0.0.1:{server.server_port}"
    serving_thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving_thread.start()
    try:
        yield vault
    finally:
        server.shutdown()
        server.server_close()
