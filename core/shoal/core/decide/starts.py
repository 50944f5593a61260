"""What a task waits for once it may start, and where an instance begins."""

from collections.abc import Collection
from datetime import datetime, timedelta

from shoal.core.decide import deadlines, logic
from shoal.core.decide.draft import Draft
from shoal.core.decide.endings import must_end
from shoal.core.definition.kinds import LogicKind
from shoal.core.runs.events import SlotGranted
from shoal.core.runs.run import AskSlot, Attempt, Enqueue, Kill, WakeAt, Watch, Withdraw
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowSignal, WorkflowState

_W, _T = WorkflowState, TaskState


def begin(draft: Draft, without_slot: Collection[int] = ()) -> None:
    """Start a new instance, or derive the actions of a stored one again.

    ``without_slot``: queued attempts, by task instance, that wait for a slot once more.
    """
    if draft.state is _W.QUEUED and draft.run.admitted_at is not None:
        draft.move(WorkflowSignal.START)
    deadlines.remind(draft)
    for attempt in draft.attempts():
        key = (attempt.task, attempt.number)
        match attempt.state:
            case _T.WAITING:
                draft.to_judge.append((attempt.task, None))
            case _T.QUEUED if attempt.id in without_slot:
                draft.act(Withdraw(key))
                draft.signal(attempt.task, TaskSignal.HOLD)
                draft.signal(attempt.task, TaskSignal.RELEASE)
                draft.ready[attempt.task] = False  # it was ready, and still is
            case _T.QUEUED:
                draft.act(Enqueue(key))
            case _T.DELAYED | _T.UP_FOR_RETRY if attempt.due_at is not None:
                draft.act(WakeAt(attempt.due_at))
            case _T.BLOCKED:
                draft.act(AskSlot(key, draft.spec(attempt.task).concurrency_group or ""))
            case _T.RUNNING if draft.kind(attempt.task) is LogicKind.DEPENDENT:
                draft.act(Watch(key))
            case _T.CLAIMED | _T.RUNNING if attempt.worker and must_end(draft, attempt):
                draft.act(Kill(key, attempt.worker))
            case _:
                pass


def admit(draft: Draft) -> None:
    """Start an instance that has waited for others of its workflow."""
    if draft.state is not _W.QUEUED or draft.run.admitted_at is not None:
        return
    draft.admitted_at = draft.at
    draft.move(WorkflowSignal.START)
    deadlines.remind(draft)
    draft.to_judge.extend((task, None) for task in draft.run.plan.tasks)


def make_ready(draft: Draft, task: str) -> None:
    """A task may start: it waits for its delay, then for a slot, then for a worker."""
    attempt = draft.attempt(task)
    if draft.state is _W.PAUSING:
        draft.signal(task, TaskSignal.HOLD)
        return
    due_at = attempt.due_at or _start_delay(draft, attempt)
    if due_at is None or due_at <= draft.at:
        after_delay(draft, task)
    else:
        is_delay = attempt.looks > 0 or attempt.failures == attempt.losses == 0
        signal = TaskSignal.DELAY if is_delay else TaskSignal.BACK_OFF
        draft.signal(task, signal, due_at=due_at)
        draft.act(WakeAt(due_at))
    if attempt.looks:
        deadlines.remind_of(draft, draft.attempt(task))


def _start_delay(draft: Draft, attempt: Attempt) -> datetime | None:
    delay = draft.spec(attempt.task).delay
    if not delay or attempt.failures or attempt.losses or attempt.looks:
        return None
    return draft.at + timedelta(seconds=delay)


def after_delay(draft: Draft, task: str) -> None:
    """The task's delay is over: it waits for a slot if it needs one."""
    group = draft.spec(task).concurrency_group
    if group is None:
        after_slot(draft, task)
        return
    attempt = draft.signal(task, TaskSignal.BLOCK)
    draft.act(AskSlot((task, attempt.number), group))


def take_slot(draft: Draft, event: SlotGranted) -> None:
    """The slot is there. One that is no longer wanted frees itself."""
    attempt = draft.newest(event.task_instance_id)
    if attempt is not None and attempt.state is _T.BLOCKED:
        after_slot(draft, attempt.task)


def after_slot(draft: Draft, task: str) -> None:
    """Nothing is left to wait for: hand the task to the workers, or work on it."""
    if draft.kind(task) is not None:
        logic.start(draft, task)
        return
    attempt = draft.signal(task, TaskSignal.QUEUE, queued_at=draft.at)
    draft.act(Enqueue((task, attempt.number)))
