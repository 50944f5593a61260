"""The events that wait for the engine, in the order in which they came."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from shoal.master.engine.batch import Item


class Inbox:
    """A queue of events, taken in batches."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._is_filled = asyncio.Event()

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def put(self, item: Item) -> None:
        """Add an event behind all others."""
        self._items.append(item)
        self._is_filled.set()

    def requeue(self, items: Iterable[Item]) -> None:
        """Add events that were taken, before all others: the events of a run keep their order."""
        self._items.extendleft(reversed(list(items)))
        if self._items:
            self._is_filled.set()

    async def wait(self) -> None:
        """Wait until there are events."""
        await self._is_filled.wait()

    def take(self, most: int, most_tasks: int, tasks_of: Callable[[Item], int]) -> list[Item]:
        """Take the next batch: at most so many events, about so many tasks unless it is one event.

        ``tasks_of`` returns how many tasks an event may be about.
        """
        items: list[Item] = []
        tasks = 0
        while self._items and len(items) < most:
            tasks += tasks_of(self._items[0])
            if items and tasks > most_tasks:
                break
            items.append(self._items.popleft())
        if not self._items:
            self._is_filled.clear()
        return items

    def clear(self) -> None:
        """Drop all events."""
        self._items.clear()
        self._is_filled.clear()
