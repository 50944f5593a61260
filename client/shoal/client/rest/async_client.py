"""The API for programs with an event loop: a method for every operation."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from shoal.client.discovery import REFUSED, Api, find_api
from shoal.client.libraries import httpx
from shoal.client.rest.operations.call import Call, StreamCall, T
from shoal.client.rest.operations.exchange import (
    RETRY_PAUSES_S,
    START_PAUSES_S,
    TIMEOUT_S,
    ApiAddress,
    ApiExchange,
    in_query,
    stream_timeout,
)
from shoal.client.rest.operations.generated.operations import AsyncOperations


class AsyncConnection(ApiExchange):
    """As ``ApiConnection``, for one event loop."""

    def __init__(self, address: ApiAddress, headers: Mapping[str, str]) -> None:
        super().__init__(address)
        self._http = httpx.AsyncClient(**self.options(headers))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Return what an operation answers. Raises ApiProblem, ApiUnreachable."""
        return call.read(self, await self._request(call))

    async def _request(self, call: Call[Any]) -> httpx.Response:
        query = in_query(call.query)
        send = partial(self._http.request, call.method, call.path, params=query, **call.rest)
        steps = self.steps(call.path, may_repeat=call.may_repeat)
        step = next(steps)
        while True:
            try:
                if step is not None:
                    await asyncio.sleep(step)
                    step = next(steps)
                    continue
                try:
                    response = await send()
                except httpx.TransportError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(response)
            except StopIteration as done:
                found: httpx.Response = done.value
                return found

    @asynccontextmanager
    async def open(self, call: StreamCall) -> AsyncIterator[httpx.Response]:
        """Open a successful answer that is read piece by piece within the block.

        Raises ApiProblem, and ApiUnreachable also when the stream breaks off.
        """
        try:
            async with self._http.stream(
                "GET",
                call.path,
                params=in_query(call.query),
                headers=call.headers,
                timeout=stream_timeout(),
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise self.problem(response)
                yield response
        except httpx.TransportError as error:
            raise self.unreachable(error) from error


class AsyncShoalClient(AsyncOperations):
    """The API at ``url``; use it with ``async with``.

    ::

        async with AsyncShoalClient.connect() as shoal:
            page = await shoal.list_projects(limit=100)

    What each method takes and answers is in ``docs/api.md``. Requests that may safely be repeated
    are, a few times within two seconds. Raises ApiProblem for every error answer and
    ApiUnreachable if there is none.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float = TIMEOUT_S,
        hint: str = "start it with `shoal up`",
        refused: str = REFUSED,
        ca: Path | None = None,
        folder: Path | None = None,
        retry_pauses_s: Sequence[float] = RETRY_PAUSES_S,
        start_pauses_s: Sequence[float] = (),
    ) -> None:
        address = ApiAddress(
            url, hint, refused, ca, folder, timeout_s, retry_pauses_s, start_pauses_s
        )
        self._connection = AsyncConnection(address, {"Authorization": f"Bearer {token}"})
        super().__init__(self._connection)
        self.url = self._connection.url

    @classmethod
    def connect(cls, data: Path | None = None) -> Self:
        """Return a client of the cluster that ``find_api`` finds. Raises NoCluster."""
        return cls.of(find_api(data))

    @classmethod
    def of(cls, api: Api) -> Self:
        """Return a client of an API."""
        return cls(
            api.url,
            api.token,
            hint=api.hint,
            refused=api.refused,
            ca=api.ca,
            folder=api.expected,
            start_pauses_s=START_PAUSES_S if api.is_supervised else (),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.aclose()
