"""What this cluster is called: a random name that no other cluster has, and its former names.

Everything that a cluster keeps outside its database carries the name that the cluster had when it
was written. The administrator of a copied or restored database gives it a new name (``UPDATE
cluster SET uid``); the next process to start notes up to which ids the former one counts.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import select

from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import cluster, cluster_name, resource, task_instance

log = structlog.get_logger()

_NUMBER = 1  # of the only row


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


class Cluster:
    """The tables ``cluster`` and ``cluster_name``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def uid(self) -> str:
        """Return the cluster's name, which the migration has made.

        Everything that the cluster has elsewhere carries it: objects, logs, tags of work. A lost
        row is made anew. A name that is new is noted; the caller commits.
        """
        if (found := await self._stored()) is None:
            log.warning("the cluster's name was lost; earlier work elsewhere is not found again")
            row = {"number": _NUMBER, "uid": str(uuid.uuid4())}
            await self._connection.insert_new(cluster, ["number"], row)
            found = await self._stored()
        assert found is not None
        await self._note(found)
        return found

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

    async def _stored(self) -> str | None:
        row = await self._connection.first(select(cluster.c.uid).where(cluster.c.number == _NUMBER))
        return None if row is None else str(row.uid)
