"""Actions of stored decisions on their way out, while the engine decides what comes next."""

import asyncio
from collections.abc import Awaitable, Callable, Container, Sequence

from shoal.core.run import Action, Run

Performed = Sequence[tuple[Run, tuple[Action, ...]]]
Perform = Callable[[Performed], Awaitable[None]]


class Outbox:
    """Has actions performed in the order in which their decisions were stored.

    One call at a time: what comes meanwhile goes out together with the next one. What is of a
    partition that was given up is left out, since its next owner derives it from what is stored.
    """

    def __init__(self, perform: Perform, partitions: Container[int]) -> None:
        """``partitions``: those held, at any time."""
        self._perform = perform
        self._partitions = partitions
        self._waiting: list[tuple[Run, tuple[Action, ...]]] = []
        self._news = asyncio.Event()

    def add(self, run: Run, actions: tuple[Action, ...]) -> None:
        """Have actions performed soon, after all that were added before."""
        if actions:
            self._waiting.append((run, actions))
            self._news.set()

    async def work(self) -> None:
        """Run for ever."""
        while True:
            await self._news.wait()
            self._news.clear()
            waiting, self._waiting = self._waiting, []
            if ours := [one for one in waiting if one[0].partition in self._partitions]:
                await self._perform(ours)
