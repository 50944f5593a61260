"""What time brings: delays that are over, timeouts of tasks and of the instance, its deadline."""

from shoal.core.decide import deadlines, endings, requests, starts
from shoal.core.decide.draft import Draft
from shoal.core.definition.model import WorkflowTimeoutAction
from shoal.core.runs.run import Attempt, Kill, Termination, WakeAt
from shoal.core.runs.states import HELD_BY_WORKER, TaskState
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import say
from shoal.core.timing.durations import format_duration

_T = TaskState
_DELAYS = frozenset({_T.DELAYED, _T.UP_FOR_RETRY})


def advance(draft: Draft) -> None:
    """Do what is due; repeat to the workers what they must kill."""
    _look_at_lateness(draft)
    _look_at_instance(draft)
    tasks = list(draft.run.plan.tasks)
    for task in tasks:
        attempt = draft.attempt(task)  # what was done for another one may have changed it
        if attempt.state in HELD_BY_WORKER or attempt.is_between_looks:
            _look_at_deadlines(draft, attempt)
    # Only now, so that the order of tasks makes no difference: a failure starts nothing more.
    for task in tasks:
        _look_at_delay(draft, draft.attempt(task))


def _look_at_delay(draft: Draft, attempt: Attempt) -> None:
    if attempt.state not in _DELAYS or attempt.due_at is None:
        return
    if attempt.due_at <= draft.at:
        starts.after_delay(draft, attempt.task)
    else:
        draft.act(WakeAt(attempt.due_at))


def _look_at_lateness(draft: Draft) -> None:
    for deadline in deadlines.of_lateness(draft):
        if deadline > draft.at:
            draft.act(WakeAt(deadline))
        else:
            draft.late_at = draft.at


def _look_at_instance(draft: Draft) -> None:
    spec = draft.run.plan.spec
    for deadline in deadlines.of_instance(draft):
        if deadline > draft.at:
            draft.act(WakeAt(deadline))
            continue
        draft.warned_at, draft.timed_out = draft.at, True
        if spec.timeout_action is not WorkflowTimeoutAction.WARN:
            assert spec.timeout is not None
            after = format_duration(spec.timeout)
            requests.stop_because(draft, say(Code.REASON_RAN_LONGER, after=after))


def _look_at_deadlines(draft: Draft, attempt: Attempt) -> None:
    for deadline in deadlines.of_attempt(draft, attempt):
        if deadline > draft.at:
            draft.act(WakeAt(deadline))
            continue
        to_end = deadlines.ends(draft, attempt)
        if deadlines.warns(draft, attempt):
            attempt = draft.note(attempt.task, warned_at=draft.at)
            draft.overdue.append(attempt.task)
        if to_end:
            if attempt.is_between_looks:
                endings.drop(draft, attempt)
            endings.end_early(draft, attempt, Termination.TIMEOUT)
            return
    if attempt.worker and endings.must_end(draft, attempt):
        draft.act(Kill((attempt.task, attempt.number), attempt.worker))
