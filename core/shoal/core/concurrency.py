"""Concurrency groups: how many tasks that share something may be at work at once.

A group belongs to a project and has a number of slots. An attempt takes a slot before it is
queued and has it until it ends or is paused.
"""

from shoal.core.run import Run
from shoal.core.states import TaskState

MOST_SLOTS = 1_000_000

# An attempt with a lease occupies its slot in these states and in no other.
OCCUPIES_SLOT = frozenset(
    {TaskState.BLOCKED, TaskState.QUEUED, TaskState.CLAIMED, TaskState.RUNNING}
)


def qualified(project: str, name: str) -> str:
    """Return the name of a group that is unique in the cluster."""
    return f"{project}/{name}"


def group_of(run: Run, task: str) -> str | None:
    """Return the qualified name of the group that a task of ``run`` needs a slot of."""
    name = run.plan.tasks[task].concurrency_group
    return None if name is None else qualified(run.plan.spec.project, name)
