"""Others' turn: a task whose database work never waits must not keep the event loop to itself."""

import asyncio
import time

# How long pieces of short work, one after the other, may block the event loop.
SHORT_S = 0.002


class Pause:
    """Suspends the caller now and then, if nothing else has."""

    def __init__(self) -> None:
        self._since_s: float | None = None  # the first work since a suspension; monotonic

    async def if_due(self) -> None:
        """Before a piece of work: let others run if there has been much of it."""
        if self._since_s is None:
            self._since_s = time.monotonic()
        elif time.monotonic() - self._since_s > SHORT_S:
            self._since_s = None
            await asyncio.sleep(0)

    def made(self) -> None:
        """After the caller was suspended by something else."""
        self._since_s = None
