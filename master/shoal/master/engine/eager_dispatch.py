"""Eager dispatch: a worker that reports an end gets the tasks directly behind, without the queue.

The decision that queues a task is followed at once by the one that the reporting worker has
claimed it, and both are stored in one transaction. So the task is CLAIMED before its payload
leaves, as always, and never appears in the queue. In ZooKeeper the claim of the task before it
stands for both until the worker has replaced it by one for the new task, in one step
(``TaskQueue.transfer``). What holds at any time, whichever process dies:

- No worker holds an attempt that is CLAIMED by it if it has neither the attempt's claim nor that
  of a task directly before it. The sweeper reads them in this order, old claims before new ones,
  and declares such an attempt LOST. A worker that loses its session kills its tasks, as always.
- A worker reports the end of an attempt only while the claim of that very attempt stands, so the
  claim that the next eager dispatch rests upon always exists.
- If the answer is lost, the worker, which still holds the old claim, reports again, and the
  present owner of the partition grants again what is CLAIMED by this worker directly behind.
- Only behind a success: an attempt that failed can have a successor while what it started still
  runs (a recovery, a forced success), and the sweeper would not find its claim. A success stays
  the newest attempt of its task until its instance has ended, and with it all tasks behind it.
- A worker that has had an attempt does not take it a second time from a late answer.

Eager dispatch overtakes nothing: the worker names the first entry that it knows to wait in its
queue, and gets no task that comes behind that entry. What it has no room for goes into the queue.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from shoal.coordination.queue.entry import Place
from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.states import TaskState


@dataclass(slots=True)
class EagerRequest:
    """How many of the tasks directly behind those whose end it reports a worker would take."""

    worker: str
    group: str
    room: int
    before: Place | None  # of the first that waits in the group's queue, as far as the worker knows
    taken: dict[int, int] = field(default_factory=dict)  # how many, by the task instance that ended

    @property
    def room_left(self) -> int:
        """How many tasks it would take still."""
        return self.room - sum(self.taken.values())


def taken_by(eager: EagerRequest, run: Run, task_instance_id: int, decision: Decision) -> list[int]:
    """Return the queued successors to dispatch to the reporting worker.

    ``decision`` follows from the end of ``task_instance_id`` and was applied to ``run``. All others
    that it has queued are put into the queue.
    """
    eager.taken.pop(task_instance_id, None)  # of an earlier decision, which was not stored
    ended = run.attempt_by_id(task_instance_id)
    if ended is None or ended.state is not TaskState.SUCCEEDED or eager.room_left <= 0:
        return []
    queued = (run.attempts[task] for task in run.plan.downstream[ended.task])
    tasks = run.plan.tasks
    # The first few of what may be all tasks of a large run.
    first = heapq.nsmallest(
        eager.room_left,
        (
            (int(tasks[attempt.task].priority), attempt.id)
            for attempt in queued
            if attempt.state is TaskState.QUEUED
            and attempt.id is not None  # else it is not stored yet
            and (attempt.task, attempt.number) in decision.moved
            and tasks[attempt.task].worker_group == eager.group
        ),
    )
    ids = [
        own
        for priority, own in first
        if eager.before is None or (run.priority, run.id, priority, own) < eager.before
    ]
    if ids:
        eager.taken[task_instance_id] = len(ids)
    return ids


def behind(run: Run, task_instance_id: int, worker: str) -> Iterator[Attempt]:
    """Yield what ``worker`` holds directly behind an attempt, not begun as far as is known."""
    ended = run.attempt_by_id(task_instance_id)
    if ended is None or ended.state is not TaskState.SUCCEEDED:
        return
    for task in run.plan.downstream[ended.task]:
        attempt = run.attempts[task]
        if attempt.state is TaskState.CLAIMED and attempt.worker == worker:
            yield attempt


def held_before(run: Run, attempt: Attempt) -> list[int]:
    """Return the task instances whose claims may stand for ``attempt``, which its worker holds."""
    before = (run.attempts[task] for task in run.plan.upstream[attempt.task])
    return [b.id for b in before if b.id is not None and b.worker == attempt.worker]
