"""Partitions and their owners. The ``epoch`` of a partition fences its former owners."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, insert, select, update

from shoal.core.runs.records import PartitionRow, Takeover
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import Fenced, PartitionsDiffer
from shoal.sql.schema.tables import partition, takeover
from shoal.sql.statements.rows import enough, record_of, require_numbers
from shoal.sql.statements.value_sets import Among, numbers

MOST_KEPT = 10_000  # takeovers

# Called on the loop with partition -> epoch of the writer, which the database refuses.
OnFenced = Callable[[Mapping[int, int]], None]

_PRESENT = (
    select(partition.c.number, partition.c.epoch)
    .where(Among(partition.c.number, numbers("numbers")))
    .order_by(partition.c.number)
    .with_for_update(read=True)
)


class Partitions:
    """The ``partition`` table. Rows are locked in order of their number: no deadlocks."""

    def __init__(self, connection: Connection, on_fenced: OnFenced | None = None) -> None:
        """``on_fenced`` hears of the epochs that ``require`` refuses."""
        self._connection, self._on_fenced = connection, on_fenced

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

        Raises Fenced unless every epoch grows. The same epoch and owner again is not an error: the
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
        await self._note([row for row in rows if row.epoch != epochs[row.number]], epochs, owner)

    async def _note(self, taken: Sequence[Row[Any]], epochs: Mapping[int, int], owner: str) -> None:
        """Keep the takeovers."""
        if not taken:
            return
        [ids] = await self._connection.reserve_ids({takeover: len(taken)})
        at = datetime.now(UTC)
        rows = [
            {
                "id": row_id,
                "at": at,
                "partition": row.number,
                "epoch": epochs[row.number],
                "owner": owner,
                "previous_owner": row.owner,
            }
            for row_id, row in zip(ids, taken, strict=True)
        ]
        await self._connection.execute(insert(takeover), rows)

    async def forget_takeovers(self, limit: int, until: int | None = None) -> int:
        """Delete the oldest takeovers but for the newest 10,000; return how many.

        ``limit`` at most. ``until``: none with a higher id.
        """
        newest = await self._connection.scalar(select(func.max(takeover.c.id)))
        last = (newest or 0) - MOST_KEPT
        last = last if until is None else min(last, until)
        oldest = select(takeover.c.id).where(takeover.c.id <= last).order_by(takeover.c.id)
        statement = delete(takeover).where(takeover.c.id.in_(oldest.limit(limit)))
        result = await self._connection.execute(statement, is_long=True)
        return result.rowcount

    async def takeovers(self, before_id: int | None, limit: int) -> list[Takeover]:
        """Return the newest changes of owners, below ``before_id``."""
        query = select(takeover).order_by(takeover.c.id.desc())
        if before_id is not None:
            query = query.where(takeover.c.id < before_id)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _takeover, "takeover", limit
        )

    async def require(self, epochs: Mapping[int, int]) -> None:
        """Raise Fenced unless these are the present epochs; they stay so until the commit.

        Fenced may come from what the transaction does next, at the latest from its commit.
        """

        def judge(rows: list[Any]) -> None:
            present = {row.number: row.epoch for row in rows}
            fenced = {n: epoch for n, epoch in epochs.items() if present.get(n) != epoch}
            if fenced:
                if self._on_fenced is not None:
                    self._on_fenced(fenced)
                raise Fenced(fenced)

        if epochs:
            await self._connection.demand(_PRESENT, {"numbers": list(epochs)}, judge)


def _takeover(row: Row[Any]) -> Takeover:
    require_numbers(row, "partition", "epoch")
    return record_of(Takeover, row)
