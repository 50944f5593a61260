"""Wake-ups at instants: the retry delays of runs, and reminders."""

import asyncio
import heapq
from collections.abc import Callable
from datetime import datetime

Clock = Callable[[], datetime]


class Timers:
    """Calls ``on_due(instance_id)`` at (or a little after) each instant set with ``add``."""

    def __init__(self, clock: Clock, on_due: Callable[[int], None]) -> None:
        self._clock = clock
        self._on_due = on_due
        self._heap: list[tuple[datetime, int]] = []
        self._set: set[tuple[datetime, int]] = set()
        self._reminders: dict[int, datetime] = {}  # at most one for each instance
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

    def remind(self, at: datetime, instance_id: int) -> None:
        """Wake ``instance_id`` at ``at``, or at the reminder that is set for it already.

        For what is repeated until it works: each repetition asks for the next one, and however
        many ask, only one comes.
        """
        if instance_id not in self._reminders:
            self._reminders[instance_id] = at
            self.add(at, instance_id)

    async def work(self) -> None:
        """Run for ever."""
        while True:
            self._earlier.clear()
            timeout = self._fire_due()
            try:
                await asyncio.wait_for(self._earlier.wait(), timeout)
            except TimeoutError:
                continue

    def _fire_due(self) -> float | None:
        """Call what is due; return the seconds until the next one, None if there is none."""
        now = self._clock()
        due: set[int] = set()
        while self._heap and self._heap[0][0] <= now:
            at, instance_id = entry = heapq.heappop(self._heap)
            self._set.discard(entry)
            if self._reminders.get(instance_id) == at:
                del self._reminders[instance_id]
            due.add(instance_id)
        for instance_id in due:
            self._on_due(instance_id)
        if not self._heap:
            return None
        # Never less than a millisecond: wall clock and loop clock differ a little.
        return max(0.001, (self._heap[0][0] - now).total_seconds())
