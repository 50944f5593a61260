"""Which runs only wait, so that they cost a master next to nothing."""

from collections.abc import Callable

from shoal.core.runs.run import Run
from shoal.core.runs.states import TaskState, WorkflowState

_T = TaskState


def only_waits(run: Run, is_served: Callable[[str], bool]) -> bool:
    """Return whether nothing of a run works or is about to.

    So it is while it waits for its admission, or while all that is ready waits for a slot of a
    concurrency group or for a worker group that no worker serves. ``is_served`` returns whether a
    worker group has workers.
    """
    if run.state is WorkflowState.QUEUED:
        return run.admitted_at is None
    if run.state is not WorkflowState.RUNNING:
        return False
    counts = run.counts
    if counts[_T.CLAIMED] or counts[_T.RUNNING]:
        return False
    if not counts[_T.QUEUED]:
        return counts[_T.BLOCKED] > 0
    return not any(
        attempt.state is _T.QUEUED and is_served(run.plan.tasks[attempt.task].worker_group)
        for attempt in run.attempts.values()
    )


def groups_without_workers(run: Run, is_served: Callable[[str], bool]) -> set[str]:
    """Return the worker groups without workers that queued tasks of a run wait for."""
    if not run.counts[_T.QUEUED]:
        return set()
    return {
        group
        for attempt in run.attempts.values()
        if attempt.state is _T.QUEUED
        and not is_served(group := run.plan.tasks[attempt.task].worker_group)
    }
