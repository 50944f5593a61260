"""Query plans on a database with a history: which tables a query reads as a whole."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, event, text

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


_LARGE = ("command", "workflow_instance", "task_instance", "schedule", "event")


def reads_all(plan: str) -> bool:
    """Whether a whole large table is read (SQLite: not even in the order of an index)."""
    lines = [line.strip() for line in plan.splitlines()]
    return any(
        f"Seq Scan on {table}" in line or line in (f"SCAN {table}", f"SCAN TABLE {table}")
        for line in lines
        for table in _LARGE
    )
