"""The sweeper: what the database says and what ZooKeeper holds are made to agree again.

Three repairs, each harmless when not needed: attempts whose claim is gone without a result are
lost; queued attempts that stand neither in the queue nor in a claim are put into the queue; runs
that a failed store threw out of memory are read again. Runs every few seconds, and at once when
a worker goes away.
"""

import asyncio
import contextlib
from datetime import timedelta

import structlog

from shoal.coordination import SessionLost, TaskQueue
from shoal.core import failpoints
from shoal.core.errors import ShoalError
from shoal.core.events import TaskEnded
from shoal.core.run import Attempt, Run
from shoal.core.states import HELD_BY_WORKER, TaskSignal, TaskState
from shoal.master.engine import Clock, Engine
from shoal.master.perform import queue_entry

log = structlog.get_logger()

# Younger ones are most likely still on their way into the queue.
_SETTLED = timedelta(seconds=2)


class Sweeper:
    """Repairs for one master."""

    def __init__(self, engine: Engine, queue: TaskQueue, clock: Clock, interval_s: float) -> None:
        self._engine = engine
        self._queue = queue
        self._clock = clock
        self._interval_s = interval_s
        self._soon = asyncio.Event()

    def look_soon(self) -> None:
        """Sweep now instead of at the next interval. Called on the event loop."""
        self._soon.set()

    async def work(self) -> None:
        """Run for ever."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._soon.wait(), self._interval_s)
            self._soon.clear()
            try:
                await self._engine.heal()
                await self.sweep()
            except ShoalError as error:
                if not error.retriable and not isinstance(error, SessionLost):
                    raise
                log.warning("sweep failed; the next one repeats it", error=str(error))

    async def sweep(self) -> None:
        """Compare once. The order of the reads matters: queue before claims before memory."""
        now = self._clock()
        queued = [
            (run, a)
            for run, a in self._attempts(TaskState.QUEUED)
            # One from the future is old, too: the clock was set back.
            if a.queued_at is None or not now - _SETTLED <= a.queued_at <= now
        ]
        held = self._attempts(*HELD_BY_WORKER)
        # A claim moves an entry from the queue to the claims in one transaction, so an attempt
        # that is in neither, read in this order, was in neither for good.
        entries = {a.id: queue_entry(run, a) for run, a in queued}
        present = await self._queue.contains(list(entries.values()))
        absent = [(run, a) for run, a in queued if entries[a.id] not in present]
        ids = [a.id for _, a in (*absent, *held) if a.id is not None]
        claimed = await self._queue.claimed(ids)
        missing = [
            entries[a.id] for run, a in absent if a.id not in claimed and run.attempts[a.task] is a
        ]
        if missing:
            log.warning("queued tasks were missing in the queue", count=len(missing))
            await self._queue.put(missing)
        for run, attempt in held:
            if attempt.id not in claimed and self._is_still_held(run, attempt):
                self._declare_lost(run, attempt)

    def _attempts(self, *states: TaskState) -> list[tuple[Run, Attempt]]:
        """Stored newest attempts in ``states`` of all open runs of this master."""
        return [
            (run, attempt)
            for run in self._engine.runs.values()
            if any(run.counts[state] for state in states)
            for attempt in run.attempts.values()
            if attempt.state in states and attempt.id is not None
        ]

    @staticmethod
    def _is_still_held(run: Run, attempt: Attempt) -> bool:
        now = run.attempts[attempt.task]
        return now.number == attempt.number and now.state in HELD_BY_WORKER

    def _declare_lost(self, run: Run, attempt: Attempt) -> None:
        assert attempt.id is not None
        log.warning(
            "task lost with its worker",
            run=run.id,
            task=attempt.task,
            attempt=attempt.number,
            worker=attempt.worker,
        )
        event = TaskEnded(
            attempt.id, TaskSignal.LOSE, self._clock(), reason=f"worker {attempt.worker} went away"
        )
        failpoints.hit("lose.before_post")
        self._engine.post(run.partition, run.id, event)
