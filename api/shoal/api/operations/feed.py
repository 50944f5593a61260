"""The live history: one reader of the event table per process, any number of listeners.

The reader runs only while there are listeners. Each has a bounded queue; one that reads too
slowly is disconnected and comes back with the id of the last event it saw.

Hundreds of listeners must not delay the other requests of the process. So an event is encoded once
for all of them, a listener takes everything unread in one piece, and listeners are woken a few at a
time. The next events are read when all have been woken: the more listeners there are, the more
events each piece holds.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import islice
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

# One stream takes the event loop some 0.3 ms for each piece that it sends.
WOKEN_AT_ONCE = 8
PAUSE_BETWEEN_S = 0.008
COMPARED_AT_ONCE = 2_000  # events with what listeners want; a millisecond or two
EVENTS_AT_ONCE = 100  # of one piece
_TEXTS_KEPT = 1_000


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

    def offer(self, events: Iterable[ChangeEvent]) -> bool:
        """Take the events that match, and return whether there are any. Never waits.

        ``too_slow`` is set if they do not fit.
        """
        is_woken = False
        for event in events:
            if self.too_slow or not self._wants(event):
                continue
            key = self._key(event)
            self._unread.pop(key, None)
            if len(self._unread) < self._size:
                self._unread[key] = event
            else:
                self.too_slow = True
            is_woken = True
        if is_woken:
            self._awake.set()
        return is_woken

    def end(self) -> None:
        """Let the listener finish what it has, and nothing more."""
        self._ended = True
        self._awake.set()

    async def pieces(self) -> AsyncIterator[list[ChangeEvent]]:
        """Yield what is unread, at most ``EVENTS_AT_ONCE`` events at a time.

        Ends when too many are unread or the feed has ended.
        """
        while True:
            while self._unread:
                keys = list(islice(self._unread, EVENTS_AT_ONCE))
                yield [self._unread.pop(key) for key in keys]
            if self.too_slow or self._ended:
                return
            self._awake.clear()
            await self._awake.wait()


class SharedTexts:
    """Encodes each event once for all listeners. Keeps the texts of the newest events."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[ChangeEvent, bytes]] = OrderedDict()

    def of(self, event: ChangeEvent, encode: Callable[[ChangeEvent], bytes]) -> bytes:
        """Return the text of an event: what ``encode``, the same for all listeners, returns."""
        kept = self._kept.get(event.id)
        if kept is not None and kept[0] is event:
            return kept[1]
        text = encode(event)
        self._kept[event.id] = event, text
        if len(self._kept) > _TEXTS_KEPT:
            self._kept.popitem(last=False)
        return text


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
        self.texts = SharedTexts()
        self._subscriptions: dict[Subscription, None] = {}  # those that came first are woken first
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
            self._subscriptions[subscription] = None
        try:
            yield subscription
        finally:
            self._subscriptions.pop(subscription, None)
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
                await self._deliver(events)
                pause_s = SHORTEST_PAUSE_S if events else min(pause_s * 1.5, LONGEST_PAUSE_S)
                if await self._is_asked_to_poll(pause_s):
                    pause_s = SHORTEST_PAUSE_S
        finally:
            if self._tail is tail:  # not stopped: this is a failure, so no listener may wait for us
                self._tail = None
                self._end_all()

    async def _deliver(self, events: Sequence[ChangeEvent]) -> None:
        """Offer events to the present listeners, with pauses for other work of the loop.

        Later listeners have a position behind these events.
        """
        woken = compared = 0
        for subscription in list(self._subscriptions) if events else ():
            woken += subscription.offer(events)
            compared += len(events)
            if woken >= WOKEN_AT_ONCE:
                woken = compared = 0
                await asyncio.sleep(PAUSE_BETWEEN_S)
            elif compared >= COMPARED_AT_ONCE:
                compared = 0
                await asyncio.sleep(0)

    async def _is_asked_to_poll(self, pause_s: float) -> bool:
        self._poll.clear()
        try:
            async with asyncio.timeout(pause_s):
                await self._poll.wait()
        except TimeoutError:
            return False
        return True
