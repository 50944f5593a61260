"""Reads server-sent events as a client does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.waiting import DEADLINE_S


@dataclass
class Received:
    """One event, or a comment (``kind`` is empty then)."""

    kind: str = ""
    data: str = ""
    id: str | None = None
    comment: str = ""


@dataclass
class Reader:
    """The events of one open stream."""

    response: httpx.Response
    lines: AsyncIterator[str]
    _seen: list[Received] = field(default_factory=list)

    async def next(self, *, comments: bool = False) -> Received | None:
        """Return the next event; None at the end of the stream. Raises TimeoutError."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                found = await self._next()
                if found is None or found.kind or comments:
                    return found

    async def _next(self) -> Received | None:
        event = Received()
        data: list[str] = []
        async for line in self.lines:
            if not line:
                event.data = "\n".join(data)
                return event
            name, _, value = line.partition(": ")
            match name:
                case "event":
                    event.kind = value
                case "data" | "data:":
                    data.append(value)
                case "id":
                    event.id = value
                case "":
                    event.comment = value
        return None


@asynccontextmanager
async def stream(client: httpx.AsyncClient, path: str, **headers: Any) -> AsyncIterator[Reader]:
    """Open a stream and read its first comment: from then on nothing is missed."""
    async with client.stream("GET", path, headers=headers) as response:
        if response.status_code != 200:
            await response.aread()
            raise AssertionError(response.text)
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        reader = Reader(response, response.aiter_lines())
        first = await reader.next(comments=True)
        assert first is not None
        assert first.comment == "connected"
        yield reader
