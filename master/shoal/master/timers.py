"""Wake-ups at instants: the retry delays of runs, and reminders."""

import asyncio
import heapq
from collections.abc import Callable
from datetime import datetime

from shoal.master.alarm import wait_for

Clock = Callable[[], datetime]


class Timers:
    """Calls ``on_due(instance_id)`` at (or a little after) each instant set with ``add``."""

    def __init__(self, clock: Clock, on_due: Callable[[int], None]) -> None:
        self._clock = clock
        self._on_due = on_due
        self._heap: list[tuple[datetime, int]] = []
        self._set: set[tuple[datetime, int]] = set()
        self._reminders: dict[int, asyncio.TimerHandle] = {}  # at most one for each instance
        self._earlier = asyncio.Event()

    def add(self, at: datetime, instance_id: int) -> None:
        """Wake ``instance_id`` at ``at``. Adding the same twice is adding it once."""
        entry = (at, instance_id)
        if entry in self._set:
            return
        self._set.add(entry)
        heapq.heappush(self._heap, entry)
        if self._heap[0] == entry:
            self._earlier.set()

    def remind(self, after_s: float, instance_id: int) -> None:
        """Wake ``instance_id`` in ``after_s`` seconds, or at the reminder set for it already.

        For what is repeated until it works: each repetition asks for the next one, and however
        many ask, only one comes. A wall clock that is set back does not put it off.
        """
        if instance_id not in self._reminders:
            loop = asyncio.get_running_loop()
            self._reminders[instance_id] = loop.call_later(after_s, self._remind, instance_id)

    def _remind(self, instance_id: int) -> None:
        del self._reminders[instance_id]
        self._on_due(instance_id)

    async def work(self) -> None:
        """Run for ever."""
        try:
            while True:
                self._earlier.clear()
                timeout = self._fire_due()
                await wait_for(self._earlier, timeout)
        finally:
            for reminder in self._reminders.values():
                reminder.cancel()

    def _fire_due(self) -> float | None:
        """Call what is due; return the seconds until the next one, None if there is none."""
        now = self._clock()
        due: set[int] = set()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            self._set.discard(entry)
            due.add(entry[1])
        for instance_id in due:
            self._on_due(instance_id)
        if not self._heap:
            return None
        # Never less than a millisecond: wall clock and loop clock differ a little.
        return max(0.001, (self._heap[0][0] - now).total_seconds())
