"""What people may ask of an instance: section 4 of ``docs/semantics.md``."""

from collections.abc import Iterable

from shoal.core.decide import deadlines, endings, logic
from shoal.core.decide.draft import FAILURES, Draft
from shoal.core.definition.kinds import LogicKind
from shoal.core.runs.events import (
    ForceRequested,
    KillRequested,
    PauseRequested,
    RecoverRequested,
    RerunRequested,
    ResumeRequested,
    StopRequested,
)
from shoal.core.runs.run import Attempt, SkipCause, Termination
from shoal.core.runs.states import (
    HELD_BY_WORKER,
    IllegalTransition,
    TaskSignal,
    TaskState,
    WorkflowSignal,
    WorkflowState,
)
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import say, stopped

_W, _T = WorkflowState, TaskState
_REFUSALS = {
    WorkflowSignal.PAUSE: "cannot pause: the instance is {state}; only one that runs can pause",
    WorkflowSignal.RESUME: "cannot resume: the instance is {state}; only one that is PAUSED or "
    "STOPPED can (a FAILED one can recover, a SUCCEEDED one can rerun)",
    WorkflowSignal.STOP: "cannot stop: the instance is {state} already",
    WorkflowSignal.RECOVER: "cannot recover: the instance is {state}; only one with failed tasks "
    "can (a PAUSED or STOPPED one can resume, a SUCCEEDED one can rerun)",
    WorkflowSignal.RERUN: "cannot rerun tasks: the instance is {state}; "
    "only one that has ended can",
    WorkflowSignal.FORCE: "cannot force: the instance is {state}; only one that runs or has "
    "FAILED can (a STOPPED or PAUSED one can resume first)",
}

# After these an instance moves that was not watched before: it was paused, or had ended.
_GOES_ON = frozenset(
    {WorkflowSignal.RESUME, WorkflowSignal.RECOVER, WorkflowSignal.RERUN, WorkflowSignal.FORCE}
)


def _move(draft: Draft, signal: WorkflowSignal, reason: str | None = None) -> bool:
    """Change the state as asked, or say why not."""
    try:
        draft.move(signal, reason)
    except IllegalTransition:
        draft.refusal = _REFUSALS[signal].format(state=draft.state)
        return False
    if signal in _GOES_ON:
        deadlines.remind_of_lateness(draft)
    return True


def _listen_to(
    draft: Draft, event: PauseRequested | ResumeRequested | StopRequested | RecoverRequested
) -> None:
    """If a task asks, it is the one that the instance works for from now on."""
    if event.parent is not None:
        draft.parent = draft.asked_by = event.parent


# -- of the whole instance ----------------------------------------------------------------------


def pause(draft: Draft, event: PauseRequested) -> None:
    """Start nothing; what runs may finish."""
    _listen_to(draft, event)
    if draft.state is _W.QUEUED and draft.run.admitted_at is None:
        draft.refusal = "cannot pause: the instance waits for other runs; it can be stopped"
        return
    if not _move(draft, WorkflowSignal.PAUSE):
        return
    for attempt in draft.attempts():
        if attempt.state in (_T.QUEUED, _T.UP_FOR_RETRY, _T.DELAYED, _T.BLOCKED):
            endings.drop(draft, attempt)
            draft.signal(attempt.task, TaskSignal.HOLD)
        elif attempt.state is _T.RUNNING and attempt.worker is None and not attempt.termination:
            logic.hold(draft, attempt)


def resume(draft: Draft, event: ResumeRequested) -> None:
    """Go on after a pause or a stop."""
    _listen_to(draft, event)
    was_stopped = draft.state is _W.STOPPED
    if not _move(draft, WorkflowSignal.RESUME):
        return
    _end_watch(draft)
    for attempt in draft.attempts():
        if attempt.state is _T.PAUSED:
            # It was ready before the pause, and still is.
            since = draft.at if attempt.looks else None
            draft.signal(attempt.task, TaskSignal.RELEASE, waiting_since=since)
            draft.ready[attempt.task] = False
        elif attempt.state is _T.WAITING:
            draft.to_judge.append((attempt.task, None))
        elif attempt.state is _T.RUNNING and attempt.worker is None and not attempt.termination:
            logic.resume(draft, attempt)
    if was_stopped:
        _reopen(draft, frozenset({_T.KILLED, _T.LOST}))
        _retry_what_the_stop_prevented(draft)


def _retry_what_the_stop_prevented(draft: Draft) -> None:
    """A task that failed while the instance was being stopped has its retries still."""
    for attempt in draft.attempts():
        if attempt.state is _T.FAILED and attempt.failures < draft.spec(attempt.task).retries:
            draft.reopen(
                attempt.task,
                failures=attempt.failures + 1,
                losses=attempt.losses,
                detail=endings.kept_detail(draft, attempt),
                ready=True,
            )
            _reopen_behind(draft, [attempt.task])


def _end_watch(draft: Draft) -> None:
    """The timeout of an instance watches over what runs by itself, not over people's repairs."""
    if draft.run.plan.spec.timeout is not None:
        draft.warned_at = draft.run.warned_at or draft.at


def stop(draft: Draft, event: StopRequested) -> None:
    """Kill what runs, start nothing."""
    _listen_to(draft, event)
    stop_because(draft, event.reason)


def stop_because(draft: Draft, reason: str | None) -> None:
    """Stop the instance; ``reason`` None: a user asked for it."""
    if not _move(draft, WorkflowSignal.STOP, stopped(reason or None)):
        return
    for attempt in draft.attempts():
        if attempt.finished:
            continue
        if attempt.state in HELD_BY_WORKER:
            endings.end_early(draft, attempt, Termination.KILL)
            continue
        endings.drop(draft, attempt)
        code = Code.REASON_STOPPED_UNSTARTED
        if attempt.looks:
            code = Code.REASON_STOPPED_BETWEEN_LOOKS
        draft.signal(attempt.task, TaskSignal.KILL, reason=say(code))


def recover(draft: Draft, event: RecoverRequested) -> None:
    """Run the failed tasks again, and what was skipped because of them."""
    _listen_to(draft, event)
    if not _move(draft, WorkflowSignal.RECOVER):
        return
    if not draft.count(*FAILURES):
        draft.state = draft.run.state
        draft.refusal = "cannot recover: no task of the instance has failed"
        return
    if draft.run.state is _W.FAILED:
        _end_watch(draft)
    _reopen(draft, FAILURES)


def _reopen(draft: Draft, states: frozenset[TaskState]) -> None:
    """Open new attempts of the tasks in ``states`` and of what was skipped because of them."""
    again = [a.task for a in draft.attempts() if a.state in states]
    for task in again:
        _reopen_one(draft, task)
    _reopen_behind(draft, again)


def _reopen_behind(draft: Draft, changed: Iterable[str]) -> None:
    """Open new attempts of what was skipped behind ``changed``, and by the failure strategy."""
    to_follow = list(changed)
    if not draft.failing:
        held_back = [a.task for a in draft.attempts() if a.skip_cause is SkipCause.FAILING]
        for task in held_back:
            _reopen_one(draft, task)
        to_follow += held_back
    while to_follow:
        for child in draft.run.plan.downstream[to_follow.pop()]:
            if draft.attempt(child).state is _T.SKIPPED:
                _reopen_one(draft, child)
                to_follow.append(child)


def _reopen_one(draft: Draft, task: str) -> None:
    """Open a new attempt that keeps the successes of the one before."""
    draft.reopen(task, detail=endings.kept_detail(draft, draft.attempt(task)))


# -- of single tasks ----------------------------------------------------------------------------


def rerun(draft: Draft, event: RerunRequested) -> None:
    """Run chosen tasks of an ended instance again."""
    plan = draft.run.plan
    unknown = event.selection.unknown(plan.tasks)
    absent = [t for t in event.selection.tasks if t in plan.tasks and not draft.run.takes_part(t)]
    if unknown:
        draft.refusal = f"cannot rerun tasks: there is no task {', '.join(unknown)}"
    elif absent:
        draft.refusal = (
            f"cannot rerun tasks: {', '.join(absent)} did not take part in this run; "
            "start a new one"
        )
    elif _move(draft, WorkflowSignal.RERUN):
        _end_watch(draft)
        _rerun(draft, event.selection.tasks, event.selection.of(plan.upstream, plan.downstream))


def _rerun(draft: Draft, named: Iterable[str], chosen: frozenset[str]) -> None:
    upstream = draft.run.plan.upstream
    roots = {task for task in named if not chosen.intersection(upstream[task])}
    for task in draft.run.plan.tasks:
        if task in chosen:
            draft.reopen(task, ready=task in roots)
    if draft.failing:
        draft.refusal = (
            "cannot rerun tasks: another task has failed, and the strategy "
            f"{draft.run.plan.spec.on_failure} starts nothing then; rerun or force it as well, or "
            "recover the instance"
        )
        return


def kill(draft: Draft, event: KillRequested) -> None:
    """End one task; the others go on."""
    attempt = _named(draft, event.task, "kill")
    if attempt is None:
        return
    if draft.state not in (_W.RUNNING, _W.PAUSING):
        draft.refusal = f"cannot kill {event.task}: the instance is {draft.state}"
    elif attempt.finished:
        draft.refusal = f"cannot kill {event.task}: it is {attempt.state} already"
    elif attempt.state in HELD_BY_WORKER:
        endings.end_early(draft, attempt, Termination.KILL)
    else:
        endings.drop(draft, attempt)
        code = Code.REASON_KILLED_BY_REQUEST_UNSTARTED
        if attempt.looks:
            code = Code.REASON_KILLED_BETWEEN_LOOKS
        draft.signal(event.task, TaskSignal.KILL, reason=say(code))


def force(draft: Draft, event: ForceRequested) -> None:
    """Take a task that failed for a success."""
    attempt = _named(draft, event.task, "force")
    if attempt is None or not _move(draft, WorkflowSignal.FORCE):
        return
    if draft.run.state is _W.FAILED:
        _end_watch(draft)
    reason = say(Code.REASON_FORCED, by=event.by or "request", why=event.reason or None)
    if attempt.state in FAILURES:
        draft.reopen(event.task)
        draft.signal(event.task, TaskSignal.SUCCEED, forced=True, reason=reason)
        _reopen_behind(draft, [event.task])
    elif draft.kind(event.task) is LogicKind.DEPENDENT and attempt.state is _T.RUNNING:
        endings.finish(draft, event.task, TaskSignal.SUCCEED, forced=True, reason=reason)
    elif attempt.is_between_looks:
        endings.drop(draft, attempt)
        endings.finish(draft, event.task, TaskSignal.SUCCEED, forced=True, reason=reason)
    else:
        draft.state = draft.run.state
        draft.refusal = (
            f"cannot force {event.task}: it is {attempt.state}; only a task that has failed, was "
            "killed or lost, a DEPENDENT task that waits, or one between two looks can be forced"
        )


def _named(draft: Draft, task: str, verb: str) -> Attempt | None:
    if task not in draft.run.plan.tasks:
        draft.refusal = f"cannot {verb} {task}: the workflow has no such task"
        return None
    return draft.attempt(task)
