"""HTTP to the API: authentication, repetition of what may be repeated, errors as our own.

Synchronous; one connection belongs to one thread at a time.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from shoal.client.libraries import httpx
from shoal.client.rest.operations.call import Call, StreamCall, T
from shoal.client.rest.operations.exchange import LOOPBACK as LOOPBACK
from shoal.client.rest.operations.exchange import ApiAddress, ApiExchange, in_query, stream_timeout


class ApiConnection(ApiExchange):
    """Requests below ``url``/api/v1, with ``headers`` that say who asks."""

    #: The ETag of the newest answer, or "".
    etag: str = ""

    def __init__(self, address: ApiAddress, headers: Mapping[str, str]) -> None:
        super().__init__(address)
        self._http = httpx.Client(**self.options(headers))

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
        steps = self.steps(call.path, may_repeat=call.may_repeat)
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
