"""Permits: a bounded number of callers have a connection, the others wait in order."""

import asyncio
import time

from shoal.sql.driver.translation import all_in_use

_TIMEOUT_S = 30.0


class Permits:
    """``size`` turns. Each that was taken has to be released."""

    def __init__(self, size: int) -> None:
        self._free = asyncio.Semaphore(size)

    async def take(self) -> None:
        """Return when it is our turn. Raises SqlError if that takes longer than half a minute."""
        if not self._free.locked():
            await self._free.acquire()  # at once: without a timer, and no waiter is overtaken
            return
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await self._free.acquire()
        except TimeoutError:
            raise all_in_use() from None

    def release(self) -> None:
        """Let the next one have a turn."""
        self._free.release()


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
