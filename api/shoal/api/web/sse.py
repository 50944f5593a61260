"""Server-sent events: the wire format, and streams that end when they should.

A stream ends with its source, with its client, or when the process stops, whichever comes first.
While it is quiet a comment goes out now and then, so that both sides notice a dead connection.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from weakref import WeakSet

import anyio
from fastapi.responses import StreamingResponse
from starlette.types import Send

from shoal.api.web.errors import FieldError, InvalidRequest, TooManyRequests

MEDIA_TYPE = "text/event-stream"
RETRY_MS = 2_000  # after which a browser comes back
_RETRY_AFTER_S = 5.0  # for a caller with too many streams

Watching = AbstractAsyncContextManager[asyncio.Event]


def encode(event: str, data: str, event_id: str | None = None) -> bytes:
    """Return one event. ``data`` may have any line breaks; the others must have none."""
    lines = [] if event_id is None else [f"id: {event_id}"]
    lines.append(f"event: {event}")
    unified = data.replace("\r\n", "\n").replace("\r", "\n")
    lines += [f"data: {line}" for line in unified.split("\n")]
    return ("\n".join(lines) + "\n\n").encode()


def resumed_at(last_event_id: str, kind: str) -> int:
    """Return where a client goes on. ``kind``: what an id has to be. Raises InvalidRequest."""
    if not (last_event_id.isascii() and last_event_id.isdecimal() and len(last_event_id) < 19):
        raise InvalidRequest([FieldError("Last-Event-ID", f"is not {kind}")])
    return int(last_event_id)


def comment(text: str) -> bytes:
    """Return a line that clients ignore."""
    return f": {text}\n\n".encode()


class Streams:
    """Open streams of one process: they end when ``stopping`` is set.

    A quiet stream sends a comment each ``heartbeat_s``. A caller has at most ``per_caller`` streams
    at a time.
    """

    def __init__(self, stopping: asyncio.Event, heartbeat_s: float, per_caller: int) -> None:
        self.stopping, self._heartbeat_s = stopping, heartbeat_s
        self._per_caller = per_caller
        # A stream whose response is never sent goes with the request that it was for.
        self._open: dict[str, WeakSet[EventStream]] = {}

    async def open(
        self, source: AsyncGenerator[bytes, None], rights: Watching, caller: str
    ) -> "EventStream":
        """Return a response that streams ``source``; see ``EventStream``.

        ``source`` is closed if there is none. Raises TooManyRequests.
        """
        streams = self._open.setdefault(caller, WeakSet())
        if len(streams) >= self._per_caller:
            await source.aclose()
            raise TooManyRequests(
                f"{caller} has {len(streams)} event streams open, and may have "
                f"{self._per_caller} (streams_per_caller); close some, or follow several things "
                "with one stream (`about`)",
                _RETRY_AFTER_S,
            )
        stream = EventStream(source, self.stopping, self._heartbeat_s, rights, self._ended(caller))
        streams.add(stream)
        return stream

    def _ended(self, caller: str) -> Callable[["EventStream"], None]:
        def forget(stream: EventStream) -> None:
            if (streams := self._open.get(caller)) is not None:
                streams.discard(stream)
                if not streams:
                    del self._open[caller]

        return forget


class EventStream(StreamingResponse):
    """A response of server-sent events.

    ``source`` yields encoded events and is closed in every case, whichever side ends the stream.
    ``rights`` is entered for as long as the stream is open; its event says that the caller may not
    follow it any longer.
    """

    media_type = MEDIA_TYPE

    def __init__(
        self,
        source: AsyncGenerator[bytes, None],
        stopping: asyncio.Event,
        heartbeat_s: float,
        rights: Watching,
        ended: "Callable[[EventStream], None]",
    ) -> None:
        self._ended = ended
        self._live = _live(source, stopping, heartbeat_s, rights)
        super().__init__(self._live, headers={"X-Accel-Buffering": "no"})

    async def stream_response(self, send: Send) -> None:
        """Send the events, then release the source even if this task is being cancelled."""
        try:
            await super().stream_response(send)
        finally:
            self._ended(self)
            with anyio.CancelScope(shield=True):
                await self._live.aclose()


async def _live(
    source: AsyncGenerator[bytes, None],
    stopping: asyncio.Event,
    heartbeat_s: float,
    rights: Watching,
) -> AsyncGenerator[bytes, None]:
    async with (
        aclosing(source),
        rights as ended,
        aclosing(_until(source, stopping, ended, heartbeat_s)) as events,
    ):
        async for event in events:
            yield event


async def _until(
    source: AsyncGenerator[bytes, None],
    stopping: asyncio.Event,
    ended: asyncio.Event,
    heartbeat_s: float,
) -> AsyncGenerator[bytes, None]:
    stop, end = asyncio.create_task(stopping.wait()), asyncio.create_task(ended.wait())
    item: asyncio.Task[bytes | None] | None = None
    try:
        yield f"retry: {RETRY_MS}\n".encode() + comment("connected")
        while True:
            item = item or asyncio.create_task(_next(source))
            done, _ = await asyncio.wait(
                {item, stop, end}, timeout=heartbeat_s, return_when=asyncio.FIRST_COMPLETED
            )
            if end in done:
                yield comment("the rights have changed; connect again with Last-Event-ID")
                return
            if item in done:
                found, item = item.result(), None
                if found is None:
                    return
                yield found
            elif stop in done:
                yield comment("the server stops; connect again with Last-Event-ID")
                return
            else:
                yield comment("still here")
    finally:
        stop.cancel()
        end.cancel()
        if item is not None:
            # A generator cannot be closed while another task waits for its next item.
            item.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({item})


async def _next(source: AsyncIterator[bytes]) -> bytes | None:
    return await anext(source, None)
