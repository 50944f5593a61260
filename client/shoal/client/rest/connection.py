"""HTTP to the API: authentication, repetition of what may be repeated, errors as our own.

Synchronous; one connection belongs to one thread at a time.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from shoal.client.errors import ApiProblem
from shoal.client.rest.lean_httpx import httpx
from shoal.client.rest.operations.call import Call, StreamCall, T
from shoal.client.rest.operations.exchange import (
    CONNECT_TIMEOUT_S,
    Exchange,
    in_query,
    stream_timeout,
)
from shoal.client.rest.operations.exchange import LOOPBACK as LOOPBACK
from shoal.client.rest.paths import part

UPLOAD_TIMEOUT_S = 300.0
RETRY_PAUSES_S = (0.1, 0.3, 1.0)
PAGE = 200


class Connection(Exchange):
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
        folder: Path | None = None,
    ) -> None:
        super().__init__(url, hint, refused=refused, ca=ca, folder=folder)
        self._http = httpx.Client(**self.options(headers, timeout_s))

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
        return self.json_of(self.request(method, path, query, **rest))

    def send(self, call: Call[T]) -> T:
        """Return what an operation answers."""
        response = self.request(
            call.method, call.path, call.query, repeat=call.may_repeat, **call.rest
        )
        return call.read(self, response)

    def open(self, call: StreamCall) -> AbstractContextManager[httpx.Response]:
        """Open what an operation answers bit by bit."""
        return self.stream(call.path, None, call.query, call.headers)

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
        send = partial(self._http.request, method, path, params=in_query(query), **rest)
        steps = self.steps(path, RETRY_PAUSES_S if repeat else (), random.uniform(0.8, 1.2))
        step = next(steps)
        while True:
            try:
                if step is not None:
                    time.sleep(step)
                    step = next(steps)
                    continue
                try:
                    response = send()
                except httpx.TransportError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(response)
            except StopIteration as done:
                found: httpx.Response = done.value
                return found

    @contextmanager
    def stream(
        self,
        path: str,
        last_id: str | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[httpx.Response]:
        """Open a successful answer that is read piece by piece within the block.

        Raises ApiProblem, and ApiUnreachable also when the stream breaks off.
        """
        request = self._http.build_request(
            "GET",
            path,
            params=in_query(query),
            headers={**(headers or {}), **({} if last_id is None else {"Last-Event-ID": last_id})},
            timeout=stream_timeout(),
        )
        try:
            response = self._http.send(request, stream=True)
            try:
                if not response.is_success:
                    response.read()
                    raise self.problem(response)
                yield response
            finally:
                response.close()
        except httpx.TransportError as error:
            raise self.unreachable(error) from error
