"""What must be true of every decision, whatever the rules of workflows are."""

from collections.abc import Iterator

from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.states import (
    FINISHED_WORKFLOW,
    HELD_BY_WORKER,
    TASK_TRANSITIONS,
    WORKFLOW_TRANSITIONS,
    TaskSignal,
    TaskState,
    WorkflowState,
)


def _reachable() -> dict[TaskState, set[TaskState]]:
    """By state of an attempt: what one decision may make of it, in any number of steps."""
    found = {state: {state} for state in TaskState}
    for _ in TaskState:
        for (before, signal), after in TASK_TRANSITIONS.items():
            if signal is TaskSignal.RETURN:
                continue  # below: nobody takes it again in the same decision
            for reached in found.values():
                if before in reached:
                    reached.add(after)
    found[TaskState.CLAIMED] |= RETURNED
    return found


# What becomes of an attempt that its worker has returned.
RETURNED = {TaskState.QUEUED, TaskState.PAUSED, TaskState.SKIPPED}
REACHABLE = _reachable()
STEPS = {(before, after) for (before, _), after in WORKFLOW_TRANSITIONS.items()}
# Two steps in one decision: a request, and what it brings at once.
TWO_STEPS = {(a, c) for a, b in STEPS for b2, c in STEPS if b == b2} | STEPS
THREE_STEPS = {(a, c) for a, b in TWO_STEPS for b2, c in STEPS if b == b2} | TWO_STEPS


def broken(run: Run, decision: Decision) -> Iterator[str]:
    """Say what is wrong with a decision on ``run``, which is still as it was before it."""
    if decision.refusal is not None and (decision.attempts or decision.state or decision.actions):
        yield "a refused request changes something"
    if decision.state is not None:
        yield from _broken_state(run, decision)
    elif decision.finished_at is not None:
        yield "finished, but in the same state"
    for (task, number), attempt in decision.attempts.items():
        before = run.attempts[task]
        if number == before.number:
            yield from _broken_attempt(before, attempt)
        elif number < before.number:
            yield f"attempt {number} of {task} was written after attempt {before.number}"


def _broken_state(run: Run, decision: Decision) -> Iterator[str]:
    assert decision.state is not None
    if decision.previous != run.state:
        yield f"the guard is {decision.previous}, the instance was {run.state}"
    if (run.state, decision.state) not in THREE_STEPS:
        yield f"no rule leads from {run.state} to {decision.state}"
    if (decision.state in FINISHED_WORKFLOW) != (decision.finished_at is not None):
        yield f"{decision.state} with finished_at {decision.finished_at}"
    started = decision.started_at or run.started_at
    if decision.state is WorkflowState.RUNNING and started is None:
        yield "it runs without having started"


def _broken_attempt(before: Attempt, attempt: Attempt) -> Iterator[str]:
    name = f"attempt {attempt.number} of {attempt.task}"
    if attempt.state not in REACHABLE[before.state]:
        yield f"{name}: no rule leads from {before.state} to {attempt.state}"
    if attempt.finished and attempt.finished_at is None:
        yield f"{name}: {attempt.state} without a time"
    if (attempt.state is TaskState.SKIPPED) != (attempt.skip_cause is not None):
        yield f"{name}: {attempt.state} with the cause {attempt.skip_cause}"
    if attempt.state in HELD_BY_WORKER and attempt.worker is None and attempt.started_at is None:
        yield f"{name}: {attempt.state} by nobody"
    returned = before.state is TaskState.CLAIMED and attempt.state in RETURNED
    if before.worker is not None and attempt.worker != (None if returned else before.worker):
        yield f"{name}: taken from {before.worker}"
