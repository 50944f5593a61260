"""Eager dispatch: a worker that reports an end gets the tasks directly behind, without the queue.

States of such a task: QUEUED and CLAIMED are decided together, and stored in one fenced transaction
with the end of the task before it. So it is CLAIMED before its payload leaves, as always, and never
appears in the queue. In ZooKeeper the claim of the task before stands for both, until the worker
replaces it by a claim for the new task in one step (``TaskQueue.transfer``).

What always holds, and why:

- A worker holds an attempt that is CLAIMED by it only with the claim of that attempt, or of a task
  directly before it. The sweeper reads old claims before new ones. Without either it declares the
  attempt LOST.
- A worker reports the end of an attempt only while the claim of that very attempt stands. So the
  claim that the next eager dispatch rests upon always exists.
- Only a success has tasks dispatched eagerly behind it. It stays the newest attempt of its task
  until its instance has ended, and with it all tasks behind it. A failed attempt may get a
  successor while what it started still runs (a recovery, a forced success), and the sweeper would
  not find its claim.

What may fail, and what happens then:

- The master dies, or loses the partition: end and new claim are stored together or not at all. A
  worker without an answer still holds the old claim and reports again. The present owner grants
  again what is CLAIMED by this worker directly behind.
- The worker dies, or its session ends: both claims vanish, and the attempt is LOST. The worker has
  killed its tasks before that, when its lease ended.
- The answer to the transfer is lost: the worker repeats it in the same session, which finds out
  whose the new claim is. While another session holds it the old claim stays. If it cannot be had,
  the process is killed at once.
- An answer comes late, with an attempt that has ended or was returned: each report remembers which
  attempts of its instance have gone since, and those are not taken a second time.
- A kill, stop, pause or timeout meets a task whose grant is under way: the task is CLAIMED like any
  other. A kill that its worker does not know yet is repeated. A pause lets the task run.

Eager dispatch overtakes nothing: the worker names the first entry that it knows to wait in its
queue, and gets no task that comes behind that entry, or that is of another project and not more
urgent: projects take turns. What it has no room for goes into the queue.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from shoal.coordination.cluster.lanes import lane_of
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
    lane: int | None = None  # of that one; None: not known, and taken for that of the task
    taken: dict[int, int] = field(default_factory=dict)  # how many, by the task instance that ended

    @property
    def room_left(self) -> int:
        """How many tasks it would take still."""
        return self.room - sum(self.taken.values())

    def precedes(self, place: Place, lane: int) -> bool:
        """Whether nothing that waits in the queue comes before a task.

        If the first that waits is of another lane and as urgent, it is the turn of that lane.
        """
        if self.before is None:
            return True
        if self.lane is not None and lane != self.lane:
            return place[0] < self.before[0]
        return place < self.before


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
    lane = lane_of(run.plan.spec.project)
    ids = [
        own
        for priority, own in first
        if eager.precedes((run.priority, run.id, priority, own), lane)
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
