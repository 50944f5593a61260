"""How attempts end, and what follows: retries, and what the failure strategy stops."""

import hashlib
from datetime import datetime, timedelta
from typing import Any

from shoal.core.decide import deadlines
from shoal.core.decide.children import ChildRuns
from shoal.core.decide.draft import FAILURES, Draft
from shoal.core.definition.kinds import WITH_CHILDREN
from shoal.core.definition.model import FailureStrategy, RunWhen, TaskSpec
from shoal.core.runs.commands import CommandType
from shoal.core.runs.events import TaskClaimed, TaskEnded, TaskRequeued, TaskStarted
from shoal.core.runs.run import AskChild, Attempt, Kill, SkipCause, Termination, Withdraw
from shoal.core.runs.states import (
    HELD_BY_WORKER,
    TaskSignal,
    TaskState,
    WorkflowSignal,
    WorkflowState,
)
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.fingerprints import fingerprint
from shoal.core.runs.why.reasons import NOT_AGAIN, say
from shoal.core.timing import poll_interval
from shoal.core.timing.durations import format_duration

# A task that takes its worker down with it must not do so for ever.
MAX_LOSSES = 10

_W, _T = WorkflowState, TaskState
MAY_START = frozenset({_W.RUNNING, _W.PAUSING})
# Tasks that exist for the case of failure run even while a failure stops all others.
HANDLERS = frozenset({RunWhen.ANY_FAILED, RunWhen.ALWAYS})
# Who was killed by request has not failed, whatever its log says.
_HAS_ERROR = frozenset({TaskSignal.FAIL, TaskSignal.LOSE})


# -- reports of workers -------------------------------------------------------------------------


def claim(draft: Draft, event: TaskClaimed) -> None:
    """A worker has taken the attempt."""
    attempt = draft.newest(event.task_instance_id)
    if attempt is not None and attempt.state is _T.QUEUED:
        draft.signal(attempt.task, TaskSignal.CLAIM, worker=event.worker)


def requeue(draft: Draft, event: TaskRequeued) -> None:
    """A worker has not begun with the attempt: it is as if no worker had taken it yet.

    The worker puts it into the queue itself, in the step that ends its claim.
    """
    attempt = draft.newest(event.task_instance_id)
    if attempt is None or attempt.state is not _T.CLAIMED:
        return
    if (attempt.worker, attempt.queued_at) != (event.worker, event.queued_at):
        return  # late: it was returned before, and taken again
    task = attempt.task
    if must_end(draft, attempt):
        if attempt.termination is Termination.TIMEOUT:
            finish_terminated(draft, attempt)
        else:
            finish(draft, task, TaskSignal.KILL, reason=say(Code.REASON_KILLED_UNSTARTED))
        return
    # It goes on waiting since it was first queued; the microsecond tells this hold from the last.
    queued_at = event.queued_at + timedelta(microseconds=1)
    draft.signal(task, TaskSignal.RETURN, worker=None, queued_at=queued_at)
    if draft.failing and draft.rule(task) not in HANDLERS:
        draft.skip(task, SkipCause.FAILING, say(Code.REASON_NOT_STARTED))
    elif draft.state is _W.PAUSING:
        draft.signal(task, TaskSignal.HOLD)
    else:
        deadlines.remind_of(draft, draft.attempt(task))


def start(draft: Draft, event: TaskStarted) -> None:
    """The attempt's process runs."""
    attempt = draft.newest(event.task_instance_id)
    if attempt is not None and attempt.state is _T.CLAIMED and attempt.worker == event.worker:
        started_at = _account(attempt, event.started_at) or event.at
        started = draft.signal(
            attempt.task, TaskSignal.START, started_at=started_at, environment=event.environment
        )
        deadlines.remind_of(draft, started)


def end(draft: Draft, event: TaskEnded) -> None:
    """A worker reports the end of an attempt, or a master declares it lost."""
    attempt = draft.newest(event.task_instance_id)
    if attempt is None or attempt.state not in HELD_BY_WORKER or attempt.worker is None:
        return  # repeated, or from a worker that was given up
    if event.worker is not None and event.worker != attempt.worker:
        return
    signal, reason = event.signal, event.reason
    if attempt.termination is not None and signal in (TaskSignal.LOSE, TaskSignal.RESCHEDULE):
        signal = TaskSignal.KILL  # it was to die: it does not run again
    if attempt.termination is Termination.TIMEOUT and signal is TaskSignal.KILL:
        signal, reason = TaskSignal.FAIL, _timed_out(draft, attempt)
    failures = attempt.failures
    if event.permanent and signal is TaskSignal.FAIL:  # it has used up its retries
        failures = max(failures, draft.spec(attempt.task).retries)
    error_line = event.error_line if signal in _HAS_ERROR else None
    finish(
        draft,
        attempt.task,
        signal,
        failures=failures,
        reason=reason,
        exit_code=event.exit_code,
        started_at=_account(attempt, event.started_at) or attempt.started_at,
        finished_at=_account(attempt, event.ended_at) or event.at,
        outputs=event.outputs if signal is TaskSignal.SUCCEED else {},
        environment=event.environment or attempt.environment,
        cpu_s=event.cpu_s,
        max_rss_kb=event.max_rss_kb,
        error_line=error_line,
        fingerprint=fingerprint(error_line) if error_line else None,
    )
    if signal is TaskSignal.RESCHEDULE:
        _look_again(draft, attempt.task, event)


def _account(attempt: Attempt, moment: datetime | None) -> datetime | None:
    """Return when the worker says it was, but not before the attempt was queued.

    Its clock may have jumped; timeouts count from the start.
    """
    if moment is None or attempt.queued_at is None:
        return moment
    return max(moment, attempt.queued_at)


# -- what follows -------------------------------------------------------------------------------


def finish(draft: Draft, task: str, signal: TaskSignal, **fields: Any) -> None:
    """End a task's newest attempt, try again if it may, and stop others if the strategy says so."""
    was_failing = draft.failing
    if signal is TaskSignal.LOSE and task in draft.run.plan.once:
        fields["reason"] = (fields.get("reason") or say(Code.REASON_WORKER_GONE)) + NOT_AGAIN
    ended = draft.signal(task, signal, **fields)
    may_run_again = not was_failing or draft.rule(task) in HANDLERS
    if draft.state in MAY_START and may_run_again:
        _try_again(draft, ended)
    if draft.failing and not was_failing:
        _stop_starting(draft, task)


def _try_again(draft: Draft, ended: Attempt) -> None:
    """Open a new attempt after a failure with retries left, or after a loss."""
    spec = draft.spec(ended.task)
    if (
        ended.state is _T.FAILED
        and ended.termination is not Termination.KILL
        and ended.failures < spec.retries
    ):
        delay_s = retry_delay_s(spec, ended)
        draft.reopen(
            ended.task,
            failures=ended.failures + 1,
            losses=ended.losses,
            due_at=draft.at + timedelta(seconds=delay_s) if delay_s else None,
            detail=kept_detail(draft, ended),
            ready=True,
        )
    elif ended.task in draft.run.plan.once:
        return
    elif ended.state is _T.LOST and ended.losses < MAX_LOSSES:
        draft.reopen(
            ended.task,
            failures=ended.failures,
            losses=ended.losses + 1,
            looks=ended.looks,
            waiting_since=ended.waiting_since,
            warned_at=ended.warned_at if ended.looks else None,
            ready=True,
        )


def _look_again(draft: Draft, task: str, event: TaskEnded) -> None:
    """Open the attempt that looks next, whatever the strategy says: that skips it, if need be."""
    ended = draft.attempt(task)
    draft.reopen(
        task,
        failures=ended.failures,
        looks=ended.looks + 1,
        waiting_since=ended.waiting_since or ended.started_at or draft.at,
        due_at=draft.at + timedelta(seconds=poll_interval.bounded(event.again_s)),
        warned_at=ended.warned_at,
        reason=ended.reason,  # the last answer, until there is another one
        ready=True,
    )


def retry_delay_s(spec: TaskSpec, ended: Attempt) -> float:
    """Return the seconds from a failed attempt's end to its retry, the same on every master."""
    # The exponent is bounded by ``retries``, the base by the model: no overflow.
    delay = spec.retry_delay * spec.retry_backoff**ended.failures
    if spec.retry_max_delay is not None:
        delay = min(delay, spec.retry_max_delay)
    if spec.retry_jitter:
        digest = hashlib.sha256(f"retry of {ended.id}".encode()).digest()
        delay *= 1 + spec.retry_jitter * int.from_bytes(digest[:8]) / 2**64
    return delay


def kept_detail(draft: Draft, ended: Attempt) -> dict[str, Any]:
    """Return what the next attempt knows of this one: the instances to continue."""
    return dict(ended.detail) if draft.kind(ended.task) in WITH_CHILDREN else {}


def _stop_starting(draft: Draft, culprit: str) -> None:
    """A failure has just made the instance fail: hold back or kill the other tasks."""
    fail_fast = draft.run.plan.spec.on_failure is FailureStrategy.FAIL_FAST
    for attempt in draft.attempts():
        if attempt.finished or draft.rule(attempt.task) in HANDLERS:
            continue
        if attempt.state in HELD_BY_WORKER:
            if fail_fast:
                end_early(draft, attempt, Termination.KILL)
            continue
        if attempt.started_at is not None:  # a pause holds it in the middle of its work
            if fail_fast and attempt.state is not _T.WAITING:  # else it is released, and dies next
                drop(draft, attempt)
                why = say(Code.REASON_KILLED_FOR, task=culprit)
                draft.signal(attempt.task, TaskSignal.KILL, reason=why)
            continue
        drop(draft, attempt)
        draft.skip(attempt.task, SkipCause.FAILING, say(Code.REASON_NOT_STARTED, task=culprit))


# -- before its time ----------------------------------------------------------------------------


def must_end(draft: Draft, attempt: Attempt) -> bool:
    """Whether an attempt that a worker holds is to be killed in the instance's present state."""
    if draft.state is _W.STOPPING or attempt.termination is not None:
        return True
    fail_fast = draft.run.plan.spec.on_failure is FailureStrategy.FAIL_FAST
    return fail_fast and draft.failing and draft.rule(attempt.task) not in HANDLERS


def end_early(draft: Draft, attempt: Attempt, termination: Termination) -> None:
    """End an attempt that is at work, or is to look: by its worker, its children, or at once."""
    attempt = draft.note(attempt.task, termination=termination)
    key = (attempt.task, attempt.number)
    if attempt.worker is not None:
        draft.act(Kill(key, attempt.worker))
    elif stop_children(draft, attempt):
        return
    else:
        finish_terminated(draft, attempt)


def stop_children(draft: Draft, attempt: Attempt) -> bool:
    """Ask the instances of an attempt to stop; False: there is none to wait for.

    A quarantined one has the request too, and no attempt waits for its answer.
    """
    if draft.kind(attempt.task) not in WITH_CHILDREN:
        return False
    children = ChildRuns(attempt)
    for index in [*children.moving(), *children.paused()]:
        ask_child(draft, attempt, children, index, CommandType.STOP)
    draft.note(attempt.task, detail=children.detail)
    return children.is_awaited()


def ask_child(
    draft: Draft, attempt: Attempt, children: ChildRuns, index: int, request: CommandType
) -> None:
    """Send one of the attempt's instances a request."""
    number, instance_id = children.ask(index, request)
    key = (attempt.task, attempt.number)
    draft.send(AskChild(key, index, request, instance_id, number))


def finish_terminated(draft: Draft, attempt: Attempt) -> None:
    """End an attempt that no worker works on, now or yet: its children have ended.

    Quarantined ones are left as they are, and named in the reason.
    """
    if attempt.termination is Termination.TIMEOUT:
        finish(draft, attempt.task, TaskSignal.FAIL, reason=_timed_out(draft, attempt))
        return
    fields: dict[str, Any] = {}
    # The caller may have changed the children since it read the attempt.
    if left := ChildRuns(draft.attempt(attempt.task)).left_alone():
        more = len(left) - 1 or None
        fields["reason"] = say(Code.REASON_CHILD_QUARANTINED, instance=left[0], more=more)
    finish(draft, attempt.task, TaskSignal.KILL, **fields)


def _timed_out(draft: Draft, attempt: Attempt) -> str:
    timeout = format_duration(draft.spec(attempt.task).timeout or 0)
    answer = (attempt.reason or None) if attempt.looks else None
    return say(Code.REASON_TIMED_OUT, after=timeout, answer=answer)


def drop(draft: Draft, attempt: Attempt) -> None:
    """Undo what an attempt that is not at work has left elsewhere."""
    if attempt.state is _T.QUEUED:
        draft.act(Withdraw((attempt.task, attempt.number)))
    elif attempt.started_at is not None:  # a pause holds it, or it goes on after one
        stop_children(draft, attempt)


_W, _T = WorkflowState, TaskState


def settle(draft: Draft) -> None:
    """End the instance, or its pause, when nothing is left to do."""
    if draft.state not in MAY_START | {_W.STOPPING} or draft.held:
        return
    if draft.open:
        if draft.state is _W.PAUSING:
            draft.move(WorkflowSignal.SETTLE)
        return
    if draft.state is _W.STOPPING and draft.count(_T.KILLED, _T.LOST):
        asked = draft.reason or draft.run.reason
        draft.move(WorkflowSignal.SETTLE, reason=asked or say(Code.REASON_STOPPED))
        return
    failed = draft.unhandled(*FAILURES)
    ignored = draft.run.plan.spec.on_failure is FailureStrategy.IGNORE
    if failed and not ignored:
        draft.move(WorkflowSignal.FAIL, reason=say(Code.REASON_TASKS_FAILED, tasks=failed))
    else:
        reason = say(Code.REASON_FAILURES_IGNORED, tasks=failed) if failed else None
        draft.move(WorkflowSignal.SUCCEED, reason=reason)
