"""Slots that attempts share, those that wait for one, and what is measured of both.

Worker groups and concurrency groups are pools alike. Both give slots in the order of the queue in
docs/dispatch.md: priority of the workflow, instance, priority of the task, task instance.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from typing import NamedTuple

from shoal.core.runs.run import Run

Place = tuple[int, int, int, int]  # as ``coordination/queue/entry.py`` has it: smaller is earlier
HOUR_S = 3_600.0


class Turn(NamedTuple):
    """An attempt that has got a slot. ``wait_s``: since it was put into the queue."""

    run: Run
    task: str
    task_instance_id: int
    wait_s: float


@dataclass(slots=True)
class Congestion:
    """A time in which attempts waited and no slot was free. ``until`` None: to the end."""

    since: datetime
    until: datetime | None = None
    longest_s: float = 0.0  # the longest wait of those that got a slot in it, or still wait
    longest_since: datetime | None = None  # when that attempt began to wait
    most_waiting: int = 0
    # Slot-seconds that were taken meanwhile, by workflow.
    slot_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    attempts: Counter[str] = field(default_factory=Counter)  # that had a slot meanwhile


@dataclass(slots=True)
class Hour:
    """One hour of a pool. ``busy_s``: slot-seconds; ``longest_s``: waits that ended in it."""

    busy_s: float = 0.0
    longest_s: float = 0.0
    most_waiting: int = 0
    attempts: int = 0  # that got a slot


class _Holder(NamedTuple):
    workflow: str
    since: datetime


class Pool:
    """``slots`` slots from ``start`` to ``end``; never more are taken.

    A congestion with a wait of more than ``limit_s`` seconds is kept.
    """

    def __init__(
        self, name: str, slots: int, start: datetime, end: datetime, limit_s: float
    ) -> None:
        self.name, self.slots = name, slots
        self.free = slots
        self.waits = array("d")  # seconds, of those that got a slot and those that wait at the end
        self.hours = [Hour() for _ in range(max(1, -int(-(end - start).total_seconds() // 3_600)))]
        self.congestions: list[Congestion] = []
        self.most_taken = 0
        self.still_waiting = 0  # at the end
        self._start, self._end, self._limit_s = start, end, limit_s
        self._heap: list[tuple[int, int, int, int, str, Run, str]] = []
        self._queued: dict[int, datetime] = {}  # since when, by task instance id
        self._holders: dict[int, _Holder] = {}
        self._congestion: Congestion | None = None

    def __len__(self) -> int:
        return len(self._queued)

    @property
    def busy_s(self) -> float:
        """Slot-seconds that were taken, of slots released by now."""
        return sum(hour.busy_s for hour in self.hours)

    def holds(self, task_instance_id: int) -> bool:
        """Whether an attempt has a slot."""
        return task_instance_id in self._holders

    def put(self, place: Place, workflow: str, run: Run, task: str, now: datetime) -> None:
        """Let an attempt wait for a slot. ``workflow``: as what its work is counted."""
        heappush(self._heap, (*place, workflow, run, task))
        self._queued[place[3]] = now

    def withdraw(self, task_instance_id: int) -> None:
        """Take an attempt out of the queue, if it is there."""
        self._queued.pop(task_instance_id, None)

    def next(self, now: datetime) -> Turn | None:
        """Give a free slot to the first that waits; None: there is none, or nothing waits."""
        while self.free and self._heap:
            _, _, _, task_instance_id, workflow, run, task = heappop(self._heap)
            since = self._queued.pop(task_instance_id, None)
            if since is None:
                continue  # withdrawn
            self.free -= 1
            taken = self.slots - self.free
            if taken > self.most_taken:
                self.most_taken = taken
            self._holders[task_instance_id] = _Holder(workflow, now)
            wait_s = (now - since).total_seconds()
            self._note_wait(wait_s, since, now)
            return Turn(run, task, task_instance_id, wait_s)
        return None

    def release(self, task_instance_id: int, now: datetime) -> None:
        """Make the slot of an attempt free; nothing if it has none."""
        holder = self._holders.pop(task_instance_id, None)
        if holder is not None:
            self.free += 1
            self._note_work(holder, now)

    def settled(self, now: datetime) -> None:
        """Note how many wait, when all of this instant is done."""
        waiting, congestion = len(self._queued), self._congestion
        if waiting:
            if congestion is None:
                self._congestion = congestion = Congestion(now)
            congestion.most_waiting = max(congestion.most_waiting, waiting)
            hour = self._hour(now)
            hour.most_waiting = max(hour.most_waiting, waiting)
        elif congestion is not None:
            self._congestion = None
            congestion.until = now
            self._close(congestion, now)

    def finish(self) -> None:
        """Count what is taken and what waits when the simulation ends."""
        end = self._end
        self.still_waiting = len(self._queued)
        for since in self._queued.values():
            self._note_wait((end - since).total_seconds(), since, end, got=False)
        if self._congestion is not None:
            self._close(self._congestion, end)
            self._congestion = None
        for holder in self._holders.values():
            self._note_work(holder, end)
        self._holders.clear()

    # -- measuring ---------------------------------------------------------------------------

    def _hour(self, moment: datetime) -> Hour:
        index = int((moment - self._start).total_seconds() // HOUR_S)
        return self.hours[min(index, len(self.hours) - 1)]

    def _note_wait(
        self, wait_s: float, since: datetime, now: datetime, *, got: bool = True
    ) -> None:
        self.waits.append(wait_s)
        hour = self._hour(now)
        hour.attempts += got
        if wait_s > hour.longest_s:
            hour.longest_s = wait_s
        congestion = self._congestion
        if congestion is not None and wait_s > congestion.longest_s:
            congestion.longest_s, congestion.longest_since = wait_s, since

    def _note_work(self, holder: _Holder, until: datetime) -> None:
        """Count the time of a slot, hour by hour, and for the congestion that there is."""
        if self._congestion is not None:
            self._note_share(self._congestion, holder, until)
        for index, seconds in self._by_hour(holder.since, until):
            self.hours[index].busy_s += seconds

    def _by_hour(self, since: datetime, until: datetime) -> Iterable[tuple[int, float]]:
        begin = (since - self._start).total_seconds()
        end = (until - self._start).total_seconds()
        last = len(self.hours) - 1
        first = min(int(begin // HOUR_S), last)
        if first == last or end <= (first + 1) * HOUR_S:
            return ((first, end - begin),)  # mostly
        return self._over_hours(begin, end)

    def _over_hours(self, begin: float, end: float) -> Iterator[tuple[int, float]]:
        last = len(self.hours) - 1
        while begin < end:
            index = min(int(begin // HOUR_S), last)
            edge = end if index == last else min(end, (index + 1) * HOUR_S)
            yield index, edge - begin
            begin = edge

    @staticmethod
    def _note_share(congestion: Congestion, holder: _Holder, until: datetime) -> None:
        if until > congestion.since:
            taken = until - max(holder.since, congestion.since)
            congestion.slot_s[holder.workflow] += taken.total_seconds()
            congestion.attempts[holder.workflow] += 1

    def _close(self, congestion: Congestion, until: datetime) -> None:
        if congestion.longest_s <= self._limit_s:
            return
        for holder in self._holders.values():
            self._note_share(congestion, holder, until)
        self.congestions.append(congestion)


class Pools(dict[str, Pool]):
    """Pools by name. One that was not set up has no slots."""

    def __init__(
        self, slots: Mapping[str, int], start: datetime, end: datetime, limit_s: float
    ) -> None:
        super().__init__(
            {name: Pool(name, count, start, end, limit_s) for name, count in slots.items()}
        )
        self._start, self._end, self._limit_s = start, end, limit_s
        self.touched: dict[str, None] = {}  # in which a slot may be given

    def put(
        self, name: str, place: Place, workflow: str, run: Run, task: str, now: datetime
    ) -> None:
        """Let an attempt wait for a slot of a pool."""
        if name not in self:
            self[name] = Pool(name, 0, self._start, self._end, self._limit_s)
        self[name].put(place, workflow, run, task, now)
        self.touched[name] = None

    def withdraw(self, name: str, task_instance_id: int) -> None:
        """Take an attempt out of a queue, if it is there."""
        self[name].withdraw(task_instance_id)
        self.touched[name] = None

    def release(self, name: str, task_instance_id: int, now: datetime) -> None:
        """Free the slot of an attempt."""
        self[name].release(task_instance_id, now)
        self.touched[name] = None

    def turns(self, now: datetime) -> Iterator[Turn]:
        """Give free slots in the pools that were touched."""
        for name in list(self.touched):
            while (turn := self[name].next(now)) is not None:
                yield turn

    def settle(self, now: datetime) -> None:
        """Measure the pools that were touched: no more slots are given in this instant."""
        for name in self.touched:
            self[name].settled(now)
        self.touched.clear()
