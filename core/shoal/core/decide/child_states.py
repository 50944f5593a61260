"""How an instance that works for a SUB_WORKFLOW or MAP task stands, as its parent knows it.

Two tables over the same events: the child's state, and whether it is to be continued as soon as
there is room. The diagrams in ``docs/states.md`` and the exhaustive tests are made from them.
A state is what the child has reported, until a request is sent: then it is what the request leads
to, until the child answers.
"""

from collections.abc import Mapping
from enum import StrEnum

from shoal.core.runs.commands import CommandType
from shoal.core.runs.states import IllegalTransition, WorkflowState


class ChildState(StrEnum):
    """State of a child: those of a workflow instance, and two more."""

    STARTING = "STARTING"  # it is being started or continued and has not reported since
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    PAUSING = "PAUSING"  # or it was asked to pause
    PAUSED = "PAUSED"
    STOPPING = "STOPPING"  # or it was asked to stop
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    SUCCEEDED = "SUCCEEDED"
    REFUSED = "REFUSED"  # it could not be started


class ChildEvent(StrEnum):
    """What can happen to a child."""

    ASK_PAUSE = "ASK_PAUSE"  # the parent sends a request
    ASK_STOP = "ASK_STOP"
    ASK_RESUME = "ASK_RESUME"
    ASK_RECOVER = "ASK_RECOVER"
    IS_QUEUED = "IS_QUEUED"  # the child reports its state
    IS_RUNNING = "IS_RUNNING"
    IS_PAUSING = "IS_PAUSING"
    IS_PAUSED = "IS_PAUSED"
    IS_STOPPING = "IS_STOPPING"
    IS_STOPPED = "IS_STOPPED"
    IS_FAILED = "IS_FAILED"
    IS_SUCCEEDED = "IS_SUCCEEDED"
    IS_REFUSED = "IS_REFUSED"
    MISS = "MISS"  # follows a report: the request to continue did not fit this state
    CONTINUE = "CONTINUE"  # the task goes on, or has a new attempt


class Continuation(StrEnum):
    """Whether a child is to be continued as soon as there is room."""

    NONE = "NONE"
    DUE = "DUE"


S, E, C = ChildState, ChildEvent, Continuation

REQUESTS: Mapping[CommandType, ChildEvent] = {
    CommandType.PAUSE: E.ASK_PAUSE,
    CommandType.STOP: E.ASK_STOP,
    CommandType.RESUME: E.ASK_RESUME,
    CommandType.RECOVER: E.ASK_RECOVER,
}
REPORTS: Mapping[WorkflowState | None, ChildEvent] = {
    None: E.IS_REFUSED,
    **{state: ChildEvent(f"IS_{state}") for state in WorkflowState},
}
# How a child is continued that stands still.
CONTINUED_BY: Mapping[ChildState, CommandType] = {
    S.FAILED: CommandType.RECOVER,
    S.STOPPED: CommandType.RESUME,
    S.PAUSED: CommandType.RESUME,
}

ENDED = frozenset({S.SUCCEEDED, S.FAILED, S.REFUSED})
AT_REST = frozenset({S.PAUSED, S.STOPPED})
MOVING = frozenset(S) - ENDED - AT_REST

_REPORTED: Mapping[ChildEvent, ChildState] = {
    event: ChildState(event.removeprefix("IS_")) for event in REPORTS.values()
}
CHILD_TRANSITIONS: Mapping[tuple[ChildState, ChildEvent], ChildState] = {
    **{(state, E.ASK_PAUSE): S.PAUSING for state in S if state in MOVING},
    **{(state, E.ASK_STOP): S.STOPPING for state in S if state in MOVING},
    **{(state, E.ASK_RESUME): S.STARTING for state in S if state in MOVING},
    (S.PAUSED, E.ASK_STOP): S.STOPPING,
    (S.PAUSED, E.ASK_RESUME): S.STARTING,
    (S.STOPPED, E.ASK_RESUME): S.STARTING,
    (S.FAILED, E.ASK_RECOVER): S.STARTING,
    # Others may change a child, too: any state can follow any other.
    **{(state, event): after for event, after in _REPORTED.items() for state in S},
    **{(state, E.MISS): state for state in (*CONTINUED_BY, S.PAUSING, S.STOPPING)},
    **{(state, E.CONTINUE): state for state in CONTINUED_BY},
}

# A report that leaves nothing to continue takes the mark away, as does a request.
_SETTLING = (
    *REQUESTS.values(),
    *(E.IS_QUEUED, E.IS_RUNNING, E.IS_SUCCEEDED, E.IS_REFUSED),
)
_KEEPING = (E.IS_PAUSING, E.IS_PAUSED, E.IS_STOPPING, E.IS_STOPPED, E.IS_FAILED)
CONTINUATION_TRANSITIONS: Mapping[tuple[Continuation, ChildEvent], Continuation] = {
    **{(mark, event): C.NONE for mark in C for event in _SETTLING},
    **{(mark, event): mark for mark in C for event in _KEEPING},
    **{(mark, event): C.DUE for mark in C for event in (E.MISS, E.CONTINUE)},
}


def next_child_state(state: ChildState, event: ChildEvent) -> ChildState:
    """Return the state after ``event``. Raises IllegalTransition if no row matches."""
    try:
        return CHILD_TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(state, event) from None


def allows(state: ChildState, event: ChildEvent) -> bool:
    """Return whether ``event`` can happen to a child in ``state``."""
    return (state, event) in CHILD_TRANSITIONS
