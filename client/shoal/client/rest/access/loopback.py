"""Where a browser brings what it has got for a command: a port of this machine (RFC 8252)."""

import hmac
import secrets
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Self
from urllib.parse import parse_qs, urlencode, urlsplit

from shoal.client.errors import NobodyCame
from shoal.core.access.pkce import challenge_of, number_of

_PATIENCE_S = 5.0  # with one who connects and says nothing
_DONE = b"The command line is signed in. This page can be closed."


class Loopback:
    """Waits for one code. The port is open as long as the block lasts."""

    def __init__(self) -> None:
        self.verifier = secrets.token_urlsafe(48)
        self._state = secrets.token_urlsafe(24)
        self._code: str | None = None

    def __enter__(self) -> Self:
        self._server = _CodeServer(("127.0.0.1", 0), _Handler)
        self._server.take = self._take
        return self

    def __exit__(self, *_: object) -> None:
        self._server.server_close()

    @property
    def number(self) -> str:
        """What the browser has to show as well."""
        return number_of(challenge_of(self.verifier))

    def address(self, url: str, provider: str) -> str:
        """Return where the browser begins, at the API at ``url``."""
        query = {
            "port": self._server.server_address[1],
            "state": self._state,
            "challenge": challenge_of(self.verifier),
        }
        return f"{url}/api/v1/login/oidc/{provider}?{urlencode(query)}"

    def wait(self, most_s: float) -> str:
        """Return the code that the browser brings. Raises NobodyCame."""
        until_s = time.monotonic() + most_s
        while self._code is None:
            self._server.timeout = until_s - time.monotonic()
            if self._server.timeout <= 0:
                raise NobodyCame(most_s)
            self._server.handle_request()
        return self._code

    def _take(self, target: str) -> bool:
        """Say whether a request brings the code: others on this machine could send some, too."""
        asked = parse_qs(urlsplit(target).query)
        [code], [state] = asked.get("code", [""]), asked.get("state", [""])
        if not code or not hmac.compare_digest(state.encode(), self._state.encode()):
            return False
        self._code = code
        return True


class _CodeServer(HTTPServer):
    take: Callable[[str], bool]

    def handle_error(self, request: object, client_address: object) -> None:
        """One who came has gone: the next one may be the browser."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE_S
    server: _CodeServer

    def do_GET(self) -> None:  # the library's name
        try:
            is_it = self.server.take(self.path)
        except ValueError:  # given twice
            is_it = False
        self.send_response(200 if is_it else 404)
        body = _DONE if is_it else b"Not here."
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: the code is in the address."""
