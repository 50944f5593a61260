"""Lists, whatever the filters, are walks along indices: the history may be long."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from itertools import pairwise, product
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.runs.filters import InstanceFilter, SortKey, SortOrder, TaskFilter
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import Database, UnitOfWork
from tests.integration.sql.given import NOW
from tests.integration.sql.plans.plans import busy as busy
from tests.integration.sql.plans.plans import plans_of, reads_all

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


def _searches() -> Iterator[tuple[InstanceFilter, SortOrder]]:
    """What the search has walks for: the rest is sifted from these."""
    for home, some in product(_HOMES, (frozenset(), frozenset({_W.RUNNING, _W.SUCCEEDED}))):
        for is_rising in (False, True):
            order = SortOrder(is_rising=is_rising)
            one = InstanceFilter(**home, state=some)
            yield one, order
            yield one.model_copy(update={"schedule_id": 7}), order
            yield one.model_copy(update={"backfill_id": 8}), order
            yield one.model_copy(update={"parent_id": 100}), order
            yield one.model_copy(update={"label": ("team=a", "tier=1")}), order
            yield one.model_copy(update={"text": "flow", "shortest": 0.0, "version": 1}), order
            if len(home) == 2:
                yield one, SortOrder(SortKey.LOGICAL, is_rising)
            if home:
                yield one, SortOrder(SortKey.DURATION, is_rising)


@pytest.fixture
async def labelled(busy: Database) -> Database:
    """A database whose runs have labels, schedules, backfills and parents, too."""
    async with busy.unit_of_work() as uow:
        for statement in _MORE:
            await uow.connection.execute(text(statement))
        if busy.kind == "postgresql":
            await uow.connection.execute(text("ANALYZE"))
        await uow.commit()
    return busy


_MORE = (
    "INSERT INTO instance_label (workflow_instance_id, key, value, project_id, created_at)"
    " SELECT id, 'team', CASE WHEN id % 2 = 0 THEN 'a' ELSE 'b' END, project_id, created_at"
    " FROM workflow_instance",
    "UPDATE workflow_instance SET schedule_id = 7 WHERE id % 3 = 0",
    "UPDATE workflow_instance SET backfill_id = 8 WHERE id % 3 = 1",
    "UPDATE task_instance SET type = 'MAP' WHERE workflow_instance_id = 100 AND position = 1",
    "UPDATE workflow_instance SET parent_task_id ="
    " (SELECT id FROM task_instance WHERE workflow_instance_id = 100 AND position = 1)"
    " WHERE id % 3 = 2",
)


async def test_searches(labelled: Database) -> None:
    for wanted, order in _searches():

        async def ask(
            uow: UnitOfWork, wanted: InstanceFilter = wanted, order: SortOrder = order
        ) -> bool:
            await uow.instances.search(wanted, order, None, 20)
            return True

        found = await _unbounded(labelled, ask)
        assert not found, f"{wanted} {order}\n" + "\n".join(found)


async def test_counts(labelled: Database) -> None:
    for home in _HOMES:

        async def ask(uow: UnitOfWork, home: dict[str, Any] = home) -> bool:
            await uow.instances.counted(InstanceFilter(**home), None)
            return True

        found = await _unbounded(labelled, ask)
        assert not found, f"{home}\n" + "\n".join(found)


async def test_task_instances(busy: Database) -> None:
    for filters in _task_lists():

        async def ask(uow: UnitOfWork, filters: dict[str, Any] = filters) -> bool:
            await uow.tasks.list(limit=20, **filters)
            return True

        found = await _unbounded(busy, ask)
        assert not found, f"{filters}\n" + "\n".join(found)


@pytest.fixture
async def failing(busy: Database) -> Database:
    """A database in which one attempt of a hundred has failed, in four ways."""
    async with busy.unit_of_work() as uow:
        await uow.connection.execute(text(_FAILED))
        if busy.kind == "postgresql":
            await uow.connection.execute(text("ANALYZE"))
        await uow.commit()
    return busy


_FINGERPRINT = f"{0:016x}"
_FAILED = (
    "UPDATE task_instance SET state = 'FAILED', error_line = 'no disk',"
    " fingerprint = '000000000000000' || ((workflow_instance_id / 20) % 4)"
    " WHERE position = 3 AND workflow_instance_id % 20 = 0"
)


async def test_attempts_of_one_fingerprint_are_found_by_its_index(failing: Database) -> None:
    for home, states in product(_HOMES, (frozenset(), frozenset({_T.FAILED}))):
        wanted = TaskFilter(**home, state=states, fingerprint=_FINGERPRINT)

        async def ask(uow: UnitOfWork, wanted: TaskFilter = wanted) -> bool:
            found, _ = await uow.tasks.search(wanted, limit=20)
            assert {one.fingerprint for one in found} <= {_FINGERPRINT}
            return bool(found)

        plans = await plans_of(failing, ask, *_WITHOUT)
        assert not [plan for plan in plans if reads_all(plan) or _sorts_all(plan)], wanted
        if "workflow" not in home:  # that one has few instances, all of which are read
            assert any("ix_task_instance_fingerprint" in plan for plan in plans), plans
