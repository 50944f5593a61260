"""Wake-ups at instants: the retry delays of runs, and reminders."""

import asyncio
import heapq
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime

from shoal.core.runs.run import Action, Kill, Run, WakeAt
from shoal.core.runs.states import FINISHED_WORKFLOW
from shoal.master.services.service import PeriodicService

Clock = Callable[[], datetime]

# A sleep is no longer than this: the clock may be set, and the machine may stand still.
LONGEST_SLEEP_S = 60.0
_FEW = 1_000  # entries that are not worth being tidied up


class Timers(PeriodicService):
    """Calls ``on_due(instance_id)`` at (or shortly after) each instant set with ``add``."""

    name = "timers"

    def __init__(self, clock: Clock, on_due: Callable[[int], None], kill_retry_s: float) -> None:
        """``kill_retry_s``: an instance is woken so long after a kill, to repeat it."""
        super().__init__(LONGEST_SLEEP_S)
        self._clock, self._on_due = clock, on_due
        self._kill_retry_s = kill_retry_s
        self._heap: list[tuple[datetime, int]] = []
        self._set: defaultdict[int, set[datetime]] = defaultdict(set)  # by instance
        self._count = 0  # of them; what else is in the heap was dropped
        self._reminders: dict[int, asyncio.TimerHandle] = {}  # at most one for each instance

    def on_action(self, run: Run, action: Action) -> None:
        """Set what the action of a stored decision asks for."""
        match action:
            case WakeAt(at):
                if run.state not in FINISHED_WORKFLOW:  # it may have ended since
                    self.add(at, run.id)
            case Kill():
                self.remind(self._kill_retry_s, run.id)
            case _:
                pass

    def on_ended(self, run: Run) -> None:
        self.drop(run.id)

    def on_dropped(self, instance_id: int) -> None:
        self.drop(instance_id)

    def add(self, at: datetime, instance_id: int) -> None:
        """Wake ``instance_id`` at ``at``. Adding the same twice is adding it once."""
        entry = (at, instance_id)
        if at in self._set.get(instance_id, ()):
            return
        self._set[instance_id].add(at)
        self._count += 1
        heapq.heappush(self._heap, entry)
        if self._heap[0] == entry:
            self._wakeup.notify()

    def drop(self, instance_id: int) -> None:
        """Forget all wake-ups of an instance: it has ended, or another master has it."""
        self._count -= len(self._set.pop(instance_id, ()))
        if (reminder := self._reminders.pop(instance_id, None)) is not None:
            reminder.cancel()
        if len(self._heap) > 2 * self._count + _FEW:
            self._heap = [(at, one) for one, some in self._set.items() for at in some]
            heapq.heapify(self._heap)

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

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            for reminder in self._reminders.values():
                reminder.cancel()

    async def poll(self, is_regular: bool) -> None:
        self._wakeup.due_in(self._fire_due())

    def _fire_due(self) -> float:
        """Call what is due; return the seconds until the next one, or the longest sleep."""
        now = self._clock()
        due: set[int] = set()
        while self._heap and self._heap[0][0] <= now:
            at, instance_id = heapq.heappop(self._heap)
            if at not in self._set.get(instance_id, ()):
                continue  # dropped, and perhaps added again: then it stands in the heap once more
            self._set[instance_id].discard(at)
            if not self._set[instance_id]:
                del self._set[instance_id]
            self._count -= 1
            due.add(instance_id)
        for instance_id in due:
            self._on_due(instance_id)
        if not self._heap:
            return LONGEST_SLEEP_S
        # Never less than a millisecond: wall clock and loop clock differ a little.
        return min(LONGEST_SLEEP_S, max(0.001, (self._heap[0][0] - now).total_seconds()))
