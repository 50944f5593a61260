"""HTTP to the API: authentication, repetition of what may be repeated, errors as our own.

Synchronous; one connection belongs to one thread at a time.
"""

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from shoal.client.libraries import httpx
from shoal.client.rest.operations.call import Call, StreamCall, T
from shoal.client.rest.operations.exchange import LOOPBACK as LOOPBACK
from shoal.client.rest.operations.exchange import ApiExchange, in_query, stream_timeout

RETRY_PAUSES_S = (0.1, 0.3, 1.0)


class ApiConnection(ApiExchange):
    """Requests below ``url``/api/v1, with ``headers`` that say who asks.

    ``hint`` says what to do when nothing answers, ``refused`` when the token is not accepted; None:
    the API's own words do. ``ca`` is a PEM file of the only authorities whose certificates are
    trusted.
    """

    #: The ETag of the newest answer, or "".
    etag: str = ""

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

    def send(self, call: Call[T]) -> T:
        """Return what an operation answers. Raises ApiProblem, ApiUnreachable."""
        response = self.answer(call)
        self.etag = response.headers.get("ETag", "")
        return call.read(self, response)

    def answer(self, call: Call[Any]) -> httpx.Response:
        """Return a successful answer as it came. Raises ApiProblem, ApiUnreachable."""
        send = partial(
            self._http.request, call.method, call.path, params=in_query(call.query), **call.rest
        )
        pauses_s = RETRY_PAUSES_S if call.may_repeat else ()
        steps = self.steps(call.path, pauses_s, random.uniform(0.8, 1.2))
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
    def open(self, call: StreamCall) -> Iterator[httpx.Response]:
        """Open a successful answer that is read piece by piece within the block.

        Raises ApiProblem, and ApiUnreachable also when the stream breaks off.
        """
        request = self._http.build_request(
            "GET",
            call.path,
            params=in_query(call.query),
            headers=call.headers,
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
