"""The cluster's uid, and the ZooKeeper tree that the database is bound to."""

import uuid

import structlog
from sqlalchemy import select, update

from shoal.core.runs.records import StoredBinding
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import BoundElsewhere
from shoal.sql.schema.tables import cluster

log = structlog.get_logger()

_NUMBER = 1  # of the only row
_ROW = select(cluster).where(cluster.c.number == _NUMBER)


class Cluster:
    """The ``cluster`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def uid(self) -> str:
        """Return the cluster's name, which the migration has made.

        It is part of the tags of work that tasks do elsewhere. A lost row is made anew.
        """
        if (found := await self._connection.first(_ROW)) is None:
            log.warning("the cluster's name was lost; earlier work elsewhere is not found again")
            row = {"number": _NUMBER, "uid": str(uuid.uuid4())}
            await self._connection.insert_new(cluster, ["number"], row)
            found = await self._connection.first(_ROW)
        assert found is not None
        return str(found.uid)

    # -- the tree --------------------------------------------------------------------------------

    async def binding(self, database: str) -> StoredBinding | None:
        """Return what the database is bound to; None if the row was lost.

        ``database`` is the address that the result names.
        """
        row = await self._connection.first(_ROW)
        if row is None:
            return None
        return StoredBinding(row.uid, row.tree, row.tree_address or "", row.tree_beats, database)

    async def bind(
        self, tree: str, address: str, seen: StoredBinding, *, even_if_alive: bool = False
    ) -> bool:
        """Bind the database to ``tree``, unless it was bound anew since ``seen`` was read.

        Returns whether it was. A beat since then also prevents it, except ``even_if_alive``.
        """
        c = cluster.c
        is_as_seen = [c.uid == seen.cluster, c.tree.is_(None)]
        if seen.tree is not None:
            is_as_seen[1] = c.tree == seen.tree
        if not even_if_alive:
            is_as_seen.append(c.tree_beats == seen.beats)
        result = await self._connection.execute(
            update(cluster)
            .where(c.number == _NUMBER, *is_as_seen)
            .values(tree=tree, tree_address=address, tree_beats=c.tree_beats + 1)
        )
        return result.rowcount == 1

    async def beat(self, tree: str) -> None:
        """Note that a master in ``tree`` is alive; nothing if the database is bound elsewhere."""
        c = cluster.c
        await self._connection.execute(
            update(cluster)
            .where(c.number == _NUMBER, c.tree == tree)
            .values(tree_beats=c.tree_beats + 1)
        )

    async def require_tree(self, tree: str, database: str) -> None:
        """Raise BoundElsewhere unless the database is bound to ``tree``, until the commit."""
        row = await self._connection.first(_ROW.with_for_update(read=True))
        if row is None or row.tree != tree:
            bound, address = (None, "") if row is None else (row.tree, row.tree_address or "")
            raise BoundElsewhere(database, tree, bound, address)
