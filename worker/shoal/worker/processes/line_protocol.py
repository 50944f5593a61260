"""Messages over a connected socket, one per line."""

import asyncio
from collections.abc import Callable
from typing import cast


class Lines(asyncio.Protocol):
    """One end of the connection. ``on_line`` gets each line as it comes, without its line end.

    ``heard`` is set when the other side has said something, or is gone; ``lost`` when it has closed
    its end, or died, and ``on_lost`` is called. Half a line is dropped then.
    """

    def __init__(
        self, on_line: Callable[[bytes], None], on_lost: Callable[[], None] = lambda: None
    ) -> None:
        self._on_line, self._on_lost = on_line, on_lost
        self._begun: list[bytes] = []  # of a line whose end has not come yet
        self._transport: asyncio.Transport
        self._room = asyncio.Event()
        self._room.set()
        self.heard, self.lost = asyncio.Event(), asyncio.Event()

    def send(self, line: bytes) -> None:
        """Send a line; if the other side is gone, it is lost."""
        if not self._transport.is_closing():
            self._transport.write(line + b"\n")

    async def room(self) -> None:
        """Return when little waits to be read by the other side, or it is gone."""
        await self._room.wait()

    def close(self) -> None:
        """Close our end, when all that was sent is on its way."""
        self._transport.close()

    # -- called by the event loop -----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        *lines, begun = data.split(b"\n")
        if lines and self._begun:
            lines[0] = b"".join((*self._begun, lines[0]))
            self._begun.clear()
        if begun:
            self._begun.append(begun)
        for line in lines:
            self._on_line(line)
            self.heard.set()

    def pause_writing(self) -> None:
        """See asyncio."""
        self._room.clear()

    def resume_writing(self) -> None:
        """See asyncio."""
        self._room.set()

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio."""
        for event in (self._room, self.heard, self.lost):
            event.set()
        self._on_lost()
