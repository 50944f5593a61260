"""Serves the UI: what Vite has built, and index.html for every address that is a page.

Which page an address is, the UI decides. Files below /assets/ have their digest in their name, so
browsers keep them for good; index.html names them, so it is never kept.
"""

import re
import secrets
from pathlib import Path
from typing import ClassVar

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from shoal.api.web.errors import NOT_FOUND
from shoal.api.web.problems import problem_response

BUILT = Path(__file__).parents[1] / "static"  # vite.config.ts names it, too
FOREVER = "public, max-age=31536000, immutable"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_PACKED = (("br", ".br"), ("gzip", ".gz"))  # the smaller first
_ASSET = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+", re.ASCII)
_NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Shoal</title>
<h1>The web UI is not built</h1>
<p>This API runs from a checkout in which the pages have not been built. Run this there, then load
this page again:</p>
<pre>make ui</pre>
<p>The API itself works: <a href="/docs">its description</a>.</p>
</html>
"""


class PageRoute(Route):
    """Matches what a browser asks for when a user opens a page, and nothing of the API.

    So an unknown address of the API, and whatever a program asks for, stay problem documents.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Say whether this is a page."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            return Match.NONE, {}
        path: str = scope["path"]
        if path == "/api" or path.startswith("/api/"):
            return Match.NONE, {}
        accepts = next((value for name, value in scope["headers"] if name == b"accept"), b"")
        return super().matches(scope) if b"text/html" in accepts else (Match.NONE, {})


class Pages:
    """The files of one build. Each is read once: its name changes with its content."""

    index: ClassVar[str] = "index.html"

    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder
        self._assets: dict[str, tuple[bytes, dict[str, str]]] = {}

    def install(self, app: FastAPI) -> None:
        """Add the routes to ``app``, behind all others."""
        app.router.routes.append(Route("/assets/{name}", self.asset, methods=["GET"]))
        app.router.routes.append(PageRoute("/{path:path}", self.page, methods=["GET"]))

    async def page(self, _: Request) -> Response:
        """Answer with index.html, and a policy with a nonce of its own."""
        try:
            text = (self._folder / self.index).read_text(encoding="utf-8")
        except FileNotFoundError:
            return HTMLResponse(_NOT_BUILT, 503)
        nonce = new_nonce()
        headers = {"Cache-Control": "no-cache", "Content-Security-Policy": policy(nonce)}
        return HTMLResponse(text.replace(NONCE, nonce), headers=headers)

    async def asset(self, request: Request) -> Response:
        """Answer with a file, packed if the browser takes that."""
        name = request.path_params["name"]
        accepted = request.headers.get("accept-encoding", "")
        if _ASSET.fullmatch(name):
            for encoding, suffix in _PACKED:
                if encoding in accepted and (found := self._read(name, suffix)):
                    return Response(found[0], headers={**found[1], "Content-Encoding": encoding})
            if found := self._read(name, ""):
                return Response(found[0], headers=found[1])
        return problem_response(request, NOT_FOUND, f"the UI has no file {name[:100]}")

    def _read(self, name: str, suffix: str) -> tuple[bytes, dict[str, str]] | None:
        kept = self._assets.get(name + suffix)
        kind = _TYPES.get(Path(name).suffix)
        if kept is None and kind is not None:
            try:
                content = (self._folder / "assets" / (name + suffix)).read_bytes()
            except (FileNotFoundError, IsADirectoryError):
                return None
            headers = {"Cache-Control": FOREVER, "Content-Type": kind, "Vary": "Accept-Encoding"}
            # A worker's script brings a policy of its own: it needs nothing but our API.
            headers["Content-Security-Policy"] = (
                "default-src 'none'; script-src 'self'; connect-src 'self'"
            )
            kept = self._assets[name + suffix] = (content, headers)
        return kept


NONCE = "SHOAL_CSP_NONCE"  # stands in the built index.html wherever the nonce belongs


def new_nonce() -> str:
    """Return 128 random bits, for one answer."""
    return secrets.token_urlsafe(16)


def policy(nonce: str) -> str:
    """Return the policy for a page that carries ``nonce``.

    Scripts, workers and data come from this API alone, and no script is inline. The component
    library inserts style elements, which carry the nonce; the graph places its nodes by style
    attributes, which cannot carry one.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            f"style-src 'self' 'nonce-{nonce}'",
            f"style-src-elem 'self' 'nonce-{nonce}'",
            "style-src-attr 'unsafe-inline'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
