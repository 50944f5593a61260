"""Concurrency groups: how many tasks that share something may be at work at once.

A group belongs to a project and has a number of slots. An attempt takes a slot before it is
queued and has it until it ends or is paused.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from shoal.core.runs.events import Event, SlotGranted
from shoal.core.runs.run import Decision, Run
from shoal.core.runs.states import TaskState

MOST_SLOTS = 1_000_000

# An attempt with a lease occupies its slot in these states and in no other.
OCCUPIES_SLOT = frozenset(
    {TaskState.BLOCKED, TaskState.QUEUED, TaskState.CLAIMED, TaskState.RUNNING}
)
_HAS_TAKEN_SLOT = OCCUPIES_SLOT - {TaskState.BLOCKED}


def qualified(project: str, name: str) -> str:
    """Return the name of a group that is unique in the cluster."""
    return f"{project}/{name}"


def group_of(run: Run, task: str) -> str | None:
    """Return the qualified name of the group that a task of ``run`` needs a slot of."""
    name = run.plan.tasks[task].concurrency_group
    return None if name is None else qualified(run.plan.spec.project, name)


def slots_taken(events: Iterable[Event], decisions: Iterable[Decision]) -> set[int]:
    """Return the attempts that leave BLOCKED because ``events`` said that they have a slot."""
    granted = {event.task_instance_id for event in events if isinstance(event, SlotGranted)}
    if not granted:
        return set()
    return {
        attempt.id
        for decision in decisions
        for attempt in decision.attempts.values()
        if attempt.id in granted and attempt.state in _HAS_TAKEN_SLOT
    }


@dataclass(frozen=True)
class SlotUser:
    """An attempt that has a slot, or waits for one (``granted_at`` None)."""

    task_instance_id: int
    workflow_instance_id: int
    workflow: str
    task: str
    attempt: int
    state: TaskState
    granted_at: datetime | None
