"""Rows of a project that tests spoil, past everything that checks what is stored."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Column, Table, text

from shoal.sql.errors import SqlError
from shoal.sql.schema import tables
from tests.integration.api.conftest import Api

# Another name, place or owner is not a junk: the row is somebody else's then.
NAMES: tuple[str, ...] = (
    "id",
    "name",
    "project_id",
    "workflow_id",
    "command_id",
    "position",
    "idempotency_key",
)
NAMES += ("workflow_instance_id", "backfill_id", "project", "item", "kind", "deleted_at")

# What each table's row of a workflow goes by, and the name of that in ``Stock``.
ROWS: Mapping[Table, tuple[str, str]] = {
    tables.project: ("name", "project"),
    tables.secret: ("project_id", "project"),
    tables.environment: ("name", "project"),
    tables.data_source: ("project_id", "project"),
    tables.resource: ("project_id", "project"),
    tables.calendar: ("project_id", "project"),
    tables.concurrency_group: ("project_id", "project"),
    tables.workflow: ("project_id", "project"),
    tables.alert: ("project_id", "project"),
    tables.alert_definition: ("project_id", "project"),
    tables.alert_delivery: ("project_id", "project"),
    tables.alert_silence: ("project_id", "project"),
    tables.workflow_version: ("workflow_id", "project"),
    tables.workflow_layout: ("workflow_id", "project"),
    tables.command: ("id", "command_id"),
    tables.workflow_instance: ("id", "instance_id"),
    tables.task_instance: ("id", "task_instance_id"),
    tables.schedule: ("id", "schedule_id"),
    tables.backfill: ("id", "backfill_id"),
    tables.backfill_run: ("backfill_id", "backfill_id"),
    tables.event: ("workflow_instance_id", "instance_id"),
    tables.purge: ("id", "purge_id"),
    tables.purge_part: ("purge_id", "purge_id"),
}
BY_PROJECT = {
    "project_id": "(SELECT id FROM project WHERE name = :key)",
    "workflow_id": "(SELECT w.id FROM workflow w JOIN project p ON p.id = w.project_id"
    " WHERE p.name = :key)",
}


async def spoil(api: Api, column: Column[Any], value: Any, which: Mapping[str, Any]) -> bool:
    """Write a value into a row, past everything that checks; tell whether the database took it."""
    by, name = ROWS[column.table]
    key = BY_PROJECT.get(by, ":key")
    if by == "workflow_id" and column.table not in (
        tables.workflow_version,
        tables.workflow_layout,
    ):
        key = ":key"
    statement = text(
        f'UPDATE "{column.table.name}" SET "{column.name}" = :value WHERE {by} = {key}'
    )
    try:
        async with api.services.store.unit_of_work() as uow:
            await uow.connection.execute(statement, {"value": value, "key": which[name]})
            await uow.commit()
    except SqlError:
        return False
    return True
