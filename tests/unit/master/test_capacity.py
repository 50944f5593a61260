"""How many starts a master takes, by what it holds."""

from datetime import UTC, datetime

from shoal.core.runs.commands import Command, CommandType
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.services.commands.capacity import StartCapacity
from tests.unit.core.decide.driving import spec

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def queued(number: int) -> Run:
    """A run whose only task waits for a worker."""
    attempts = {"a": Attempt("a", 1, TaskState.QUEUED, id=number, queued_at=NOW)}
    plan = WorkflowPlan.of(spec({"a": {}}))
    return Run(number, plan, WorkflowState.RUNNING, 0, attempts, NOW, NOW)


def test_members_are_walked_once_for_a_group_however_many_runs_wait_for_it() -> None:
    asked: list[str] = []

    def is_served(group: str) -> bool:
        asked.append(group)
        return False

    start = Command(CommandType.START, 0, "k", 1, id=1, created_at=NOW)
    capacity = StartCapacity({number: queued(number) for number in range(100)}, 1, is_served)
    assert capacity.choose([(start, "p")]) == [start]
    assert asked == ["default"]
    assert capacity.choose([(start, "p")]) == [start]
    assert asked == ["default"] * 2  # workers may have come meanwhile
