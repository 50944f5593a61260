"""The address of a client behind a proxy: the limits of an address count for it.

A client can send any ``X-Forwarded-For``; each proxy adds the address that it has seen behind that.
So the last address that is not one of the proxies' counts.
"""

from collections.abc import Collection
from typing import cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

_HEADER = b"x-forwarded-for"


def behind_proxies(app: ASGIApp, proxies: Collection[str]) -> ASGIApp:
    """Return ``app``, which gets the client's address and scheme that ``proxies`` name.

    ``proxies`` are addresses and networks; ``*`` takes every peer for a proxy. Then the last one
    counts, for uvicorn takes the first, which is the client's own word.
    """
    if not proxies:
        return app
    if "*" not in proxies:
        return cast(ASGIApp, ProxyHeadersMiddleware(app, list(proxies)))  # type: ignore[arg-type]
    trusting = cast(ASGIApp, ProxyHeadersMiddleware(app, "*"))  # type: ignore[arg-type]

    async def last_address(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            named = [value for name, value in scope["headers"] if name == _HEADER]
            if named:
                others = [one for one in scope["headers"] if one[0] != _HEADER]
                last = named[-1].rpartition(b",")[2].strip()
                scope = {**scope, "headers": [*others, (_HEADER, last)]}
        await trusting(scope, receive, send)

    return last_address
