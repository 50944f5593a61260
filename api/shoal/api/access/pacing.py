"""Requests that bring passwords begin one after the other.

However many arrive in one moment, the event loop gets to everybody else's between any two. Where a
request stands in the row is all that is kept of it: nobody holds a place that others wait for.
"""

import asyncio

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from shoal.api.web.errors import TooManyRequests
from shoal.api.web.problems import problem_response
from shoal.api.web.route import PREFIX

_APART_S = 0.003  # about twice what the loop works on one
_LONGEST_S = 3.0  # in the row
_PATH = f"{PREFIX}/login"


class PacedLogins:
    """ASGI middleware around the routes; who signs in waits for a turn. One event loop."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._free_s = 0.0  # when the next may begin, by the loop's clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; other kinds of scopes pass through."""
        if scope["type"] == "http" and _brings_a_password(scope):
            now_s = asyncio.get_running_loop().time()
            wait_s = max(0.0, self._free_s - now_s)
            if wait_s > _LONGEST_S:
                await _refuse(Request(scope, receive), send, wait_s)
                return
            self._free_s = now_s + wait_s + _APART_S
            if wait_s > 0:
                await asyncio.sleep(wait_s)
        await self._app(scope, receive, send)


def _brings_a_password(scope: Scope) -> bool:
    path: str = scope["path"]
    return bool(scope["method"] == "POST") and (path == _PATH or path.startswith(f"{_PATH}/"))


async def _refuse(request: Request, send: Send, wait_s: float) -> None:
    error = TooManyRequests("too many are signing in at this moment", wait_s)
    response = problem_response(request, error.kind, str(error), headers=error.headers)
    await response(request.scope, request.receive, send)
