"""Lists, whatever the filters, are walks along indices: the length of the history is no matter."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from itertools import pairwise, product
from typing import Any

from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import Database, UnitOfWork
from tests.integration.sql.given import NOW
from tests.integration.sql.test_indices import busy as busy  # the fixture
from tests.integration.sql.test_indices import plans_of, reads_all

Ask = Callable[[UnitOfWork], Awaitable[Any]]

_WITHOUT = ("seqscan", "sort", "bitmapscan")
_BACK = "SCAN task_instance"  # SQLite: from the newest row back, as far as the limit
_W, _T = WorkflowState, TaskState
_HOMES: tuple[dict[str, Any], ...] = (
    {},
    {"project": "demo"},
    {"workflow": "flow"},
    {"project": "demo", "workflow": "flow"},
)
_PERIODS: tuple[dict[str, Any], ...] = (
    {},
    {"since": NOW - timedelta(days=1)},
    {"since": NOW - timedelta(days=1), "until": NOW + timedelta(days=1)},
    {"until": NOW + timedelta(days=1), "before": (NOW, 3_000)},
)
_WORKERS: tuple[dict[str, Any], ...] = ({}, {"worker": "w0"}, {"worker": "w0", "before_id": 19_000})


def _instance_lists() -> Iterator[dict[str, Any]]:
    states: tuple[list[WorkflowState], ...] = ([], [_W.RUNNING], [_W.RUNNING, _W.SUCCEEDED])
    for home, some, period in product(_HOMES, states, _PERIODS):
        yield {**home, "states": some, **period}


def _task_lists() -> Iterator[dict[str, Any]]:
    states: tuple[list[TaskState], ...] = ([], [_T.RUNNING], [_T.RUNNING, _T.SUCCEEDED])
    for home, some, worker in product(_HOMES, states, _WORKERS):
        yield {**home, "states": some, **worker}


async def _unbounded(database: Database, ask: Ask) -> list[str]:
    """Return the plans among those of ``ask`` that grow with the tables."""
    plans = await plans_of(database, ask, *_WITHOUT)
    return [plan for plan in plans if plan != _BACK and (reads_all(plan) or _sorts_all(plan))]


def _sorts_all(plan: str) -> bool:
    """Whether what an index gives is put in order; sorting the ends of walks costs nothing."""
    if "Append" in plan:
        return False
    lines = plan.splitlines()
    return "Sort" in plan or any(
        "INDEX" in line and "USE TEMP B-TREE" in after for line, after in pairwise(lines)
    )


async def test_instances(busy: Database) -> None:
    for filters in _instance_lists():

        async def ask(uow: UnitOfWork, filters: dict[str, Any] = filters) -> bool:
            await uow.instances.list(limit=20, **filters)
            return True

        found = await _unbounded(busy, ask)
        assert not found, f"{filters}\n" + "\n".join(found)


async def test_task_instances(busy: Database) -> None:
    for filters in _task_lists():

        async def ask(uow: UnitOfWork, filters: dict[str, Any] = filters) -> bool:
            await uow.tasks.list(limit=20, **filters)
            return True

        found = await _unbounded(busy, ask)
        assert not found, f"{filters}\n" + "\n".join(found)
