"""What this cluster is called: a random name that no other cluster has, and its former names.

Everything that a cluster keeps outside its database carries the name that the cluster had when it
was written. The administrator of a copied or restored database gives it a new name (``UPDATE
cluster SET uid``); the next process to start notes up to which ids the former one counts.

The row of ``cluster`` also names the ZooKeeper tree that the database is bound to.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import select, update

from shoal.core.runs.records import StoredBinding
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import BoundElsewhere
from shoal.sql.schema.tables import cluster, cluster_name, resource, task_instance, write_check

log = structlog.get_logger()

_NUMBER = 1  # of the only row
_ROW = select(cluster).where(cluster.c.number == _NUMBER)


@dataclass(frozen=True)
class ClusterName:
    """A name, and the highest ids that there were when it was new: those are under the one before.

    ``after_attempt``: of task instances. ``after_resource``: of rows of the table ``resource``.
    """

    uid: str
    after_attempt: int = 0
    after_resource: int = 0


@dataclass(frozen=True)
class ClusterNames:
    """All names of a cluster, oldest first; the last one is the present one. At least one."""

    names: Sequence[ClusterName]

    @property
    def present(self) -> ClusterName:
        """The name that everything new carries."""
        return self.names[-1]

    def of_attempt(self, task_instance: int) -> list[str]:
        """Return the uids that the cluster may have had when a task instance ran, newest first.

        One that was made under a former name may have run under a later one.
        """
        found = []
        for one in reversed(self.names):
            found.append(one.uid)
            if one.after_attempt < task_instance:
                break
        return found


class ClusterRepository:
    """The tables ``cluster`` and ``cluster_name``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def uid(self) -> str:
        """Return the cluster's name, which the migration has made.

        Everything that the cluster has elsewhere carries it: objects, logs, tags of work. A lost
        row is made anew. A name that is new is noted; the caller commits.
        """
        if (found := await self._connection.first(_ROW)) is None:
            log.warning("the cluster's name was lost; earlier work elsewhere is not found again")
            row = {"number": _NUMBER, "uid": str(uuid.uuid4())}
            await self._connection.insert_new(cluster, ["number"], row)
            found = await self._connection.first(_ROW)
        assert found is not None
        await self._note(found.uid)
        return str(found.uid)

    async def names(self) -> ClusterNames:
        """Return the present name and all former ones."""
        rows = await self._connection.rows(select(cluster_name).order_by(cluster_name.c.number))
        found = [ClusterName(row.uid, row.after_attempt, row.after_resource) for row in rows]
        return ClusterNames(found or [ClusterName(await self.uid())])

    async def _note(self, uid: str) -> None:
        """Note a new name with the ids that were given under the one before."""
        last = await self._connection.first(
            select(cluster_name).order_by(cluster_name.c.number.desc()).limit(1)
        )
        if last is not None and last.uid == uid:
            return
        row = {"number": 1, "uid": uid, "after_attempt": 0, "after_resource": 0}
        if last is not None:
            row |= {
                "number": last.number + 1,
                "after_attempt": await self._connection.last_id(task_instance),
                "after_resource": await self._connection.last_id(resource),
            }
            log.warning(
                "the cluster has a new name: what it kept elsewhere under the former one is read, "
                "never removed",
                uid=uid,
                former=last.uid,
            )
        # Of several processes that start at once one is the first.
        await self._connection.insert_new(cluster_name, ["number"], row)

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

    async def write_check(self, number: int) -> None:
        """Write the row ``number`` of those that are there to be written."""
        c = write_check.c
        row = {"number": number, "writes": 0}
        if not await self._connection.insert_new(write_check, ["number"], row):
            await self._connection.execute(
                update(write_check).where(c.number == number).values(writes=c.writes + 1)
            )

    async def require_tree(self, tree: str, database: str) -> None:
        """Raise BoundElsewhere unless the database is bound to ``tree``, until the commit."""
        row = await self._connection.first(_ROW.with_for_update(read=True))
        if row is None or row.tree != tree:
            bound, address = (None, "") if row is None else (row.tree, row.tree_address or "")
            raise BoundElsewhere(database, tree, bound, address)
