"""Permits: a bounded number of callers have a connection, the others wait in order."""

import asyncio

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
