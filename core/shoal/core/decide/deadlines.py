"""The timeouts and the deadline that lie ahead of an instance and of its tasks."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from shoal.core.decide.draft import Draft
from shoal.core.definition.model import TimeoutAction
from shoal.core.runs.run import Attempt, WakeAt
from shoal.core.runs.states import FINISHED_WORKFLOW, HELD_BY_WORKER, TaskState, WorkflowState

_TICKING = frozenset({WorkflowState.RUNNING, WorkflowState.PAUSING})


def remind(draft: Draft) -> None:
    """Ask to be woken at all of them: at the start and after a takeover."""
    draft.actions.extend(WakeAt(at) for at in of_instance(draft))
    remind_of_lateness(draft)
    for attempt in draft.attempts():
        remind_of(draft, attempt)


def remind_of(draft: Draft, attempt: Attempt) -> None:
    """Ask to be woken at the timeout of an attempt that runs, or is to look again."""
    draft.actions.extend(WakeAt(at) for at in of_attempt(draft, attempt))


def remind_of_lateness(draft: Draft) -> None:
    """Ask to be woken when the instance becomes late; at once if it is, and goes on anew."""
    draft.actions.extend(WakeAt(at) for at in of_lateness(draft))


def of_lateness(draft: Draft) -> Iterator[datetime]:
    """Yield the instance's deadline; nothing if it has none, has ended, or is known to be late.

    Waiting for other runs, a pause and people's repairs do not put it off.
    """
    known = draft.late_at or draft.run.late_at
    if draft.run.deadline_at and known is None and draft.state not in FINISHED_WORKFLOW:
        yield draft.run.deadline_at


def of_instance(draft: Draft) -> Iterator[datetime]:
    """Yield when the instance reaches its timeout; nothing if it has none, or has had it."""
    timeout = draft.run.plan.spec.timeout
    if timeout and draft.state in _TICKING and (draft.warned_at or draft.run.warned_at) is None:
        yield (draft.run.started_at or draft.at) + timedelta(seconds=timeout)


def of_attempt(draft: Draft, attempt: Attempt) -> Iterator[datetime]:
    """Yield when an attempt reaches a timeout that the master enforces.

    Workers end their tasks themselves; the master warns, and ends the tasks that it runs, and those
    that look again and again: of them no worker sees the whole time.
    """
    spec = draft.spec(attempt.task)
    since = attempt.started_at if attempt.state is TaskState.RUNNING else None
    if attempt.is_between_looks or attempt.state in HELD_BY_WORKER:
        since = attempt.waiting_since or since
    if since is None or not spec.timeout:
        return
    if warns(draft, attempt) or ends(draft, attempt):
        yield since + timedelta(seconds=spec.timeout)


def warns(draft: Draft, attempt: Attempt) -> bool:
    """Whether a warning is still to be recorded at the attempt's timeout."""
    action = draft.spec(attempt.task).timeout_action
    return action is not TimeoutAction.FAIL and attempt.warned_at is None


def ends(draft: Draft, attempt: Attempt) -> bool:
    """Whether the master is to end the attempt at its timeout."""
    action = draft.spec(attempt.task).timeout_action
    mine = attempt.worker is None or attempt.looks > 0
    return action is not TimeoutAction.WARN and mine and attempt.termination is None
