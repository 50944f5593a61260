"""HTTP to the API: authentication, repetition of what may be repeated, errors as our own.

Synchronous; one connection belongs to one thread at a time.
"""

import random
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shoal.client.errors import TRANSIENT, ApiProblem, ApiUnreachable, FieldProblem, NoCluster
from shoal.client.rest.lean_httpx import httpx
from shoal.client.rest.paths import part

CONNECT_TIMEOUT_S = 5.0
UPLOAD_TIMEOUT_S = 300.0
HEARTBEAT_S = 15.0  # a stream is never quiet for longer, so twice that means it is dead
RETRY_PAUSES_S = (0.1, 0.3, 1.0)
PAGE = 200
_UNKNOWN_AUTHORITY = (
    "if its certificate is from a private authority, name the PEM file of that: `shoal login URL "
    "--ca FILE`, or SHOAL_CA"
)
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Connection:
    """Requests below ``url``/api/v1, with ``headers`` that say who asks.

    A request is repeated a few times within two seconds, so it must be one that may be (commands
    carry an idempotency key), or say ``repeat=False``. ``hint`` says what to do when nothing
    answers, ``refused`` when the token is not accepted; None: the API's own words do. ``ca`` is a
    PEM file of the only authorities whose certificates are trusted.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout_s: float,
        hint: str,
        *,
        refused: str | None,
        ca: Path | None = None,
    ) -> None:
        self.url, self._hint, self._refused = url.rstrip("/"), hint, refused
        self._reached = False
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={**headers, "User-Agent": "shoal-client"},
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
            # A proxy for the outside world has no business with our own machine.
            trust_env=urlsplit(url).hostname not in LOOPBACK,
            verify=True if ca is None else _trusting(ca),
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of a GET."""
        return self.json("GET", path, query)

    def json(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, **rest: Any
    ) -> Any:
        """Return the JSON that a request is answered with."""
        response = self.request(method, path, query, **rest)
        try:
            return response.json()
        except ValueError as error:
            detail = f"the answer of {self.url} is no JSON; is that the address of a Shoal API?"
            raise ApiProblem(response.status_code, "not-json", "No JSON", detail) from error

    def upload(
        self, path: str, query: Mapping[str, Any] | None, *, content: bytes | Iterable[bytes]
    ) -> Any:
        """Return the JSON that a PUT of a file is answered with.

        ``content`` can be read several times. The server may take long to store what it has read.
        """
        headers = {"Content-Type": "application/octet-stream"}
        timeout = httpx.Timeout(UPLOAD_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        return self.json("PUT", path, query, content=content, headers=headers, timeout=timeout)

    def put_in(
        self,
        project: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        send: Callable[..., Any] | None = None,
        **rest: Any,
    ) -> Any:
        """Return the JSON that a PUT below a project is answered with.

        A project that is missing is made first, if the caller may: the API makes none by itself.
        ``send``: what sends it instead of ``json``.
        """
        put = send or partial(self.json, "PUT")
        try:
            return put(path, query, **rest)
        except ApiProblem as problem:
            if problem.status != 404 or not self._make(project):
                raise
        return put(path, query, **rest)

    def _make(self, project: str) -> bool:
        only_new = {"If-None-Match": "*"}
        try:
            self.request("PUT", f"/projects/{part(project)}", json={}, headers=only_new)
        except ApiProblem as refused:
            return refused.status == 412  # it is there: another one was quicker
        return True

    def pages(self, path: str, query: Mapping[str, Any], page: int = PAGE) -> Iterator[Any]:
        """Yield the items of all pages of a list, fetched one after the other."""
        cursor: str | None = None
        while True:
            answer = self.get(path, {**query, "limit": page, "cursor": cursor})
            yield from answer["items"]
            cursor = answer.get("next")
            if cursor is None:
                return

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        repeat: bool = True,
        **rest: Any,
    ) -> httpx.Response:
        """Return a successful answer. Raises ApiProblem, ApiUnreachable."""
        params = _query(query)
        for pause_s in (*(RETRY_PAUSES_S if repeat else ()), None):
            try:
                response = self._http.request(method, path, params=params, **rest)
            except httpx.ConnectError as error:
                # No server is there. One that was there a moment ago may come back.
                if pause_s is None or not self._reached:
                    raise self._unreachable(error) from error
            except httpx.TransportError as error:
                if pause_s is None:
                    raise self._unreachable(error) from error
            else:
                self._reached = True
                if response.is_success or _is_health_report(path, response):
                    return response
                if pause_s is None or response.status_code not in TRANSIENT:
                    raise self._problem(response)
            assert pause_s is not None, "the last round returns or raises"
            time.sleep(pause_s * random.uniform(0.8, 1.2))
        raise AssertionError("the last round returns or raises")

    @contextmanager
    def stream(
        self, path: str, last_id: str | None = None, query: Mapping[str, Any] | None = None
    ) -> Iterator[httpx.Response]:
        """Open a successful answer that is read piece by piece within the block.

        Raises ApiProblem, and ApiUnreachable also when the stream breaks off.
        """
        request = self._http.build_request(
            "GET",
            path,
            params=_query(query),
            headers={} if last_id is None else {"Last-Event-ID": last_id},
            timeout=httpx.Timeout(2 * HEARTBEAT_S, connect=CONNECT_TIMEOUT_S),
        )
        try:
            response = self._http.send(request, stream=True)
            try:
                if not response.is_success:
                    response.read()
                    raise self._problem(response)
                yield response
            finally:
                response.close()
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.TransportError) -> ApiUnreachable:
        reason = str(error) or type(error).__name__
        is_unknown = "CERTIFICATE_VERIFY_FAILED" in reason
        return ApiUnreachable(self.url, reason, _UNKNOWN_AUTHORITY if is_unknown else self._hint)

    def _problem(self, response: httpx.Response) -> ApiProblem:
        """Return the error that an answer describes, the API's own or a proxy's."""
        status = response.status_code
        try:
            document = response.json()
            errors = [
                FieldProblem(str(e.get("field", "")), str(e.get("message", "")))
                for e in document.get("errors") or ()
            ]
            kind = str(document.get("type", "")).rpartition("/")[2]
            title, detail = str(document.get("title", "")), str(document.get("detail", ""))
        except (ValueError, AttributeError):
            errors, kind, title = [], "", response.reason_phrase
            detail = f"{response.url} answers {status} {title}; is that a Shoal API?"
        if status == 401 and self._refused is not None:
            detail = f"the API at {self.url} refuses the token: {self._refused}"
        return ApiProblem(status, kind, title, detail, errors)


def _trusting(ca: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise NoCluster(
            f"cannot read the certificates in {ca}: {reason}; expected a PEM file of the API's "
            "authority"
        ) from error


def _is_health_report(path: str, response: httpx.Response) -> bool:
    """A cluster that is not well says so with status 503 and its report."""
    return path == "/health" and response.status_code == 503 and '"checks"' in response.text


def _query(query: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what was given, in the API's spelling."""
    given = {k: v for k, v in (query or {}).items() if v is not None and v != []}
    return {k: str(v).lower() if isinstance(v, bool) else v for k, v in given.items()}
