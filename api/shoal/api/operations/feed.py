"""The live history: one reader of the event table per process, any number of listeners.

The reader runs only while there are listeners. Each has a bounded queue; one that reads too
slowly is disconnected and comes back with the id of the last event it saw.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from operator import attrgetter

import structlog

from shoal.core.errors import ShoalError
from shoal.core.runs.records import ChangeEvent
from shoal.sql import Database, EventTail

log = structlog.get_logger()

# Pauses between two reads of the table: short after an event, longer and longer without.
SHORTEST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.25
PAUSE_AFTER_ERROR_S = 1.0  # listeners keep their position meanwhile


class Subscription:
    """The events of one listener from ``position`` on, in order of their ids, each once.

    ``key``: of unread events with the same key only the newest is kept, in its own place.
    """

    def __init__(
        self,
        wants: Callable[[ChangeEvent], bool],
        size: int,
        key: Callable[[ChangeEvent], Hashable] = attrgetter("id"),
    ) -> None:
        self._wants, self._size, self._key = wants, size, key
        self._unread: dict[Hashable, ChangeEvent] = {}
        self._awake = asyncio.Event()
        self.position = 0  # events up to this id are not delivered here: read them yourself
        self.too_slow = False  # events were lost: the listener has to come back
        self._ended = False

    def offer(self, events: Iterable[ChangeEvent]) -> None:
        """Take those that match. Never waits; ``too_slow`` is set if they do not fit."""
        for event in events:
            if self.too_slow or not self._wants(event):
                continue
            key = self._key(event)
            self._unread.pop(key, None)
            if len(self._unread) < self._size:
                self._unread[key] = event
            else:
                self.too_slow = True
            self._awake.set()

    def end(self) -> None:
        """Let the listener finish what it has, and nothing more."""
        self._ended = True
        self._awake.set()

    async def __aiter__(self) -> AsyncIterator[ChangeEvent]:
        """Yield events until too many are unread or the feed has ended."""
        while True:
            while self._unread:
                yield self._unread.pop(next(iter(self._unread)))
            if self.too_slow or self._ended:
                return
            self._awake.clear()
            await self._awake.wait()


class Feed:
    """Reads the event table for all listeners of this process. One event loop."""

    def __init__(
        self,
        database: Database,
        unread_events: int = 1000,
        pause_after_error_s: float = PAUSE_AFTER_ERROR_S,
    ) -> None:
        self._database, self._pause_after_error_s = database, pause_after_error_s
        self._unread_events = unread_events
        self._subscriptions: set[Subscription] = set()
        self._tail: EventTail | None = None
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._poll = asyncio.Event()

    @property
    def listeners(self) -> int:
        """The present number of subscriptions."""
        return len(self._subscriptions)

    @asynccontextmanager
    async def subscribe(
        self,
        wants: Callable[[ChangeEvent], bool],
        key: Callable[[ChangeEvent], Hashable] = attrgetter("id"),
    ) -> AsyncIterator[Subscription]:
        """Listen for the length of the block; ``key`` as in Subscription.

        Raises DatabaseUnavailable.
        """
        subscription = Subscription(wants, self._unread_events, key)
        async with self._starting:
            if self._tail is None or self._task is None or self._task.done():
                tail = EventTail(self._database)
                await tail.start()
                self._tail = tail
                self._task = asyncio.create_task(self._run(tail), name="event feed")
            tail = self._tail
            # Nothing awaits from here to the end: the position and the set belong together.
            assert tail.position is not None
            subscription.position = tail.position
            self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            if not self._subscriptions:
                self._stop()

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task = self._tail = None

    def poll_soon(self) -> None:
        """Something is about to happen: poll at once, and often for a while."""
        self._poll.set()

    async def aclose(self) -> None:
        """Stop reading; listeners end."""
        task = self._task
        self._stop()
        self._end_all()
        if task is not None:
            await asyncio.wait({task})

    def _end_all(self) -> None:
        for subscription in self._subscriptions:
            subscription.end()

    async def _run(self, tail: EventTail) -> None:
        pause_s = SHORTEST_PAUSE_S
        try:
            while True:
                try:
                    events = await tail.next_batch()
                except ShoalError as error:
                    log.warning("events not read", error=str(error))
                    await asyncio.sleep(self._pause_after_error_s)
                    continue
                for subscription in self._subscriptions:
                    subscription.offer(events)
                pause_s = SHORTEST_PAUSE_S if events else min(pause_s * 1.5, LONGEST_PAUSE_S)
                if await self._is_asked_to_poll(pause_s):
                    pause_s = SHORTEST_PAUSE_S
        finally:
            if self._tail is tail:  # not stopped: this is a failure, so no listener may wait for us
                self._tail = None
                self._end_all()

    async def _is_asked_to_poll(self, pause_s: float) -> bool:
        self._poll.clear()
        try:
            async with asyncio.timeout(pause_s):
                await self._poll.wait()
        except TimeoutError:
            return False
        return True
