"""What masters have quarantined, and why: see ``shoal.core.runs.quarantine``."""

from collections.abc import Collection, Sequence

from sqlalchemy import Row, delete, func, insert, select

from shoal.core.runs.quarantine import Kind, QuarantinedItem
from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import quarantine
from shoal.sql.statements.reading import enough

_Items = list[QuarantinedItem]


class QuarantinedItems:
    """The ``quarantine`` table. Written, and fenced, by the owners of the partitions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def put(self, items: Sequence[QuarantinedItem]) -> None:
        """Store what is quarantined, in place of what was known of it."""
        await self.remove([(one.kind, one.item) for one in items])
        for one in items:
            await self._connection.execute(insert(quarantine).values(**vars(one)))

    async def remove(self, keys: Collection[tuple[Kind, str]]) -> None:
        """Forget what is no longer quarantined."""
        q = quarantine.c
        for kind, item in sorted(keys):
            await self._connection.execute(delete(quarantine).where(q.kind == kind, q.item == item))

    async def clear(self, partitions: Collection[int]) -> None:
        """Forget everything of these partitions: their new owner tries again."""
        await self._connection.execute(
            delete(quarantine).where(quarantine.c.partition.in_(sorted(partitions)))
        )

    async def count(self) -> int:
        """Return how much is quarantined."""
        found: int = await self._connection.scalar(select(func.count()).select_from(quarantine))
        return found

    async def list(self, limit: int = 100) -> _Items:
        """Return what is quarantined, the newest first."""
        query = select(quarantine).order_by(quarantine.c.since.desc(), quarantine.c.item)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)),
            _item,
            "quarantine",
            limit,
            key="item",
        )

    async def of(self, kind: Kind, item: object) -> QuarantinedItem | None:
        """Return why a thing is quarantined; None if it is not."""
        q = quarantine.c
        row = await self._connection.first(
            select(quarantine).where(q.kind == kind, q.item == str(item))
        )
        return None if row is None else _item(row)


def _item(row: Row[tuple[object, ...]]) -> QuarantinedItem:
    return QuarantinedItem(
        Kind(row.kind), row.item, row.partition, row.reason, row.tries, row.since
    )
