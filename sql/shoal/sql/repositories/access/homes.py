"""Which project a thing belongs to. It never changes, so answers may be remembered."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import BindParameter, Select, bindparam, select

from shoal.core.access.authorization import Thing
from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import (
    backfill,
    command,
    project,
    schedule,
    task_instance,
    workflow,
    workflow_instance,
)
from shoal.sql.statements.value_sets import Among, numbers

_KEY: BindParameter[Any] = bindparam("key")
_I, _W = workflow_instance, workflow
_QUERIES: Mapping[Thing, Select[Any]] = {
    Thing.PROJECT: select(project.c.id.label("home")).where(project.c.name == _KEY),
    Thing.INSTANCE: select(_I.c.project_id.label("home")).where(_I.c.id == _KEY),
    Thing.TASK_INSTANCE: select(_I.c.project_id.label("home"))
    .join_from(task_instance, _I)
    .where(task_instance.c.id == _KEY),
    Thing.COMMAND: select(_W.c.project_id.label("home"))
    .join_from(command, _W)
    .where(command.c.id == _KEY),
    Thing.SCHEDULE: select(_W.c.project_id.label("home"))
    .join_from(schedule, _W)
    .where(schedule.c.id == _KEY),
    Thing.BACKFILL: select(_W.c.project_id.label("home"))
    .join_from(backfill, _W, backfill.c.workflow_id == _W.c.id)
    .where(backfill.c.id == _KEY),
}


_MANY: Mapping[Thing, Select[Any]] = {
    Thing.INSTANCE: select(_I.c.id, _I.c.project_id.label("home")).where(
        Among(_I.c.id, numbers("keys"))
    ),
    Thing.TASK_INSTANCE: select(task_instance.c.id, _I.c.project_id.label("home"))
    .join_from(task_instance, _I)
    .where(Among(task_instance.c.id, numbers("keys"))),
    Thing.SCHEDULE: select(schedule.c.id, _W.c.project_id.label("home"))
    .join_from(schedule, _W)
    .where(Among(schedule.c.id, numbers("keys"))),
}


class Homes:
    """Looks the project of a thing up."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def of(self, thing: Thing, key: int | str) -> int | None:
        """Return the id of the project that a thing belongs to; None: there is no such thing."""
        rows = await self._connection.fetch(_QUERIES[thing], {"key": key})
        return rows[0].home if rows else None

    async def of_many(self, thing: Thing, keys: Collection[int]) -> dict[int, int]:
        """Return the ids of the projects of instances, attempts, schedules; unknown: missing."""
        rows = await self._connection.fetch(_MANY[thing], {"keys": sorted(keys)})
        return {row.id: row.home for row in rows}
