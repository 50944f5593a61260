"""ASGI middleware around all routes.

``RequestMiddleware`` gives every exchange a request id, safe headers and a log line, never shows a
stack trace, and serves HEAD as GET without the content. ``PacedLogins`` spaces out requests that
carry passwords.
"""

import asyncio
import re
import secrets
import time
from pathlib import Path

import structlog
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shoal.api.settings import ApiSettings
from shoal.api.web.errors import OtherFolder, TooManyRequests, UnknownHost
from shoal.api.web.hosts import check_folder, check_host, names_of
from shoal.api.web.problems import problem_response, unexpected

log = structlog.get_logger()

PREFIX = "/api/v1"

# There are no pages here that could need more; /docs brings its own policy.
_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
SAFE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# A browser that was here once never speaks to us in clear again.
_OVER_TLS = {"Strict-Transport-Security": "max-age=31536000"}


REQUEST_ID = "X-Request-Id"
_GOOD_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")  # of proxies and tracers; one word of a log


class StreamBroken(Exception):
    """A response cannot be completed; the connection is cut so that the client notices.

    The raiser has logged the reason.
    """


class _HeadSent(Exception):
    """All that HEAD asks for is on its way."""


class RequestMiddleware:
    """ASGI middleware around the whole application. ``token``: that of the folder ``data``."""

    def __init__(self, app: ASGIApp, settings: ApiSettings, data: Path, token: str) -> None:
        self._app = app
        self._data, self._token = data, token
        self._names = names_of(settings)
        self._headers = {**SAFE_HEADERS, **(_OVER_TLS if settings.has_tls else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; other kinds of scopes pass through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s = time.monotonic()
        status = 0
        request = Request(scope, receive)
        given = request.headers.get(REQUEST_ID, "")
        request_id = given if _GOOD_ID.fullmatch(given) else secrets.token_hex(8)
        request.state.request_id = request_id

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                headers[REQUEST_ID] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            await self._serve(request, send_safely)
        log.debug(
            "request",
            request_id=request_id,
            method=request.method,
            path=request.url.path,
            status=status,
            seconds=round(time.monotonic() - started_s, 4),
        )

    async def _serve(self, request: Request, send: Send) -> None:
        """Answer one request, whatever happens."""
        began = False

        async def send_on(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            check_host(request, self._names)
            check_folder(request, self._data, self._token)
        except (UnknownHost, OtherFolder) as error:
            response = problem_response(request, error.kind, str(error))
            await response(request.scope, request.receive, send)
            return
        is_head = request.method == "HEAD"
        scope = {**request.scope, "method": "GET"} if is_head else request.scope
        try:
            await self._app(scope, request.receive, _head_alone(send_on) if is_head else send_on)
        except (StreamBroken, _HeadSent):
            pass
        except Exception as error:  # noqa: BLE001  # outermost: every unforeseen error ends here
            response = unexpected(request, error)
            if not began:
                await response(request.scope, request.receive, send)


def _head_alone(send: Send) -> Send:
    """Return what sends a head without its content, and ends what goes on and on."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            raise _HeadSent
        await send(message)

    return send_head


_APART_S = 0.003  # about twice what the loop works on one
_LONGEST_S = 3.0  # in the row
_PATH = f"{PREFIX}/login"


class PacedLogins:
    """Sign-in requests begin one after the other; the event loop serves other requests in between.

    Only the time of the next free turn is kept, so no request holds a place in the queue. One event
    loop.
    """

    def __init__(self, app: ASGIApp, apart_s: float = _APART_S) -> None:
        self._app, self._apart_s = app, apart_s
        self._free_s = 0.0  # when the next may begin, by the loop's clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; other kinds of scopes pass through."""
        brings_a_password = (
            scope["type"] == "http"
            and scope["method"] == "POST"
            and f"{scope['path']}/".startswith(f"{_PATH}/")
        )
        if brings_a_password:
            now_s = asyncio.get_running_loop().time()
            wait_s = max(0.0, self._free_s - now_s)
            if wait_s > _LONGEST_S:
                error = TooManyRequests("too many are signing in at this moment", wait_s)
                request = Request(scope, receive)
                refusal = problem_response(request, error.kind, str(error), headers=error.headers)
                await refusal(scope, receive, send)
                return
            self._free_s = now_s + wait_s + self._apart_s
            if wait_s > 0:
                await asyncio.sleep(wait_s)
        await self._app(scope, receive, send)
