"""What happens next in a workflow instance: one pure function.

``decide(run, event)`` reads the run, never changes it, and returns the rows to store and the
actions to perform after they are stored. A crash between the two is healed by ``Begun``, which
derives the actions again from the stored state. Normal flow, requests, takeover and replay all
come through here.
"""

from collections.abc import Callable
from datetime import timedelta

from shoal.core.draft import FAILURES, Draft
from shoal.core.events import (
    Begun,
    Event,
    PauseRequested,
    RecoverRequested,
    ResumeRequested,
    StopRequested,
    TaskClaimed,
    TaskEnded,
    TaskStarted,
    TimeReached,
)
from shoal.core.model import FailureStrategy, RunWhen
from shoal.core.run import (
    Attempt,
    Decision,
    Enqueue,
    Kill,
    Run,
    WakeAt,
    Withdraw,
)
from shoal.core.states import (
    HELD_BY_WORKER,
    IllegalTransition,
    TaskSignal,
    TaskState,
    WorkflowSignal,
    WorkflowState,
)

# A task that takes its worker down with it must not do so for ever.
MAX_LOSSES = 10

_W, _T = WorkflowState, TaskState
_MAY_START = frozenset({_W.RUNNING, _W.PAUSING})
# Tasks that exist for the case of failure run even while a failure stops all others.
_HANDLERS = frozenset({RunWhen.ANY_FAILED, RunWhen.ALWAYS})


def decide(run: Run, event: Event) -> Decision:
    """Return what ``event`` changes and what to do next. No IO, no clock, ``run`` untouched."""
    draft = Draft(run, event.at)
    match event:
        case Begun():
            _begin(draft)
        case TimeReached():
            _wake(draft)
        case TaskClaimed():
            _claim(draft, event)
        case TaskStarted():
            _start(draft, event)
        case TaskEnded():
            _end(draft, event)
        case PauseRequested():
            _request(draft, WorkflowSignal.PAUSE, _pause)
        case ResumeRequested():
            _request(draft, WorkflowSignal.RESUME, _resume)
        case StopRequested():
            _request(draft, WorkflowSignal.STOP, _stop)
        case RecoverRequested():
            _request(draft, WorkflowSignal.RECOVER, _recover)
    if draft.refusal is None:
        _judge(draft)
        _settle(draft)
    return draft.decision()


# -- events -----------------------------------------------------------------------------------


def _begin(draft: Draft) -> None:
    """Start a new instance, or derive the actions of a stored one again."""
    if draft.state is _W.QUEUED:
        draft.move(WorkflowSignal.START)
    for attempt in draft.attempts():
        key = (attempt.task, attempt.number)
        match attempt.state:
            case _T.WAITING:
                draft.to_judge.append((attempt.task, None))
            case _T.QUEUED:
                draft.act(Enqueue(key))
            case _T.UP_FOR_RETRY if attempt.due_at is not None:
                draft.act(WakeAt(attempt.due_at))
            case _T.CLAIMED | _T.RUNNING if _must_die(draft, attempt):
                draft.act(Kill(key, attempt.worker))
            case _:
                pass


def _wake(draft: Draft) -> None:
    """Queue the retries that are due; tell the workers again what must die."""
    for attempt in draft.attempts():
        if attempt.state is _T.UP_FOR_RETRY and attempt.due_at is not None:
            if attempt.due_at <= draft.at:
                _enqueue(draft, attempt.task)
            else:
                draft.act(WakeAt(attempt.due_at))
        elif attempt.state in HELD_BY_WORKER and _must_die(draft, attempt):
            draft.act(Kill((attempt.task, attempt.number), attempt.worker))


def _newest(draft: Draft, task_instance_id: int) -> Attempt | None:
    """Return the attempt with this id if it is still the newest of its task."""
    attempt = draft.run.attempt_by_id(task_instance_id)
    if attempt is None:
        return None
    newest = draft.attempt(attempt.task)
    return newest if newest.id == task_instance_id else None


def _claim(draft: Draft, event: TaskClaimed) -> None:
    attempt = _newest(draft, event.task_instance_id)
    if attempt is not None and attempt.state is _T.QUEUED:
        draft.signal(attempt.task, TaskSignal.CLAIM, worker=event.worker)


def _start(draft: Draft, event: TaskStarted) -> None:
    attempt = _newest(draft, event.task_instance_id)
    if attempt is not None and attempt.state is _T.CLAIMED and attempt.worker == event.worker:
        draft.signal(attempt.task, TaskSignal.START, started_at=event.at)


def _end(draft: Draft, event: TaskEnded) -> None:
    attempt = _newest(draft, event.task_instance_id)
    if attempt is None or attempt.state not in HELD_BY_WORKER:
        return  # repeated, or from a worker that was given up
    if event.worker is not None and event.worker != attempt.worker:
        return
    was_failing = draft.failing
    task = attempt.task
    ended = draft.signal(
        task,
        event.signal,
        reason=event.reason,
        exit_code=event.exit_code,
        started_at=event.started_at or attempt.started_at,
        finished_at=event.at,
    )
    may_run_again = not was_failing or draft.spec(task).run_when in _HANDLERS
    if draft.state in _MAY_START and may_run_again:
        _try_again(draft, ended)
    if draft.failing and not was_failing:
        _stop_starting(draft, task)


def _try_again(draft: Draft, ended: Attempt) -> None:
    """Open a new attempt after a failure with retries left, or after a loss."""
    spec = draft.spec(ended.task)
    if ended.state is _T.FAILED and ended.failures < spec.retries:
        due_at = draft.at + timedelta(seconds=spec.retry_delay) if spec.retry_delay else None
        draft.reopen(ended.task, failures=ended.failures + 1, losses=ended.losses, due_at=due_at)
    elif ended.state is _T.LOST and ended.losses < MAX_LOSSES:
        draft.reopen(ended.task, failures=ended.failures, losses=ended.losses + 1)


def _stop_starting(draft: Draft, culprit: str) -> None:
    """A failure has just made the instance fail: hold back or kill the other tasks."""
    fail_fast = draft.run.plan.spec.on_failure is FailureStrategy.FAIL_FAST
    for attempt in draft.attempts():
        key = (attempt.task, attempt.number)
        if attempt.finished or draft.spec(attempt.task).run_when in _HANDLERS:
            continue
        if attempt.state in HELD_BY_WORKER:
            if fail_fast:
                draft.act(Kill(key, attempt.worker))
            continue
        if attempt.state is _T.QUEUED:
            draft.act(Withdraw(key))
        draft.signal(attempt.task, TaskSignal.SKIP, reason=f"not started: {culprit} failed")


def _must_die(draft: Draft, attempt: Attempt) -> bool:
    """Whether an attempt that a worker holds is to be killed in the instance's present state."""
    if draft.state is _W.STOPPING:
        return True
    fail_fast = draft.run.plan.spec.on_failure is FailureStrategy.FAIL_FAST
    return fail_fast and draft.failing and draft.spec(attempt.task).run_when not in _HANDLERS


# -- requests ---------------------------------------------------------------------------------


def _request(draft: Draft, signal: WorkflowSignal, carry_out: Callable[[Draft], None]) -> None:
    """Change the state as asked and carry it out, or say why not."""
    try:
        draft.move(signal)
    except IllegalTransition:
        draft.refusal = _REFUSALS[signal].format(state=draft.state)
        return
    carry_out(draft)


_REFUSALS = {
    WorkflowSignal.PAUSE: "cannot pause: the instance is {state}; only one that runs can pause",
    WorkflowSignal.RESUME: "cannot resume: the instance is {state}; only one that is PAUSED or "
    "STOPPED can (a FAILED one can recover, a SUCCEEDED one can rerun)",
    WorkflowSignal.STOP: "cannot stop: the instance is {state} already",
    WorkflowSignal.RECOVER: "cannot recover: the instance is {state}; only one with failed tasks "
    "can (a PAUSED or STOPPED one can resume, a SUCCEEDED one can rerun)",
}


def _pause(draft: Draft) -> None:
    for attempt in draft.attempts():
        if attempt.state is _T.QUEUED:
            draft.act(Withdraw((attempt.task, attempt.number)))
        if attempt.state in (_T.QUEUED, _T.UP_FOR_RETRY):
            draft.signal(attempt.task, TaskSignal.HOLD)


def _resume(draft: Draft) -> None:
    for attempt in draft.attempts():
        if attempt.state is _T.PAUSED:
            draft.signal(attempt.task, TaskSignal.RELEASE)
            draft.to_judge.append((attempt.task, None))
        elif attempt.state is _T.WAITING:
            draft.to_judge.append((attempt.task, None))
    _reopen_ended(draft, frozenset({_T.KILLED, _T.LOST}))


def _stop(draft: Draft) -> None:
    for attempt in draft.attempts():
        key = (attempt.task, attempt.number)
        if attempt.finished:
            continue
        if attempt.state in HELD_BY_WORKER:
            draft.act(Kill(key, attempt.worker))
            continue
        if attempt.state is _T.QUEUED:
            draft.act(Withdraw(key))
        draft.signal(attempt.task, TaskSignal.KILL, reason="stopped before it started")


def _recover(draft: Draft) -> None:
    if not draft.count(*FAILURES):
        draft.state = draft.run.state
        draft.refusal = "cannot recover: no task of the instance has failed"
        return
    _reopen_ended(draft, FAILURES)


def _reopen_ended(draft: Draft, states: frozenset[TaskState]) -> None:
    """Open new attempts of the tasks in ``states`` and of what was skipped because of them."""
    again = [a.task for a in draft.attempts() if a.state in states]
    held_back = draft.run.plan.spec.on_failure in (
        FailureStrategy.FAIL_FAST,
        FailureStrategy.FINISH_RUNNING,
    )
    if again and held_back:
        again += [a.task for a in draft.attempts() if a.state is _T.SKIPPED]
    seen = set(again)
    while again:
        task = again.pop()
        if draft.spec(task).enabled:
            draft.reopen(task)
        for child in draft.run.plan.downstream[task]:
            if child not in seen and draft.attempt(child).state is _T.SKIPPED:
                seen.add(child)
                again.append(child)


# -- readiness --------------------------------------------------------------------------------


def _judge(draft: Draft) -> None:
    """Start or skip every task whose upstream results now allow the verdict."""
    if draft.state not in _MAY_START:
        return
    while draft.to_judge:
        task, cause = draft.to_judge.pop()
        if draft.attempt(task).state is not _T.WAITING:
            continue
        spec = draft.spec(task)
        if not spec.enabled:
            draft.signal(task, TaskSignal.SKIP, reason="disabled")
        elif draft.failing and spec.run_when not in _HANDLERS:
            draft.signal(task, TaskSignal.SKIP, reason="not started: another task failed")
        else:
            _judge_upstream(draft, task, cause)


def _judge_upstream(draft: Draft, task: str, cause: str | None) -> None:
    upstream = draft.run.plan.upstream[task]
    done = draft.unresolved(task) == 0
    # One upstream task changed: only it can have brought the verdict of the "at once" rules.
    changed = upstream if cause is None or done else (cause,)
    match draft.spec(task).run_when:
        case RunWhen.ALL_SUCCESS:
            # Had an earlier one failed, the task would not be waiting any more.
            bad = next(
                (
                    u
                    for u in (upstream if cause is None else (cause,))
                    if draft.attempt(u).finished and not draft.passed(u)
                ),
                None,
            )
            if bad is not None:
                draft.signal(task, TaskSignal.SKIP, reason=_because(draft, bad))
            elif done:
                _make_ready(draft, task)
        case RunWhen.ALL_DONE | RunWhen.ALWAYS:
            if done:
                _make_ready(draft, task)
        case RunWhen.ONE_SUCCESS:
            if not upstream or any(draft.passed(u) for u in changed):
                _make_ready(draft, task)
            elif done:
                draft.signal(task, TaskSignal.SKIP, reason="no upstream task succeeded")
        case RunWhen.ANY_FAILED:
            if any(draft.attempt(u).state in FAILURES for u in changed):
                _make_ready(draft, task)
            elif done:
                draft.signal(task, TaskSignal.SKIP, reason="no upstream task failed")


def _because(draft: Draft, upstream: str) -> str:
    verbs = {_T.FAILED: "failed", _T.LOST: "was lost", _T.KILLED: "was killed"}
    return f"upstream task {upstream} {verbs.get(draft.attempt(upstream).state, 'was skipped')}"


def _make_ready(draft: Draft, task: str) -> None:
    attempt = draft.attempt(task)
    if draft.state is _W.PAUSING:
        draft.signal(task, TaskSignal.HOLD)
    elif attempt.due_at is not None and attempt.due_at > draft.at:
        draft.signal(task, TaskSignal.DELAY)
        draft.act(WakeAt(attempt.due_at))
    else:
        _enqueue(draft, task)


def _enqueue(draft: Draft, task: str) -> None:
    attempt = draft.signal(task, TaskSignal.QUEUE, queued_at=draft.at)
    draft.act(Enqueue((task, attempt.number)))


# -- the end ----------------------------------------------------------------------------------


def _settle(draft: Draft) -> None:
    """End the instance, or its pause, when nothing is left to do."""
    if draft.state not in _MAY_START | {_W.STOPPING} or draft.held:
        return
    if draft.open:
        if draft.state is _W.PAUSING:
            draft.move(WorkflowSignal.SETTLE)
        return
    if draft.state is _W.STOPPING and draft.count(_T.KILLED, _T.LOST):
        draft.move(WorkflowSignal.SETTLE, reason="stopped by request")
        return
    failed = draft.count(*FAILURES)
    ignored = draft.run.plan.spec.on_failure is FailureStrategy.IGNORE
    if failed and not ignored:
        draft.move(WorkflowSignal.FAIL, reason=_count_failed(failed))
    else:
        reason = f"{_count_failed(failed)}, ignored as the workflow says" if failed else None
        draft.move(WorkflowSignal.SUCCEED, reason=reason)


def _count_failed(count: int) -> str:
    return "1 task failed" if count == 1 else f"{count} tasks failed"
