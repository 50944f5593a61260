"""What this cluster is called: a random name that no other cluster has."""

import uuid

import structlog
from sqlalchemy import select

from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import cluster

log = structlog.get_logger()

_NUMBER = 1  # of the only row


class Cluster:
    """The ``cluster`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def uid(self) -> str:
        """Return the cluster's name, which the migration has made.

        It is part of the tags of work that tasks do elsewhere. A lost row is made anew.
        """
        if (found := await self._stored()) is None:
            log.warning("the cluster's name was lost; earlier work elsewhere is not found again")
            row = {"number": _NUMBER, "uid": str(uuid.uuid4())}
            await self._connection.insert_new(cluster, ["number"], row)
            found = await self._stored()
        assert found is not None
        return found

    async def _stored(self) -> str | None:
        row = await self._connection.first(select(cluster.c.uid).where(cluster.c.number == _NUMBER))
        return None if row is None else str(row.uid)
