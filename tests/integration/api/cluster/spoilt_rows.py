"""Rows of a project that tests spoil, past everything that checks what is stored."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Boolean, Column, Float, Integer, Table, insert, text

from shoal.sql.errors import SqlError
from shoal.sql.schema import tables
from shoal.sql.schema.types import Json, UtcDateTime
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
_T = tables.project.metadata.tables
# One row, or one for each partition, that the cluster cannot do without: no other row goes on
# beside it.
OF_CLUSTER: frozenset[Table] = frozenset(
    _T[name]
    for name in (
        "access_state",
        "alert_job",
        "audit_link",  # its triggers refuse changes
        "audit_state",
        "cluster",
        "cluster_name",
        "history_export",
        "history_verified",
        "partition",
        "sealing",
        "write_check",
    )
)
_OF_PRINCIPAL = "principal_id = :principal_id"
_OF_PROJECT_ID = "project_id = (SELECT id FROM project WHERE name = :project)"
# Rows of accounts, grants, logs and roll-ups: by which condition they are found.
OTHERS: Mapping[Table, str] = {
    _T[name]: condition
    for name, condition in {
        "alert_condition": _OF_PROJECT_ID,
        "alert_member": "name = :project",
        "alert_mention": "delivery_id = :delivery_id",
        "alert_try": "delivery_id = :delivery_id",
        "api_token": _OF_PRINCIPAL,
        "audit_entry": "project = :project",
        "concurrency_lease": "task_instance_id = :task_instance_id",
        "dependency_wait": "task_instance_id = :task_instance_id",
        "draft": _OF_PROJECT_ID,
        "group_member": _OF_PRINCIPAL,
        "instance_label": "workflow_instance_id = :instance_id",
        "login_session": _OF_PRINCIPAL,
        "principal": "id = :principal_id",
        "principal_group": "id = :group_id",
        "project_grant": _OF_PROJECT_ID,
        "project_role": _OF_PRINCIPAL,
        "quarantine": "project = :project",
        "resource_grant": _OF_PROJECT_ID,
        "restriction": "name = :project",
        "rollup": "project = :project",
        "rollup_batch": "id = 7001",
        "rollup_day": "batch = 7001",
        "sign_in": _OF_PRINCIPAL,
        "takeover": "id = 7001",
    }.items()
}
# They move a row to others, or out of sight of the condition.
_KEYS_OF_OTHERS = {
    "project": {"audit_entry", "quarantine"},
    "workflow_instance_id": {"dependency_wait"},
    "batch": {"rollup_day"},
}


def columns_of_others() -> Iterator[Column[Any]]:
    """Yield what is spoilt of ``OTHERS``: all that is no key, whatever the schema has."""
    for table in OTHERS:
        for column in table.c:
            if column.primary_key or column.foreign_keys:
                continue
            if table.name not in _KEYS_OF_OTHERS.get(column.name, ()):
                yield column


async def other_rows(api: Api, which: Mapping[str, Any]) -> dict[str, Any]:
    """Make a row in each table of ``OTHERS`` that has none of the project; return its names."""
    given = {**which, "principal_id": 7001, "group_id": 7001}
    async with api.services.store.unit_of_work() as uow:
        ids = {
            name: await uow.connection.scalar(text(query), given)
            for name, query in {
                "project_id": "SELECT id FROM project WHERE name = :project",
                "workflow_id": "SELECT workflow_id FROM workflow_instance WHERE id = :instance_id",
                "concurrency_group.id": f"SELECT id FROM concurrency_group WHERE {_OF_PROJECT_ID}",
            }.items()
        }
        keys = {
            "project.id": ids["project_id"],
            "principal.id": 7001,
            "principal_group.id": 7001,
            "workflow.id": ids["workflow_id"],
            "workflow_instance.id": which["instance_id"],
            "alert_delivery.id": which["delivery_id"],
            "concurrency_group.id": ids["concurrency_group.id"],
        }
        named = {"task_instance_id": which["task_instance_id"], "batch": 7001, "id": 7001}
        known = {
            "kind": "USER",
            "role": "reader",
            "what": "see",
            "taker": "*",
            "permissions": None,
            "name": which["project"],
            "project": which["project"],
            "group_id": None,
            "project_id": ids["project_id"],
            "workflow_instance_id": which["instance_id"],
            "job": "costs",
            "day": "2020-01-01",
            "trigger": "run.late",
            "partition": 0,
        }
        # In the order of their references.
        for table in (one for one in tables.project.metadata.sorted_tables if one in OTHERS):
            where = text(f'SELECT count(*) FROM "{table.name}" WHERE {OTHERS[table]}')
            if await uow.connection.scalar(where, given):
                continue
            row: dict[str, Any] = {}
            for column in table.c:
                reference = next((one.target_fullname for one in column.foreign_keys), None)
                if table.name == "project_role" and column.name == "group_id":
                    continue
                if reference is not None:
                    row[column.name] = keys[reference]
                elif column.name in named:
                    row[column.name] = named[column.name]
                elif column.name in known:
                    row[column.name] = known[column.name]
                elif not column.nullable:
                    row[column.name] = _plain(column)
            if table.name == "restriction":
                row["kind"] = "environment"
            await uow.connection.execute(insert(table).values(**row))
        await uow.commit()
    return given


def _plain(column: Column[Any]) -> Any:
    """Return a value that a column may well have."""
    if isinstance(column.type, UtcDateTime):
        return datetime(2026, 1, 1, tzinfo=UTC)
    if isinstance(column.type, Json):
        return column.type.kind()
    if isinstance(column.type, Boolean):
        return False
    return 1 if isinstance(column.type, Integer | Float) else f"7001 {column.name}"


BY_PROJECT = {
    "project_id": "(SELECT id FROM project WHERE name = :key)",
    "workflow_id": "(SELECT w.id FROM workflow w JOIN project p ON p.id = w.project_id"
    " WHERE p.name = :key)",
}


async def spoil(api: Api, column: Column[Any], value: Any, which: Mapping[str, Any]) -> bool:
    """Write a value into a row, past everything that checks; tell whether the database took it."""
    if column.table in OTHERS:
        values = {key: one for key, one in which.items() if f":{key}" in OTHERS[column.table]}
        return await _written(api, column, OTHERS[column.table], {"value": value, **values})
    by, name = ROWS[column.table]
    key = BY_PROJECT.get(by, ":key")
    if by == "workflow_id" and column.table not in (
        tables.workflow_version,
        tables.workflow_layout,
    ):
        key = ":key"
    return await _written(api, column, f"{by} = {key}", {"value": value, "key": which[name]})


async def _written(
    api: Api, column: Column[Any], condition: str, values: Mapping[str, Any]
) -> bool:
    name, table = column.name, column.table
    change = f'UPDATE "{table.name}" SET "{name}" = :value WHERE {condition}'
    if table.name == "audit_entry":  # triggers refuse changes, not another entry
        rest = [one.name for one in table.c if one is not column and not one.primary_key]
        names = ", ".join(f'"{one}"' for one in rest)
        kept = ", ".join(":project" if one == "project" else f'"{one}"' for one in rest)
        change = (
            f'INSERT INTO audit_entry ("{name}", {names}) SELECT :value, {kept} FROM audit_entry'
            " ORDER BY id LIMIT 1"
        )
    try:
        async with api.services.store.unit_of_work() as uow:
            await uow.connection.execute(text(change), values)
            await uow.commit()
    except SqlError:
        return False
    return True
