"""Partitions and their owners. The ``epoch`` of a partition fences its former owners."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, func, select, update

from shoal.core.runs.records import PartitionRow
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import Fenced, PartitionsDiffer
from shoal.sql.schema.tables import partition
from shoal.sql.statements.among import Among, numbers

_PRESENT = (
    select(partition.c.number, partition.c.epoch)
    .where(Among(partition.c.number, numbers("numbers")))
    .order_by(partition.c.number)
    .with_for_update(read=True)
)


class Partitions:
    """The ``partition`` table. Rows are locked in order of their number: no deadlocks."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def ensure(self, count: int) -> None:
        """Create partitions 0 to ``count`` - 1 on the first start of a cluster.

        Raises PartitionsDiffer if the cluster was set up with another number.
        """
        stored = await self.count()
        if stored == 0:
            rows = [{"number": number, "epoch": 0, "owner": None} for number in range(count)]
            await self._connection.insert_new(partition, ["number"], rows)
            stored = await self.count()
        if stored != count:
            raise PartitionsDiffer(stored, count)

    async def count(self) -> int:
        """Return how many partitions the cluster has; 0 before its first start."""
        found: int = await self._connection.scalar(select(func.count()).select_from(partition))
        return found

    async def all(self) -> list[PartitionRow]:
        """Return all partitions by number."""
        rows = await self._connection.rows(select(partition).order_by(partition.c.number))
        return [PartitionRow(row.number, row.epoch, row.owner) for row in rows]

    async def raise_epoch(self, number: int, epoch: int, owner: str) -> None:
        """Take over one partition; see ``raise_epochs``."""
        await self.raise_epochs({number: epoch}, owner)

    async def raise_epochs(self, epochs: Mapping[int, int], owner: str) -> None:
        """Make ``owner`` the writer of these partitions; waits for writes of former owners.

        Raises Fenced unless every epoch grows. The same epoch and owner again is no error: the
        answer to the first commit may have been lost.
        """
        if not epochs:
            return
        c = partition.c
        rows = await self._connection.rows(
            select(partition).where(c.number.in_(list(epochs))).order_by(c.number).with_for_update()
        )
        allowed = {
            row.number
            for row in rows
            if (epochs[row.number], owner) == (row.epoch, row.owner)
            or epochs[row.number] > row.epoch
        }
        if fenced := epochs.keys() - allowed:
            raise Fenced(fenced)
        result = await self._connection.execute(
            update(partition)
            .where(c.number == bindparam("row_number"), c.epoch <= bindparam("new_epoch"))
            .values(epoch=bindparam("new_epoch"), owner=owner),
            [{"row_number": n, "new_epoch": epoch} for n, epoch in sorted(epochs.items())],
        )
        if result.rowcount != len(epochs):
            raise Fenced(epochs)

    async def require(self, epochs: Mapping[int, int]) -> None:
        """Raise Fenced unless these are the present epochs; they stay so until the commit.

        Fenced may come from what the transaction does next, at the latest from its commit.
        """

        def judge(rows: list[Any]) -> None:
            present = {row.number: row.epoch for row in rows}
            if fenced := [n for n, epoch in epochs.items() if present.get(n) != epoch]:
                raise Fenced(fenced)

        if epochs:
            await self._connection.demand(_PRESENT, {"numbers": list(epochs)}, judge)
