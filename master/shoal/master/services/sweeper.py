"""The sweeper: what the database says and what ZooKeeper holds are made to agree again.

Four repairs, each harmless when not needed: attempts whose claim is gone without a result are
lost, once their worker has nothing of them (revocation.py); queued attempts that stand neither in
the queue nor in a claim are put into the queue; entries of attempts that are not queued (any
more), or not in that place, are removed; runs that a failed store threw out of memory are read
again. Runs every few seconds, and at once when a worker goes away.

Every sweep checks all claims. Of the queue it checks the attempts that are first in its order, for
there claimers die, and the next part of the rest, up to some 10,000 attempts and as many entries:
all of a usual queue every time, a million entries within ten minutes or so.

**A stale entry is removed without harm to one that is about to be valid.** An entry is put only
after its attempt was stored as QUEUED, by the owner of its partition. The sweeper decides, and
sends the removal, while the engine is locked (``Engine.stored``): at that moment the attempt is
not queued in the database. Should a later decision queue it (a paused run that goes on), its put
is sent after the removal in the same session, and ZooKeeper keeps that order. Should another
master become the owner, it did so after our session or our owner znode was gone; the znode
belongs to the same session and is given up only after ``Engine.drop``, which waits for us. So
its puts, too, come after the removal, or the removal is refused with the session.

An entry of a queued attempt that stands in another place than the attempt's (earlier versions put
entries into other buckets) is removed once an entry stands in the right place, or a claim.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import structlog

from shoal.coordination import CoordinationError, QueueEntry, TaskQueue
from shoal.coordination.queue.survey import START
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.states import HELD_BY_WORKER, TaskState
from shoal.master.dispatch.revocation import is_still_held
from shoal.master.engine.actions import queue_entry
from shoal.master.engine.eager_dispatch import held_before
from shoal.master.loops import LongTurn
from shoal.master.services.service import PASSING, MasterContext, PeriodicService

log = structlog.get_logger()

# Younger ones are most likely still on their way into the queue.
_SETTLED = timedelta(seconds=2)
_SUSPECT_RUNS = 50  # read from the database at once, while the engine waits

# Finds out, in the background, about attempts that are held without claims; see revocation.py.
Revoke = Callable[[Sequence[tuple[Run, Attempt]]], None]

_Key = tuple[int, int]  # a run's place in the order of the queue: its priority and id
_FIRST: _Key = (-1, 0)


@dataclass(frozen=True)
class SweepLimits:
    """What one sweep checks: attempts and runs from the first on, then of the rest."""

    first_attempts: int = 2_000
    first_runs: int = 200
    attempts: int = 10_000
    runs: int = 1_000
    entries: int = 10_000  # of which some may be stale


class Sweeper(PeriodicService):
    """Repairs for one master."""

    name = "sweeper"
    # A refusal by ZooKeeper is about what stands there, and that gets repaired.
    passing: ClassVar[tuple[type[Exception], ...]] = (*PASSING, CoordinationError)

    def __init__(
        self,
        context: MasterContext,
        queue: TaskQueue,
        revoke: Revoke,
        limits: SweepLimits | None = None,
    ) -> None:
        self._interval_s = context.settings.sweep_interval_s
        super().__init__(self._interval_s, first_s=self._interval_s)
        self._engine, self._clock = context.engine, context.clock
        self._partitions = context.partitions
        self._queue, self._revoke = queue, revoke
        self._limits = limits or SweepLimits()
        self._checked_up_to = _FIRST  # runs whose queued attempts were checked
        self._page_end = START  # queue buckets whose entries were read

    def on_queue_failure(self) -> None:
        self._wakeup.notify()

    def on_workers_changed(self) -> None:
        self._wakeup.notify()

    async def poll(self, is_regular: bool) -> None:
        try:
            await self._engine.heal()
            await self.sweep()
        finally:
            self._wakeup.due_in(self._interval_s)  # from its end: a sweep may take long

    async def sweep(self) -> None:
        """Compare once."""
        self._revoke(await self._find_missing())
        await self._remove_stale()

    # -- claims and entries that are missing ---------------------------------------------------

    async def _find_missing(self) -> list[tuple[Run, Attempt]]:
        """Put missing entries back; return the attempts that are held without claims.

        The order of the reads matters: queue before claims before memory.
        A worker that asks for a payload has a claim, perhaps a new one of the same attempt that was
        not read. So attempts that are asked for during the sweep are not judged.
        """
        self._engine.asked.clear()
        now = self._clock()
        queued = [
            (run, a)
            async for run, a in self._attempts_of(self._some_queued(), TaskState.QUEUED)
            # One from the future is old, too: the clock was set back.
            if a.queued_at is None or not now - _SETTLED <= a.queued_at <= now
        ]
        # Tasks that the master runs itself have no worker, and no claim that could be gone.
        held = [
            (run, a)
            async for run, a in self._attempts_of(list(self._engine.runs), *HELD_BY_WORKER)
            if a.worker is not None
        ]
        # A claim moves an entry from the queue to the claims in one transaction, so absence in
        # both reads, in this order, proves that neither exists.
        turn = LongTurn()
        entries: dict[int | None, QueueEntry] = {}
        for run, a in queued:
            entries[a.id] = queue_entry(run, a)
            await turn.pause()
        present = await self._queue.contains(entries.values())
        absent = [(run, a) for run, a in queued if entries[a.id] not in present]
        ids = [a.id for _, a in (*absent, *held) if a.id is not None]
        claimed = await self._queue.claimed(ids)
        claimed |= await self._transferred([(r, a) for r, a in held if a.id not in claimed])
        missing = [
            entries[a.id] for run, a in absent if a.id not in claimed and run.attempts[a.task] is a
        ]
        if missing:  # unless a worker has put it back between the two reads
            back = await self._queue.contains(missing)
            missing = [entry for entry in missing if entry not in back]
        if missing:
            log.warning("queued tasks were missing in the queue", count=len(missing))
            await self._queue.put(missing)
        held = [(run, a) for run, a in held if a.id not in self._engine.asked]
        return [
            (run, a)
            for run, a in held
            if a.id not in claimed and is_still_held(self._engine, run, a)
        ]

    async def _transferred(self, unclaimed: Sequence[tuple[Run, Attempt]]) -> set[int]:
        """Return those of ``unclaimed`` that are held all the same (see eager_dispatch.py).

        The claim of a task before stands for one that was dispatched eagerly until its own claim
        replaces it in one step: so absence in both reads, in this order, proves that neither is
        there.
        """
        before = {a.id: held_before(run, a) for run, a in unclaimed if a.id is not None}
        if not before:
            return set()
        standing = await self._queue.claimed({b for some in before.values() for b in some})
        claimed = await self._queue.claimed(before)
        return claimed | {own for own, some in before.items() if standing.intersection(some)}

    async def _attempts_of(
        self, instance_ids: Sequence[int], *states: TaskState
    ) -> AsyncIterator[tuple[Run, Attempt]]:
        """Yield stored newest attempts in ``states`` of runs, as far as these are open still."""
        turn = LongTurn()
        for instance_id in instance_ids:
            run = self._engine.runs.get(instance_id)
            if run is not None and any(run.counts[state] for state in states):
                for attempt in _in_states(run, *states):
                    yield run, attempt
            await turn.pause()

    def _some_queued(self) -> list[int]:
        """Return the runs whose queued attempts this sweep checks, each once."""
        runs, limits = self._engine.runs, self._limits
        waiting = sorted((r.priority, r.id) for r in runs.values() if r.counts[TaskState.QUEUED])
        first = self._take(waiting, limits.first_attempts, limits.first_runs)
        rest = waiting[max(len(first), bisect_right(waiting, self._checked_up_to)) :]
        then = self._take(rest, limits.attempts, limits.runs)
        self._checked_up_to = then[-1] if len(then) < len(rest) else _FIRST
        return [run_id for _, run_id in (*first, *then)]

    def _take(self, waiting: Sequence[_Key], attempts: int, most: int) -> Sequence[_Key]:
        """Return the first runs of ``waiting`` with so many attempts, at most ``most`` runs."""
        for count, (_, run_id) in enumerate(waiting[:most]):
            if attempts <= 0:
                return waiting[:count]
            attempts -= self._engine.runs[run_id].counts[TaskState.QUEUED]
        return waiting[:most]

    # -- entries that are stale ----------------------------------------------------------------

    async def _remove_stale(self) -> None:
        """Read the next entries of the queue, and remove those of attempts not queued."""
        if not self._engine.epochs:
            return
        entries, self._page_end = await self._queue.page(self._page_end, self._limits.entries)
        if strays := [entry for entry in entries if entry.partition >= self._partitions]:
            log.warning("entries of no partition removed from the queue", count=len(strays))
            await self._queue.remove(strays)
        of_run: defaultdict[int, list[QueueEntry]] = defaultdict(list)
        for entry in entries:
            if entry.partition in self._engine.epochs:
                of_run[entry.workflow_instance_id].append(entry)
        turn = LongTurn()
        suspects: dict[int, list[QueueEntry]] = {}
        for run_id, some in of_run.items():
            if not_queued := _not_queued(self._engine.runs.get(run_id), some):
                suspects[run_id] = not_queued
            await turn.pause()
        runs = list(suspects)
        for start in range(0, len(runs), _SUSPECT_RUNS):
            batch = runs[start : start + _SUSPECT_RUNS]
            await self._remove_if_stale([e for run_id in batch for e in suspects[run_id]])

    async def _remove_if_stale(self, suspects: Sequence[QueueEntry]) -> None:
        """Remove those of ``suspects`` that are stale while nothing is decided: see above."""
        async with self._engine.stored({e.workflow_instance_id for e in suspects}) as runs:
            of_run: defaultdict[int, list[QueueEntry]] = defaultdict(list)
            for entry in suspects:
                if entry.partition in self._engine.epochs:
                    of_run[entry.workflow_instance_id].append(entry)
            turn = LongTurn()
            stale: list[QueueEntry] = []
            for run_id, some in of_run.items():
                stale += await self._stale(runs.get(run_id), some)
                await turn.pause()
            if stale:
                log.info("removing stale entries from the queue", count=len(stale))
                await self._queue.remove(stale)

    async def _stale(self, run: Run | None, entries: Sequence[QueueEntry]) -> list[QueueEntry]:
        """Return the stale ones of ``entries``, all of ``run``."""
        places = _places(run, entries)
        strays = [entry for entry in entries if places.get(entry.task_instance_id) != entry]
        moved = [e for stray in strays if (e := places.get(stray.task_instance_id))]
        if not moved:
            return strays
        # In this order, as in ``_find_missing``.
        present = {entry.task_instance_id for entry in await self._queue.contains(moved)}
        present |= await self._queue.claimed({e.task_instance_id for e in moved} - present)
        only = {entry.task_instance_id for entry in moved} - present
        return [entry for entry in strays if entry.task_instance_id not in only]


def _in_states(run: Run, *states: TaskState) -> list[Attempt]:
    """Return the stored newest attempts of ``run`` in ``states``."""
    return [a for a in run.attempts.values() if a.state in states and a.id is not None]


def _places(run: Run | None, entries: Sequence[QueueEntry]) -> dict[int, QueueEntry]:
    """Return, by task instance, where those of ``entries`` belong whose attempt is queued."""
    if run is None or not run.counts[TaskState.QUEUED]:
        return {}
    tasks = {entry.task_instance_id for entry in entries}
    queued = _in_states(run, TaskState.QUEUED)
    return {a.id: queue_entry(run, a) for a in queued if a.id is not None and a.id in tasks}


def _not_queued(run: Run | None, entries: Sequence[QueueEntry]) -> list[QueueEntry]:
    """Return those of ``entries``, all of ``run``, whose attempt is not queued in that place."""
    places = _places(run, entries)
    return [entry for entry in entries if places.get(entry.task_instance_id) != entry]
