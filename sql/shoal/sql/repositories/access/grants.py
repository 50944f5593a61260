"""Grants between projects: what one lets the tasks of another do."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from shoal.core.access.grants import EVERY_PROJECT, GIVEN_BY, Grant, StoredGrant
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import NotFound
from shoal.sql.schema.access import project_grant
from shoal.sql.schema.tables import project
from shoal.sql.statements.rows import leave_out, readable

_PAIRS_PER_QUERY = 200

Pair = tuple[str, str]  # names: the project that gives, the one that takes


_GrantList = list[StoredGrant]


class Grants:
    """The ``project_grant`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def put(self, giver_id: int, taker: str, what: Grant, at: datetime) -> bool:
        """Let the tasks of a project do something; return whether it was allowed nothing before."""
        c = project_grant.c
        found = await self._connection.execute(
            update(project_grant)
            .where(c.project_id == giver_id, c.taker == taker)
            .values(what=str(what))
        )
        if found.rowcount:
            return False
        row = {"project_id": giver_id, "taker": taker, "what": str(what), "created_at": at}
        await self._connection.execute(insert(project_grant).values(row))
        return True

    async def remove(self, giver_id: int, taker: str) -> None:
        """Remove all permissions. Raises NotFound."""
        c = project_grant.c
        found = await self._connection.execute(
            delete(project_grant).where(c.project_id == giver_id, c.taker == taker)
        )
        if found.rowcount != 1:
            raise NotFound("grant", taker)

    async def list(self, giver_id: int) -> _GrantList:
        """Return what a project allows, by the names of those that it allows it to."""
        c = project_grant.c
        rows = await self._connection.rows(
            select(project_grant).where(c.project_id == giver_id).order_by(c.taker)
        )
        return readable(rows, _grant, "grant", leave_out, key="taker")

    async def given(self, pairs: Collection[Pair], needs: Grant) -> frozenset[Pair]:
        """Return those of ``pairs`` whose first project lets the tasks of the second do it.

        A project lets its own tasks do everything.
        """
        found = {pair for pair in pairs if pair[0] == pair[1]}
        others: defaultdict[str, set[str]] = defaultdict(set)
        for giver, taker in set(pairs) - found:
            others[giver].add(taker)
        c = project_grant.c
        levels = sorted(map(str, GIVEN_BY[needs]))
        for givers in batched(sorted(others), _PAIRS_PER_QUERY):
            rows = await self._connection.rows(
                select(project.c.name, c.taker)
                .join_from(project_grant, project)
                .where(project.c.name.in_(givers), c.what.in_(levels))
            )
            for row in rows:
                takers = others[row.name]
                takers = takers if row.taker == EVERY_PROJECT else takers & {row.taker}
                found.update((row.name, taker) for taker in takers)
        return frozenset(found)


def _grant(row: Row[Any]) -> StoredGrant:
    return StoredGrant(row.taker, Grant(row.what), row.created_at)
