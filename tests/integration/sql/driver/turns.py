"""Whether the event loop turns meanwhile."""

import asyncio
from typing import Self


class Turns:
    """Counts the turns of the event loop while it is entered."""

    async def __aenter__(self) -> Self:
        self.count = 0
        self._counting = asyncio.create_task(self._count())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._counting.cancel()

    async def _count(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)
