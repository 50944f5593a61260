"""Granted attempts that wait for a slot, and what becomes of those that wait too long.

A worker claims more than it has slots for (attempts/held.py), so that many short tasks share the
requests of a claim. What is granted starts at once if a slot is free, else in the order of the
queue as slots become free: by priority, and within it the projects in turn. If long tasks have come
meanwhile, those that wait are requeued soon, so that another worker may have them.

A slot that a task has just left is not given to a less urgent one before the report of its end is
answered: the answer may bring the task that follows.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from shoal.coordination import QueueEntry
from shoal.coordination.queue import LaneTurns
from shoal.proto import shoal_pb2 as pb
from shoal.worker.attempts.held import KEPT_S, HeldAttempt, HeldAttempts


class Waiting(NamedTuple):
    """An attempt that waits since ``since``, in monotonic seconds."""

    attempt: HeldAttempt
    payload: pb.Payload
    since: float


class WaitingLines:
    """Entries by priority and lane, each lane a heap; what has left is still in it."""

    def __init__(self) -> None:
        self._lines: dict[int, dict[int, list[QueueEntry]]] = {}  # by priority, by lane
        self._turns: defaultdict[int, LaneTurns] = defaultdict(LaneTurns)  # by priority

    def add(self, entry: QueueEntry) -> None:
        """Let an entry stand in line."""
        lanes = self._lines.setdefault(entry.workflow_priority, {})
        heappush(lanes.setdefault(entry.lane, []), entry)

    def begun(self, entry: QueueEntry) -> None:
        """Note that an entry has got a slot: it is the turn of other lanes."""
        turns = self._turns[entry.workflow_priority]
        turns.keep({*self._lines.get(entry.workflow_priority, ()), entry.lane})
        turns.take(entry.lane)

    def pop(self, waiting: Container[int]) -> QueueEntry | None:
        """Take out the entry that comes next among those whose tasks are ``waiting``."""
        while self._lines:
            priority = min(self._lines)
            lanes = self._lines[priority]
            lane = self._turns[priority].next(lanes)
            entry = heappop(lanes[lane])
            is_there = entry.task_instance_id in waiting
            if not lanes[lane]:
                del lanes[lane]
            if not lanes:
                del self._lines[priority]
            if is_there:
                return entry
        return None


class PrefetchBuffer:
    """Gives slots to granted attempts. Belongs to the event loop.

    ``begin`` runs an attempt that has got a slot; ``requeue`` gets those that will not begin
    here, which have left the buffer.
    """

    def __init__(
        self,
        attempts: HeldAttempts,
        begin: Callable[[HeldAttempt, pb.Payload], None],
        requeue: Callable[[Sequence[Waiting]], None],
    ) -> None:
        self._times = attempts.times
        self._attempts, self._begin, self._requeue = attempts, begin, requeue
        self._waiting: dict[int, Waiting] = {}  # by task instance, in the order of arrival
        self._lines = WaitingLines()
        self._timer: asyncio.TimerHandle | None = None  # while any waits
        self._kept_timer: asyncio.TimerHandle | None = None  # while a slot is kept for another one
        self._closed = False
        attempts.when_slot_is_free(self._begin_next)

    def add(self, attempt: HeldAttempt, payload: pb.Payload) -> None:
        """Begin with ``attempt`` as soon as there is a slot for it."""
        waiting = Waiting(attempt, payload, time.monotonic())
        if self._closed:
            self._requeue([waiting])
            return
        if self._attempts.has_slot_for(attempt.claim.entry.workflow_priority):
            self._begin_with(waiting)
            return
        self._waiting[attempt.id] = waiting
        self._lines.add(attempt.claim.entry)
        if self._attempts.slot_is_free:
            self._begin_later()
        if self._timer is None:
            self._schedule_check(self._times.patience_s)

    def leave(self, attempt: HeldAttempt) -> bool:
        """Have ``attempt`` begin no more; return whether it was waiting."""
        waiting = self._waiting.get(attempt.id)
        if waiting is None or waiting.attempt is not attempt:
            return False
        del self._waiting[attempt.id]
        return True

    def requeue_all(self) -> None:
        """Requeue all that wait."""
        self._requeue_since(time.monotonic())

    def close(self) -> None:
        """Begin nothing more: requeues all that wait, and all that come from now on."""
        self._closed = True
        self.requeue_all()

    def _begin_next(self) -> None:
        """Fill free slots with the first in the order of the queue."""
        while self._attempts.slot_is_free and (entry := self._lines.pop(self._waiting)):
            if not self._attempts.has_slot_for(entry.workflow_priority):
                self._lines.add(entry)
                self._begin_later()
                return
            self._begin_with(self._waiting.pop(entry.task_instance_id))

    def _begin_later(self) -> None:
        """A slot is kept for a more urgent task, but not for long."""
        if self._kept_timer is None:
            self._kept_timer = asyncio.get_running_loop().call_later(KEPT_S, self._slot_was_kept)

    def _slot_was_kept(self) -> None:
        self._kept_timer = None
        self._begin_next()

    def _begin_with(self, waiting: Waiting) -> None:
        self._attempts.take_slot(waiting.attempt)
        self._lines.begun(waiting.attempt.claim.entry)
        self._begin(waiting.attempt, waiting.payload)

    def _schedule_check(self, delay_s: float) -> None:
        due = time.monotonic() + delay_s
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._requeue_old, due)

    def _requeue_old(self, due: float) -> None:
        """Requeue those that have waited too long."""
        self._timer = None
        now = time.monotonic()
        if now > due + self._times.late_s:
            self._schedule_check(self._times.late_s)
            return
        self._requeue_since(now - self._times.patience_s)
        if self._waiting:
            first = next(iter(self._waiting.values()))
            self._schedule_check(first.since + self._times.patience_s - now)

    def _requeue_since(self, since: float) -> None:
        """Requeue those that have waited since ``since`` or longer."""
        old = [waiting for waiting in self._waiting.values() if waiting.since <= since]
        for waiting in old:
            del self._waiting[waiting.attempt.id]
        if old:
            self._requeue(old)
