"""The queries that run all the time find their rows by index, on a database with a history."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, event, text

from shoal.core.definition.model import Overlap
from shoal.core.runs.overlap import Policy
from shoal.core.runs.records import WorkflowOrder
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import Database, UnitOfWork
from shoal.sql.schema.types import UtcDateTime
from tests.integration.sql.given import NOW, definition, published

INSTANCES = 4_000
_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
# A long history and a little that is going on: every 100th is open or pending; of those every
# 4th waits for others, every 10th is not a start.
_HISTORY = (
    "INSERT INTO command (type, partition, idempotency_key, workflow_id, parameters, requested_by,"
    f" state, created_at) {_NUMBERS.format(count=INSTANCES)}"
    "SELECT CASE WHEN i % 1000 = 0 THEN 'STOP' ELSE 'START' END, i % 8, 'k' || i, :workflow, '{}',"
    " '',"
    " CASE WHEN i % 100 = 0 THEN 'PENDING' ELSE 'DONE' END, :at FROM n",
    "INSERT INTO workflow_instance (project_id, workflow_id, version, state, partition, priority,"
    " parameters, logical_time, timezone, command_id, run_number, created_at, admitted_at)"
    " SELECT 1, CASE WHEN id % 100 = 0 THEN :workflow ELSE :other END, 1,"
    " CASE WHEN id % 400 = 0 THEN 'QUEUED' WHEN id % 100 = 0 THEN 'RUNNING' ELSE 'SUCCEEDED' END,"
    " partition, 2, '{}', :at, 'UTC', id, 1, :at, CASE WHEN id % 400 = 0 THEN NULL ELSE :at END"
    " FROM command",
    "INSERT INTO task_instance (workflow_instance_id, position, attempt, task, type, state,"
    " worker_group, worker, failures, losses)"
    f" {_NUMBERS.format(count=5)}"
    "SELECT id, i, 1, 't' || i, 'SHELL', CASE WHEN id % 100 = 0 THEN 'RUNNING' ELSE 'SUCCEEDED'"
    " END, 'default', 'w' || (id % 1000), 0, 0 FROM workflow_instance, n",
    "INSERT INTO task_instance (workflow_instance_id, position, attempt, task, type, state,"
    " worker_group, failures, losses, concurrency_group, workflow_priority, task_priority)"
    " SELECT id, 99, 1, 'slot', 'SHELL', 'BLOCKED', 'default', 0, 0, 'demo/g', 2, 2"
    " FROM workflow_instance WHERE id % 100 = 50",
    "INSERT INTO schedule (workflow_id, partition, cron, timezone, parameters, enabled,"
    f" next_fire_at) {_NUMBERS.format(count=2000)}"
    "SELECT :workflow, i % 8, '* * * * *', 'UTC', '{}', i > 0,"
    " CASE WHEN i % 100 = 0 THEN :at ELSE :far END FROM n",
    "INSERT INTO event (at, kind, project, workflow_instance_id, data)"
    " SELECT :at, 'instance.state', 'demo', id, '{}' FROM workflow_instance",
)
_TIMES = ("at", "far")


@pytest.fixture
async def busy(database: Database) -> Database:
    """A database with a history."""
    tasks = ["t1", "t2", "t3", "t4", "t5"]
    values = {
        "workflow": await published(database, definition("flow", tasks=tasks)),
        "other": await published(database, definition("other", tasks=tasks)),
        "at": NOW,
        "far": NOW.replace(year=2030),
    }
    async with database.unit_of_work() as uow:
        for statement in _HISTORY:
            used = {name: value for name, value in values.items() if f":{name}" in statement}
            times = (bindparam(name, type_=UtcDateTime()) for name in used if name in _TIMES)
            await uow.connection.execute(text(statement).bindparams(*times), used)
        if database.kind == "postgresql":  # it does this by itself in time, SQLite never does
            await uow.connection.execute(text("ANALYZE"))
        await uow.commit()
    return database


async def plans_of(
    database: Database, ask: Callable[[UnitOfWork], Awaitable[Any]], *without: str
) -> list[str]:
    """Return the plan of every statement that ``ask`` executes.

    ``without``: what PostgreSQL is to avoid, so that it takes indices though tables are small.
    """
    statements: dict[str, Any] = {}  # with their parameters; one that was done again stands once

    def note(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        statements[statement] = parameters

    def listen(connection: Connection) -> None:
        event.listen(connection, "before_cursor_execute", note)

    async with database.unit_of_work(read_only=True) as uow:
        for way in without if database.kind == "postgresql" else ():
            await uow.connection.execute(text(f"SET LOCAL enable_{way} = off"))
        await uow.connection.run_sync(listen)
        assert await ask(uow), "the query must find something"
        explain = "EXPLAIN QUERY PLAN " if database.kind == "sqlite" else "EXPLAIN "

        def plan(connection: Connection) -> list[str]:
            event.remove(connection, "before_cursor_execute", note)
            return [
                "\n".join(str(row[-1]) for row in connection.exec_driver_sql(explain + s, p))
                for s, p in statements.items()
            ]

        return await uow.connection.run_sync(plan)


QUERIES: dict[str, tuple[Callable[[UnitOfWork], Awaitable[Any]], str]] = {
    "commands.starts": (lambda uow: uow.commands.starts(range(4), 5), "ix_command_pending"),
    "commands.requests": (
        lambda uow: uow.commands.requests(range(8), 5),
        "ix_command_pending_requests",
    ),
    "admission.lineup": (
        lambda uow: uow.admission.lineup(1, Policy(Overlap.QUEUE, 2, 10)),
        "ix_workflow_instance_waiting",
    ),
    "admission.lineup, its active runs": (
        lambda uow: uow.admission.lineup(1, Policy(Overlap.REPLACE, 2, 10)),
        "ix_workflow_instance_unfinished",
    ),
    "commands.backlog": (lambda uow: uow.commands.backlog(), "ix_command_pending"),
    "commands.add": (
        lambda uow: uow.commands.with_key("k7"),
        "uq_command_idempotency_key",
    ),
    "instances.open_runs": (
        lambda uow: uow.instances.open_runs(4),
        "ix_workflow_instance_open",
    ),
    "instances.open_counts": (
        lambda uow: uow.instance_counts.open(range(8)),
        "ix_workflow_instance_open",
    ),
    "tasks.counts": (
        lambda uow: uow.tasks.counts([TaskState.CLAIMED, TaskState.RUNNING]),
        "ix_task_instance_state_id",
    ),
    "instances.list": (
        lambda uow: uow.instances.list(limit=20, before=(NOW, 2000)),
        "ix_workflow_instance_created_at_id",
    ),
    "instances.list by workflow": (
        lambda uow: uow.instances.list(project="demo", workflow="flow", limit=20),
        "ix_workflow_instance_workflow_id_state_created_at_id",
    ),
    "instances.list by state": (
        lambda uow: uow.instances.list(
            states=[WorkflowState.RUNNING, WorkflowState.FAILED], limit=20
        ),
        "ix_workflow_instance_state_created_at_id",
    ),
    "tasks.of_instance": (
        lambda uow: uow.tasks.of_instance(77),
        "uq_task_instance_workflow_instance_id_position_attempt",
    ),
    "tasks.list by state": (
        lambda uow: uow.tasks.list(states=[TaskState.RUNNING], limit=20),
        "ix_task_instance_state_id",
    ),
    "tasks.list by worker": (
        lambda uow: uow.tasks.list(worker="w3", limit=20),
        "ix_task_instance_worker_id",
    ),
    "instances.task_counts": (
        lambda uow: uow.instance_counts.tasks([5, 6]),
        "uq_task_instance_workflow_instance_id_position_attempt",
    ),
    "grid.cells": (
        lambda uow: uow.grid.cells([5, 6], ["t1"]),
        "uq_task_instance_workflow_instance_id_position_attempt",
    ),
    "grid.newest": (
        lambda uow: uow.grid.newest(1, NOW, NOW + timedelta(days=1), 10),
        "ix_workflow_instance_workflow_id_logical_time",
    ),
    "recent.runs": (
        lambda uow: uow.recent.runs([1, 2], 14),
        "ix_workflow_instance_workflow_id_logical_time",
    ),
    "workflows.ranked": (
        lambda uow: uow.workflows.ranked(WorkflowOrder.FAILING, None, 10),
        "ix_workflow_instance_workflow_id_logical_time",
    ),
    "grid.kept_since": (
        lambda uow: uow.grid.kept_since(1),
        "ix_workflow_instance_workflow_id_state_created_at_id",
    ),
    "schedules.due": (
        lambda uow: uow.schedules.due(range(4), NOW, 10),
        "ix_schedule_next_fire_at_partition",
    ),
    "schedules.firing": (
        lambda uow: uow.schedules.firing(NOW + timedelta(days=1), 10),
        "ix_schedule_next_fire_at_partition",
    ),
    "schedules.next_due": (
        lambda uow: uow.schedules.next_due(range(4)),
        "ix_schedule_next_fire_at_partition",
    ),
    "schedules.next_due after a moment": (
        lambda uow: uow.schedules.next_due(range(4), NOW),
        "ix_schedule_next_fire_at_partition",
    ),
    "slots.waiting_in": (
        lambda uow: uow.slots.waiting_in("demo/g", 5),
        "ix_task_instance_blocked",
    ),
    "events.after": (lambda uow: uow.events.after(3900, 10), "pk_event"),
    "events.after of an instance": (
        lambda uow: uow.events.after(0, 10, instance_id=7),
        "ix_event_workflow_instance_id_id",
    ),
}
# What SQLite calls the indices of primary keys and of unique constraints.
_IMPLICIT = {"pk_": "INTEGER PRIMARY KEY", "uq_": "sqlite_autoindex_"}
_LARGE = ("command", "workflow_instance", "task_instance", "schedule", "event")


async def test_hot_queries_use_their_indices(busy: Database) -> None:
    wrong = []
    for name, (ask, index) in QUERIES.items():
        plans = await plans_of(busy, ask)
        if busy.kind == "sqlite" and index[:3] in _IMPLICIT:
            index = _IMPLICIT[index[:3]]
        if not any(index in plan for plan in plans) or any(map(reads_all, plans)):
            wrong.append(f"{name} does not go by {index}:\n" + "\n".join(plans))
    assert not wrong, "\n\n".join(wrong)


async def test_first_page_is_the_end_of_the_table(busy: Database) -> None:
    plan, _ = await plans_of(busy, lambda uow: uow.instances.list(limit=20))
    assert "ix_workflow_instance_created_at_id" in plan  # backwards, no further than needed
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


def reads_all(plan: str) -> bool:
    """Whether a whole large table is read (SQLite: not even in the order of an index)."""
    lines = [line.strip() for line in plan.splitlines()]
    return any(
        f"Seq Scan on {table}" in line or line in (f"SCAN {table}", f"SCAN TABLE {table}")
        for line in lines
        for table in _LARGE
    )
