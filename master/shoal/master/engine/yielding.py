"""Long work in the event loop, a few milliseconds at a time."""

import asyncio
import time

_TURN_S = 0.01  # heartbeats and calls wait for it


class Yielding:
    """Lets other tasks have their turn after 10 ms of work."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def pause(self) -> None:
        """Let others have their turn if this one was long. Called between small steps."""
        if time.monotonic() - self._began >= _TURN_S:
            await asyncio.sleep(0)
            self._began = time.monotonic()
