"""Files that projects share: which ones the tasks of other projects may use."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, select, update

from shoal.core.access.grants import EVERY_PROJECT, ResourceGrant
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.schema.access import resource_grant
from shoal.sql.schema.tables import project
from shoal.sql.statements.rows import leave_out, readable

_KIND = "resource grant"
_C = resource_grant.c
_GrantList = list[ResourceGrant]


class ResourceGrants:
    """The ``resource_grant`` table. A row that cannot be read shares nothing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def put(
        self, giver_id: int, taker: str, paths: Collection[str], at: datetime
    ) -> tuple[ResourceGrant, bool]:
        """Share these files alone with a project; return what is stored, and if it is new."""
        values = {"paths": sorted(set(paths)), "updated_at": at}
        row = {"project_id": giver_id, "taker": taker, "created_at": at, **values}
        key = ["project_id", "taker"]
        is_new = bool(await self._connection.insert_new(resource_grant, key, row))
        if not is_new:
            await self._connection.execute(
                update(resource_grant)
                .where(_C.project_id == giver_id, _C.taker == taker)
                .values(values)
            )
        return await self.get(giver_id, taker), is_new

    async def remove(self, giver_id: int, taker: str) -> None:
        """Stop sharing with a project. Raises NotFound."""
        found = await self._connection.execute(
            delete(resource_grant).where(_C.project_id == giver_id, _C.taker == taker)
        )
        if found.rowcount != 1:
            raise NotFound(_KIND, taker)

    async def get(self, giver_id: int, taker: str) -> ResourceGrant:
        """Return what a project shares with another one. Raises NotFound."""
        row = await self._connection.first(
            select(resource_grant).where(_C.project_id == giver_id, _C.taker == taker)
        )
        if row is None:
            raise NotFound(_KIND, taker)
        return readable([row], _grant, _KIND, key="taker")[0]

    async def list(self, giver_id: int) -> _GrantList:
        """Return what a project shares, by the names of those that it shares it with."""
        rows = await self._connection.rows(
            select(resource_grant).where(_C.project_id == giver_id).order_by(_C.taker)
        )
        return readable(rows, _grant, _KIND, leave_out, key="taker")

    async def shared(self, givers: Collection[str], taker: str) -> Mapping[str, frozenset[str]]:
        """Return what each of these projects shares with the tasks of ``taker``."""
        rows = await self._connection.rows(
            select(project.c.name, _C.taker, _C.paths)
            .join_from(resource_grant, project)
            .where(project.c.name.in_(sorted(givers)), _C.taker.in_([taker, EVERY_PROJECT]))
        )
        found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        for name, paths in readable(rows, _paths, _KIND, leave_out, key="taker"):
            found[name] |= paths
        return dict(found)


def _paths(row: Row[Any]) -> tuple[str, frozenset[str]]:
    return row.name, frozenset(row.paths)


def _grant(row: Row[Any]) -> ResourceGrant:
    return ResourceGrant(row.taker, tuple(row.paths), row.created_at, row.updated_at)
