"""Which tasks may start, and which will not: section 1 of ``docs/semantics.md``."""

from enum import Flag, auto

from shoal.core.decide import starts
from shoal.core.decide.draft import FAILURES, Draft
from shoal.core.decide.endings import HANDLERS, MAY_START
from shoal.core.definition.kinds import CHOOSERS
from shoal.core.definition.model import FailureStrategy, RunWhen
from shoal.core.runs.run import SkipCause
from shoal.core.runs.states import TaskState
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import say

_T = TaskState


class UpstreamSeen(Flag):
    """What an upstream task means for one task behind it."""

    OPEN = 0
    PASSED = auto()
    FAILED = auto()
    BLOCKED = auto()
    NEUTRAL = auto()
    NOT_TAKEN = auto()


def seen(draft: Draft, upstream: str, task: str) -> UpstreamSeen:
    """Return what ``upstream`` means for ``task``."""
    attempt = draft.attempt(upstream)
    match attempt.state:
        case _T.SUCCEEDED:
            if task in draft.run.plan.choices.get(upstream, ()):
                chosen = attempt.detail.get("chosen")  # none if it was forced: all are
                return (
                    UpstreamSeen.PASSED
                    if chosen is None or task in chosen
                    else UpstreamSeen.NOT_TAKEN
                )
            return UpstreamSeen.PASSED
        case state if state in FAILURES:
            ignored = draft.run.plan.spec.on_failure is FailureStrategy.IGNORE
            return UpstreamSeen.FAILED | UpstreamSeen.PASSED if ignored else UpstreamSeen.FAILED
        case _T.SKIPPED if attempt.skip_cause in (SkipCause.DISABLED, SkipCause.NOT_SELECTED):
            return UpstreamSeen.PASSED
        case _T.SKIPPED if attempt.skip_cause is SkipCause.BRANCH:
            return UpstreamSeen.NEUTRAL
        case _T.SKIPPED:
            return UpstreamSeen.BLOCKED
        case _:
            return UpstreamSeen.OPEN


def judge(draft: Draft) -> None:
    """Start or skip every task whose upstream results now allow the verdict.

    The order in which tasks are checked makes no difference: first everything is skipped that
    is to be skipped, then choices are made, and only then other tasks start.
    """
    if draft.state not in MAY_START:
        return
    while draft.to_judge or draft.ready:
        while draft.to_judge:
            task, cause = draft.to_judge.pop()
            if draft.attempt(task).state is not _T.WAITING:
                continue
            if task not in draft.ready:
                _judge(draft, task, cause)
            elif draft.ready[task] and _was_left(draft, task):
                del draft.ready[task]
        choosers = [task for task in draft.ready if draft.kind(task) in CHOOSERS]
        held_back = draft.failing
        for task in sorted(choosers or draft.ready):
            judged_now = draft.ready.pop(task)
            if draft.attempt(task).state is not _T.WAITING:
                continue
            if judged_now and _was_left(draft, task):
                continue
            if not _hold_back(draft, task, held_back):
                starts.make_ready(draft, task)


def _hold_back(draft: Draft, task: str, failing: bool) -> bool:
    """Skip a task that the failure strategy does not start; one that has been held goes on."""
    exempt = draft.rule(task) in HANDLERS or draft.attempt(task).started_at is not None
    if failing and not exempt:
        draft.skip(task, SkipCause.FAILING, say(Code.REASON_NOT_STARTED))
    return failing and not exempt


def _was_left(draft: Draft, task: str) -> bool:
    """Skip a task that is ready by its other upstream tasks, but was not chosen meanwhile."""
    for chooser in draft.run.plan.choosers.get(task, ()):
        if seen(draft, chooser, task) & UpstreamSeen.NOT_TAKEN:
            draft.skip(task, SkipCause.BRANCH, say(Code.REASON_OTHER_BRANCH, task=chooser))
            return True
    return False


def _judge(draft: Draft, task: str, cause: str | None) -> None:
    if _hold_back(draft, task, draft.failing) or _was_left(draft, task):
        return
    upstream = draft.run.plan.upstream[task]
    done = draft.unresolved(task) == 0
    # One upstream task changed: only it can have brought the verdict of the "at once" rules, or
    # the task would no longer be waiting.
    changed = upstream if cause is None or done else (cause,)
    views = {u: seen(draft, u, task) for u in changed}
    if not draft.run.takes_part(task):
        if done:
            _judge_transparent(draft, task, views)
        return
    match draft.rule(task):
        case RunWhen.ALL_SUCCESS:
            _judge_all_success(draft, task, views, done)
        case RunWhen.ALL_DONE | RunWhen.ALWAYS:
            if done:
                draft.ready[task] = True
        case RunWhen.ONE_SUCCESS:
            _judge_one(draft, task, views, UpstreamSeen.PASSED, done)
        case RunWhen.ANY_FAILED:
            _judge_one(draft, task, views, UpstreamSeen.FAILED, done)


def _judge_all_success(draft: Draft, task: str, views: dict[str, UpstreamSeen], done: bool) -> None:
    bad = _bad(views)
    if bad is not None:
        draft.skip(task, SkipCause.UPSTREAM, _because(draft, bad))
    elif done and _all_neutral(views):
        draft.skip(task, SkipCause.BRANCH, say(Code.REASON_NO_BRANCH))
    elif done:
        draft.ready[task] = True


def _judge_transparent(draft: Draft, task: str, views: dict[str, UpstreamSeen]) -> None:
    """A task that does not take part keeps the order and the failures that lead through it."""
    bad = _bad(views)
    if bad is not None:
        draft.skip(task, SkipCause.UPSTREAM, _because(draft, bad))
    elif _all_neutral(views):
        draft.skip(task, SkipCause.BRANCH, say(Code.REASON_NO_BRANCH))
    elif not draft.spec(task).enabled:
        draft.skip(task, SkipCause.DISABLED, say(Code.REASON_DISABLED))
    else:
        draft.skip(task, SkipCause.NOT_SELECTED, say(Code.REASON_NOT_SELECTED))


def _judge_one(
    draft: Draft, task: str, views: dict[str, UpstreamSeen], wanted: UpstreamSeen, done: bool
) -> None:
    nothing_before = not views and wanted is UpstreamSeen.PASSED
    if nothing_before or any(view & wanted for view in views.values()):
        draft.ready[task] = True
        return
    if not done:
        return
    code = Code.REASON_NONE_SUCCEEDED if wanted is UpstreamSeen.PASSED else Code.REASON_NONE_FAILED
    hindered = (
        UpstreamSeen.BLOCKED
        if wanted is UpstreamSeen.FAILED
        else UpstreamSeen.BLOCKED | UpstreamSeen.FAILED
    )
    of_failure = any(view & hindered for view in views.values())
    cause = SkipCause.UPSTREAM if of_failure else SkipCause.BRANCH
    draft.skip(task, cause, say(code))


def _bad(views: dict[str, UpstreamSeen]) -> str | None:
    """Return an upstream task without which an ``all_success`` task cannot run."""
    for upstream, view in views.items():
        if view is UpstreamSeen.FAILED or view is UpstreamSeen.BLOCKED:  # and not passed as well
            return upstream
    return None


def _all_neutral(views: dict[str, UpstreamSeen]) -> bool:
    return bool(views) and all(view is UpstreamSeen.NEUTRAL for view in views.values())


def _because(draft: Draft, upstream: str) -> str:
    state = draft.attempt(upstream).state
    return say(_BECAUSE.get(state, Code.REASON_UPSTREAM_SKIPPED), task=upstream)


_BECAUSE = {
    _T.FAILED: Code.REASON_UPSTREAM_FAILED,
    _T.LOST: Code.REASON_UPSTREAM_LOST,
    _T.KILLED: Code.REASON_UPSTREAM_KILLED,
}
