"""A request as it is sent: the first one, and those that an answer leads to."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

import httpx

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.http.kind import Auth, Body, HttpParams, Scalar, has_placeholder

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# All that another server gets; any other header may be a key to the first one.
_FOR_STRANGERS = frozenset({"accept", "accept-language", "content-type", "user-agent"})


@dataclass(frozen=True)
class HttpRequest:
    """One request. ``headers`` are those of the task; the connection's own come with sending."""

    method: str
    url: httpx.URL
    headers: Mapping[str, str]
    content: bytes | None = None

    @property
    def origin(self) -> tuple[str, str, int | None]:
        """The server that it is sent to: scheme, host, port."""
        default = {"http": 80, "https": 443}.get(self.url.scheme)
        return self.url.scheme, self.url.host.lower(), self.url.port or default


def first_request(params: HttpParams, key: str) -> HttpRequest:
    """Return what the params ask for. ``key`` is for ``idempotency_header``. Raises WorkFailed."""
    _require_rendered(params)
    headers = {"Accept": "*/*", "User-Agent": "shoal"}
    content = None
    if params.body is not None:
        kind, content = _content(params.body)
        headers["Content-Type"] = kind
    given = dict(params.headers)
    if params.auth is not None:
        given["Authorization"] = _authorization(params)
    if params.idempotency_header is not None:
        given[params.idempotency_header] = key
    named = {name.lower() for name in given}
    headers = {name: value for name, value in headers.items() if name.lower() not in named}
    return HttpRequest(params.method, _url(params), {**headers, **given}, content)


def led_to(request: HttpRequest, target: str, *, method: str | None = None) -> HttpRequest:
    """Return the request that an answer leads to with ``target``, a URL that may be relative.

    ``method`` None: the same, with the same body. Another origin than before gets no headers that
    could be keys. Raises WorkFailed if that may not be followed.
    """
    try:
        url = request.url.join(target)
    except (httpx.InvalidURL, ValueError, UnicodeError):
        raise WorkFailed("the answer leads to what is not a URL", permanent=True) from None
    if url.scheme not in ("http", "https") or not url.host:
        raise WorkFailed("the answer leads to no http or https URL", permanent=True)
    if request.url.scheme == "https" and url.scheme != "https":
        text = "the answer leads from https to http, where anyone on the way could read along"
        raise WorkFailed(text, permanent=True)
    url = url.copy_with(userinfo=b"", fragment=None)
    if method is None:
        following = replace(request, url=url)
    else:
        kept = {n: v for n, v in request.headers.items() if n.lower() != "content-type"}
        following = HttpRequest(method, url, kept)
    if following.origin == request.origin:
        return following
    if following.content is not None:
        text = f"the answer leads to {url.host}, another server, which is not sent the body"
        raise WorkFailed(text, permanent=True)
    kept = {n: v for n, v in following.headers.items() if n.lower() in _FOR_STRANGERS}
    return replace(following, headers=kept)


def redirected(request: HttpRequest, status: int, target: str) -> HttpRequest:
    """Return the request after a redirect, as browsers make it. Raises WorkFailed."""
    if status == 303 and request.method not in ("GET", "HEAD"):
        return led_to(request, target, method="GET")
    if status in (301, 302) and request.method == "POST":
        return led_to(request, target, method="GET")
    return led_to(request, target)


def _require_rendered(params: HttpParams) -> None:
    auth = params.auth or Auth(user="")
    texts = {
        "url": [params.url],
        "headers": list(params.headers.values()),
        "query": [value for _, value in pairs(params.query)],
        "auth": [auth.user or "", auth.password, auth.bearer or ""],
    }
    for field, values in texts.items():
        if any(has_placeholder(value) for value in values):
            text = f"no parameter of the workflow fills a placeholder in {field}"
            raise WorkFailed(text, permanent=True)


def _url(params: HttpParams) -> httpx.URL:
    try:
        url = httpx.URL(params.url).copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError, UnicodeError):
        raise WorkFailed("url: the worker cannot read this URL", permanent=True) from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise WorkFailed("url: expected http:// or https:// and a host", permanent=True)
    if params.query:
        added = urlencode(pairs(params.query), quote_via=quote).encode("ascii")
        url = url.copy_with(query=url.query + b"&" + added if url.query else added)
    return url


def pairs(fields: Mapping[str, Scalar | list[Scalar]]) -> list[tuple[str, str]]:
    """Return names with values, a list as several of the same name."""
    return [
        (name, scalar_text(one))
        for name, value in fields.items()
        for one in (value if isinstance(value, list) else [value])
    ]


def scalar_text(value: Scalar) -> str:
    """Return a value as it is written into a form or a query; truth values as in JSON."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _content(body: Body) -> tuple[str, bytes]:
    if body.text is not None:
        return "text/plain; charset=utf-8", body.text.encode("utf-8", "surrogatepass")
    if body.form is not None:
        text = urlencode(pairs(body.form))
        return "application/x-www-form-urlencoded", text.encode("ascii")
    return "application/json", json.dumps(body.json_, ensure_ascii=False).encode("utf-8", "replace")


def _authorization(params: HttpParams) -> str:
    assert params.auth is not None
    if params.auth.bearer is not None:
        return f"Bearer {params.auth.bearer}"
    return f"Basic {basic(params.auth.user or '', params.auth.password)}"


def basic(user: str, password: str) -> str:
    """Return what Basic authentication sends of a user and a password."""
    return base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
