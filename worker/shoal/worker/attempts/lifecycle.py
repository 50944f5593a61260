"""The life of one attempt on its worker, as data: from the claim until the worker has forgotten it.

States change nowhere else. The diagram in ``docs/states.md`` and the exhaustive test are made
from this table. Not to be confused with the state that the masters store
(``shoal.core.runs.states``): an attempt is RUNNING there once a master has heard of its start.

Some facts of an attempt are not states, since they hold beside any of them: the reasons to end it
(``EndReasons``: several may be there, in any order, and the process still takes its time), whether
a master has stored its end (``committed``), and whether one has ever granted it (``granted``),
which an end does not undo.
"""

from collections.abc import Mapping
from enum import StrEnum

from shoal.core.runs.states import IllegalTransition


class AttemptState(StrEnum):
    """State of one attempt on the worker that has claimed it."""

    CLAIMED = "CLAIMED"  # a master is being asked for its payload
    GRANTED = "GRANTED"  # its payload has come; it waits for a slot
    PREPARING = "PREPARING"  # has a slot; its task type is at work and has started no process
    CANCELLING = "CANCELLING"  # the same, but its task type has been cancelled
    LAUNCHING = "LAUNCHING"  # handed to the launcher, which has not answered yet
    RUNNING = "RUNNING"  # its process has started
    ENDED = "ENDED"  # nothing of it lives: its end is reported, or it goes back to the queue
    FORGOTTEN = "FORGOTTEN"  # the worker no longer holds it


class AttemptEvent(StrEnum):
    """What can happen to an attempt on its worker."""

    GRANT = "GRANT"  # a master sent the payload
    TAKE_SLOT = "TAKE_SLOT"
    CANCEL = "CANCEL"  # it is to end before it has a process
    LAUNCH = "LAUNCH"  # its task type wants a process
    START = "START"  # the launcher says that the process runs, or has run
    NOT_START = "NOT_START"  # the launcher says that there is no process
    END = "END"  # nothing of it lives, nor will: its slot is free
    FORGET = "FORGET"  # settled by a master, requeued, refused, or its session is lost


_S, _E = AttemptState, AttemptEvent
_LIVE = (_S.CLAIMED, _S.GRANTED, _S.PREPARING, _S.CANCELLING, _S.LAUNCHING, _S.RUNNING)
TRANSITIONS: Mapping[tuple[AttemptState, AttemptEvent], AttemptState] = {
    (_S.CLAIMED, _E.GRANT): _S.GRANTED,
    (_S.GRANTED, _E.TAKE_SLOT): _S.PREPARING,
    (_S.PREPARING, _E.CANCEL): _S.CANCELLING,
    (_S.CANCELLING, _E.CANCEL): _S.CANCELLING,  # a task type may catch the first one
    (_S.PREPARING, _E.LAUNCH): _S.LAUNCHING,
    (_S.LAUNCHING, _E.START): _S.RUNNING,
    (_S.LAUNCHING, _E.NOT_START): _S.PREPARING,  # the task type may do without
    **{(state, _E.END): _S.ENDED for state in _LIVE},
    (_S.ENDED, _E.FORGET): _S.FORGOTTEN,
    # A task type may ask for a process after its end, from an asyncio task of its own: it is
    # killed as soon as the launcher says that it runs, and changes nothing.
    **{
        (state, event): state
        for state in (_S.ENDED, _S.FORGOTTEN)
        for event in (_E.LAUNCH, _E.START, _E.NOT_START)
    },
}

HOLDS_SLOT = frozenset({_S.PREPARING, _S.CANCELLING, _S.LAUNCHING, _S.RUNNING})


def next_state(state: AttemptState, event: AttemptEvent) -> AttemptState:
    """Return the state after ``event``. Raises IllegalTransition if no row matches."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(state, event) from None
