"""Handing on: who reports the end of a task gets the tasks directly behind it, without the queue.

The decision that queues a task is followed at once by the one that its reporter has claimed it,
and both are stored in one transaction; so the task is CLAIMED before its payload leaves, as ever,
and was in the queue for nobody to see. In ZooKeeper the claim of the task before it stands for
both until the worker has replaced it by one for the new task, in one step
(``TaskQueue.transfer``). What holds all the time, whoever dies:

- An attempt that is CLAIMED by a worker which has neither its claim nor that of a task directly
  before it is held by nobody: the sweeper looks at them in this order, old claims before new
  ones, and declares it LOST. The worker kills its tasks when it loses its session, as ever.
- A worker reports the end of an attempt only when the claim of that very attempt stands, so the
  one that the next hand-on rests upon is always there.
- If the answer is lost the worker, which holds the old claim still, reports again, and whoever
  owns the partition by then grants again what is CLAIMED by this worker right behind.
- Only behind a success: an attempt that failed can have a successor while what it set off still
  runs (a recovery, a forced success), and the sweeper would not find its claim. A success stays
  the newest attempt of its task until its instance has ended, and with it all behind it.
- A worker that has had an attempt does not take it a second time from a late answer.

Handing on overtakes nobody: the worker tells the first entry that it knows to wait in its queue,
and gets nothing that comes behind it; of what it has no room for the rest goes into the queue.
"""

import heapq
from collections.abc import Iterator

from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.states import TaskState
from shoal.master.engine.batch import EagerRequest


def taken_by(eager: EagerRequest, run: Run, task_instance_id: int, decision: Decision) -> list[int]:
    """Return the task instances that whoever offers takes of those that ``decision`` has queued.

    ``decision`` follows from the end of ``task_instance_id`` and was applied to ``run``. Whom
    nobody takes is put into the queue.
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
            and attempt.id is not None  # else it is known to nobody yet
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
    """Yield what ``worker`` holds right behind an attempt, and has not begun as far as we know."""
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
