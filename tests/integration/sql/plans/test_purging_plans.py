"""Looking for what may go, and deleting it, goes by indices however long the history is."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import text

from shoal.sql import Database, UnitOfWork
from shoal.sql.repositories.upkeep.expired_rows import ExpiryScope
from tests.integration.sql.given import NOW
from tests.integration.sql.plans.plans import busy as busy
from tests.integration.sql.plans.plans import plans_of, reads_all

_ALL, _OLD = ExpiryScope(range(8)), NOW.replace(year=2029)
_IMPLICIT = {"pk_": "INTEGER PRIMARY KEY", "uq_": "sqlite_autoindex_"}

LOOKS: dict[str, tuple[Callable[[UnitOfWork], Awaitable[Any]], tuple[str, ...]]] = {
    "instances": (
        lambda uow: uow.expired.instances(_ALL, _OLD, 1000, 500),
        # Commands of one instance are few: either index of them will do.
        (
            "ix_command_pending_of_instance|ix_command_of_instance",
            "ix_workflow_instance_parent_task_id",
        ),
    ),
    "backfills": (
        lambda uow: uow.expired.backfills(_ALL, _OLD, 0, 500),
        (),
    ),
    "commands": (
        lambda uow: uow.expired.commands(_ALL, _OLD, 1000, 500),
        ("uq_workflow_instance_command_id",),
    ),
    "those that are kept": (
        lambda uow: uow.expired.kept(2, 10),
        ("ix_workflow_instance_workflow_id_state_created_at_id",),
    ),
    "attempts": (
        lambda uow: uow.expired.attempts_of([7, 8]),
        ("uq_task_instance_workflow_instance_id_position_attempt",),
    ),
    "events": (lambda uow: uow.events.count_before(_OLD, 10), ("ix_event_at",)),
}


@pytest.mark.parametrize("name", LOOKS)
async def test_looks_go_by_their_indices(busy: Database, name: str) -> None:
    ask, indices = LOOKS[name]
    plans = await plans_of(busy, ask, "seqscan", "bitmapscan", "hashjoin", "mergejoin")
    text = "\n".join(plans)
    for index in indices:
        if busy.kind == "sqlite" and index[:3] in _IMPLICIT:
            index = _IMPLICIT[index[:3]]
        assert any(one in text for one in index.split("|")), text
    assert not any(map(reads_all, plans)), text


async def test_foreign_keys_of_what_goes_are_found_by_index(busy: Database) -> None:
    """For each row that goes, a database looks whether another one refers to it."""
    checks = {
        "task_instance": "workflow_instance_id",
        "workflow_instance": "command_id",
        "backfill": "command_id",
        "backfill_run": "backfill_id",
        "purge_part": "purge_id",
    }
    explain = "EXPLAIN QUERY PLAN" if busy.kind == "sqlite" else "EXPLAIN"
    async with busy.unit_of_work() as uow:
        if busy.kind == "postgresql":
            await uow.connection.execute(text("SET LOCAL enable_seqscan = off"))
        for table, column in checks.items():
            rows = await uow.connection.rows(
                text(f"{explain} SELECT 1 FROM {table} WHERE {column} = 7")
            )
            plan = "\n".join(str(row[-1]) for row in rows)
            assert "SEARCH" in plan or "Index" in plan, plan
