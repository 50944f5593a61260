"""One character for the state of a task in a run: a grid of 100,000 of them is a short answer.

Capital letters are final, small ones are not. They are a promise to clients and never change.
"""

from collections.abc import Mapping

from shoal.core.runs.states import TaskState

_T = TaskState
CELLS: Mapping[TaskState, str] = {
    _T.WAITING: "w",
    _T.DELAYED: "d",
    _T.UP_FOR_RETRY: "y",
    _T.BLOCKED: "b",
    _T.PAUSED: "p",
    _T.QUEUED: "q",
    _T.CLAIMED: "c",
    _T.RUNNING: "r",
    _T.SUCCEEDED: "S",
    _T.FAILED: "F",
    _T.KILLED: "K",
    _T.LOST: "L",
    _T.SKIPPED: "N",
    _T.RESCHEDULED: "e",
}
FORCED = "O"  # SUCCEEDED because a user said so
NO_TASK = "."  # the run's version does not have the task, or the run has not begun
UNKNOWN = "?"  # a state that this version does not know


def cell(state: str, is_forced: bool) -> str:
    """Return the character of a stored state."""
    if is_forced and state == TaskState.SUCCEEDED:
        return FORCED
    return _BY_TEXT.get(state, UNKNOWN)


_BY_TEXT: Mapping[str, str] = {str(state): code for state, code in CELLS.items()}
