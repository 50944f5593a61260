"""The two state machines of Shoal as data: workflow instances and task attempts.

States change nowhere else. The diagrams in ``docs/states.md`` and the exhaustive tests are made
from these tables. A *task instance* is one attempt: its terminal states are final, and a retry
or a recovery is a new attempt with a new row.
"""

from collections.abc import Mapping
from enum import StrEnum

from shoal.core.errors import ShoalError


class WorkflowState(StrEnum):
    """State of one workflow instance."""

    QUEUED = "QUEUED"  # created: not yet decided upon, or waits for other runs of its workflow
    RUNNING = "RUNNING"  # tasks may start
    PAUSING = "PAUSING"  # nothing new starts; what runs may finish
    PAUSED = "PAUSED"  # nothing runs; resume continues
    STOPPING = "STOPPING"  # what runs is being killed
    STOPPED = "STOPPED"  # ended by request; resume starts the killed tasks anew
    FAILED = "FAILED"  # ended, a required task failed; recover starts the failed tasks anew
    SUCCEEDED = "SUCCEEDED"  # ended well; chosen tasks can run again


class WorkflowSignal(StrEnum):
    """What can happen to a workflow instance."""

    START = "START"  # its first decision
    PAUSE = "PAUSE"  # request
    RESUME = "RESUME"  # request
    STOP = "STOP"  # request
    RECOVER = "RECOVER"  # request: run the failed tasks again, keep the successes
    RERUN = "RERUN"  # request: run chosen tasks again
    FORCE = "FORCE"  # request: take a failed task for a success
    SETTLE = "SETTLE"  # a pause or stop is complete: no task runs
    SUCCEED = "SUCCEED"  # every task is resolved, no required one failed
    FAIL = "FAIL"  # every task is resolved, a required one failed


class TaskState(StrEnum):
    """State of one task attempt."""

    WAITING = "WAITING"  # for its upstream tasks
    DELAYED = "DELAYED"  # ready, waits for the task's start delay
    UP_FOR_RETRY = "UP_FOR_RETRY"  # a new attempt that waits for its retry delay
    BLOCKED = "BLOCKED"  # ready, waits for a slot of its concurrency group
    PAUSED = "PAUSED"  # was ready, held back by a pause
    QUEUED = "QUEUED"  # stands in the queue of its worker group
    CLAIMED = "CLAIMED"  # a worker took it and was given its payload
    RUNNING = "RUNNING"  # its process has started, or the master works on it
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"  # ended by request
    LOST = "LOST"  # its worker went away; says nothing about the task's own quality
    SKIPPED = "SKIPPED"  # will not run; the reason says why
    RESCHEDULED = "RESCHEDULED"  # a look that did not find what it waits for; another one follows


class TaskSignal(StrEnum):
    """What can happen to a task attempt."""

    DELAY = "DELAY"  # ready, but its start delay is not over
    BACK_OFF = "BACK_OFF"  # ready, but its retry delay is not over
    BLOCK = "BLOCK"  # ready, but its concurrency group may be full
    QUEUE = "QUEUE"  # ready: hand it to the workers
    HOLD = "HOLD"  # the instance is being paused
    RELEASE = "RELEASE"  # the instance goes on
    CLAIM = "CLAIM"  # a worker asks for the payload
    RETURN = "RETURN"  # the worker has not begun, and will not
    START = "START"  # the worker started the process; or the master works on it from now on
    SUCCEED = "SUCCEED"
    FAIL = "FAIL"
    KILL = "KILL"
    LOSE = "LOSE"  # the worker's session ended without a result
    SKIP = "SKIP"
    RESCHEDULE = "RESCHEDULE"  # what the task waits for is not there yet: look again later


class IllegalTransition(ShoalError):
    """A signal that the current state does not allow."""

    def __init__(self, state: StrEnum, signal: StrEnum) -> None:
        self.state, self.signal = state, signal
        super().__init__(f"{type(state).__name__} {state} does not allow {signal}")


_W, _WS = WorkflowState, WorkflowSignal
WORKFLOW_TRANSITIONS: Mapping[tuple[WorkflowState, WorkflowSignal], WorkflowState] = {
    (_W.QUEUED, _WS.START): _W.RUNNING,
    (_W.QUEUED, _WS.STOP): _W.STOPPING,
    (_W.QUEUED, _WS.PAUSE): _W.PAUSING,
    (_W.RUNNING, _WS.PAUSE): _W.PAUSING,
    (_W.RUNNING, _WS.STOP): _W.STOPPING,
    (_W.RUNNING, _WS.RECOVER): _W.RUNNING,
    (_W.RUNNING, _WS.SUCCEED): _W.SUCCEEDED,
    (_W.RUNNING, _WS.FAIL): _W.FAILED,
    (_W.PAUSING, _WS.RESUME): _W.RUNNING,
    (_W.PAUSING, _WS.STOP): _W.STOPPING,
    (_W.PAUSING, _WS.SETTLE): _W.PAUSED,
    (_W.PAUSING, _WS.SUCCEED): _W.SUCCEEDED,
    (_W.PAUSING, _WS.FAIL): _W.FAILED,
    (_W.PAUSED, _WS.RESUME): _W.RUNNING,
    (_W.PAUSED, _WS.STOP): _W.STOPPING,
    (_W.STOPPING, _WS.SETTLE): _W.STOPPED,
    (_W.STOPPING, _WS.SUCCEED): _W.SUCCEEDED,
    (_W.STOPPING, _WS.FAIL): _W.FAILED,
    (_W.STOPPED, _WS.RESUME): _W.RUNNING,
    (_W.STOPPED, _WS.RERUN): _W.RUNNING,
    (_W.FAILED, _WS.RECOVER): _W.RUNNING,
    (_W.FAILED, _WS.RERUN): _W.RUNNING,
    (_W.FAILED, _WS.FORCE): _W.RUNNING,
    (_W.SUCCEEDED, _WS.RERUN): _W.RUNNING,
    (_W.RUNNING, _WS.FORCE): _W.RUNNING,
    (_W.PAUSING, _WS.FORCE): _W.PAUSING,
}

_T, _TS = TaskState, TaskSignal
_ENDINGS: Mapping[TaskSignal, TaskState] = {
    _TS.SUCCEED: _T.SUCCEEDED,
    _TS.FAIL: _T.FAILED,
    _TS.KILL: _T.KILLED,
    _TS.LOSE: _T.LOST,
    _TS.RESCHEDULE: _T.RESCHEDULED,
}
# What a ready attempt waits for before it is queued, or the master starts to work on it.
_READY = (_T.WAITING, _T.DELAYED, _T.UP_FOR_RETRY, _T.BLOCKED)
# Where an attempt waits that is to look again.
_BETWEEN_LOOKS = (_T.DELAYED, _T.BLOCKED, _T.QUEUED)
TASK_TRANSITIONS: Mapping[tuple[TaskState, TaskSignal], TaskState] = {
    (_T.WAITING, _TS.DELAY): _T.DELAYED,
    (_T.WAITING, _TS.BACK_OFF): _T.UP_FOR_RETRY,
    (_T.WAITING, _TS.BLOCK): _T.BLOCKED,
    (_T.DELAYED, _TS.BLOCK): _T.BLOCKED,
    (_T.UP_FOR_RETRY, _TS.BLOCK): _T.BLOCKED,
    (_T.WAITING, _TS.SUCCEED): _T.SUCCEEDED,  # an attempt added by force
    **{(state, _TS.QUEUE): _T.QUEUED for state in _READY},
    **{(state, _TS.START): _T.RUNNING for state in _READY},
    **{(state, _TS.HOLD): _T.PAUSED for state in _READY},
    **{(state, _TS.SKIP): _T.SKIPPED for state in _READY},
    **{(state, _TS.KILL): _T.KILLED for state in _READY},
    # Only of tasks that wait for another look: their timeout is over, or they are forced.
    **{(state, _TS.FAIL): _T.FAILED for state in _BETWEEN_LOOKS},
    **{(state, _TS.SUCCEED): _T.SUCCEEDED for state in _BETWEEN_LOOKS},
    (_T.PAUSED, _TS.RELEASE): _T.WAITING,
    (_T.PAUSED, _TS.SKIP): _T.SKIPPED,
    (_T.PAUSED, _TS.KILL): _T.KILLED,
    (_T.QUEUED, _TS.CLAIM): _T.CLAIMED,
    (_T.QUEUED, _TS.HOLD): _T.PAUSED,
    (_T.QUEUED, _TS.SKIP): _T.SKIPPED,
    (_T.QUEUED, _TS.KILL): _T.KILLED,
    (_T.CLAIMED, _TS.RETURN): _T.QUEUED,
    (_T.CLAIMED, _TS.START): _T.RUNNING,
    # Only of tasks that the master runs.
    (_T.RUNNING, _TS.HOLD): _T.PAUSED,
    (_T.RUNNING, _TS.SKIP): _T.SKIPPED,
    **{(_T.CLAIMED, signal): state for signal, state in _ENDINGS.items()},
    **{(_T.RUNNING, signal): state for signal, state in _ENDINGS.items()},
}

# A live process may exist for these and for no other state. Tasks that the master runs are
# RUNNING without a worker.
HELD_BY_WORKER = frozenset({_T.CLAIMED, _T.RUNNING})
BETWEEN_LOOKS = frozenset(_BETWEEN_LOOKS)
FINISHED_TASK = frozenset({_T.SUCCEEDED, _T.FAILED, _T.KILLED, _T.LOST, _T.SKIPPED, _T.RESCHEDULED})
# Instances that a master keeps in memory and works on.
OPEN_WORKFLOW = frozenset({_W.QUEUED, _W.RUNNING, _W.PAUSING, _W.STOPPING})
FINISHED_WORKFLOW = frozenset({_W.STOPPED, _W.FAILED, _W.SUCCEEDED})


def next_workflow_state(state: WorkflowState, signal: WorkflowSignal) -> WorkflowState:
    """Return the state after ``signal``. Raises IllegalTransition if no row matches."""
    try:
        return WORKFLOW_TRANSITIONS[state, signal]
    except KeyError:
        raise IllegalTransition(state, signal) from None


def next_task_state(state: TaskState, signal: TaskSignal) -> TaskState:
    """Return the state after ``signal``. Raises IllegalTransition if no row matches."""
    try:
        return TASK_TRANSITIONS[state, signal]
    except KeyError:
        raise IllegalTransition(state, signal) from None
