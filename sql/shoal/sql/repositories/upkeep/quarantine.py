"""What is quarantined, and why: see ``shoal.core.runs.quarantine``."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Row, and_, delete, func, insert, select, update

from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from shoal.core.untrusted import read_count
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.schema.tables import quarantine
from shoal.sql.statements.rows import enough, leave_out, readable, record_of

MOST_SKIPPED = 1_000
"""Skipped items of a consumer and kind that are kept."""

_Items = list[QuarantinedItem]
_Q = quarantine.c


class QuarantinedItems:
    """The ``quarantine`` table. Rows with a partition are written, and fenced, by its owner."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def put(self, items: Sequence[QuarantinedItem]) -> None:
        """Store items in place of what was known of them."""
        for one in items:
            await self.remove([(one.kind, one.item)], one.consumer)
            await self._connection.execute(insert(quarantine).values(**vars(one)))

    async def note(self, one: QuarantinedItem) -> None:
        """Store an item; one that is stored already is tried once more, with the new reason."""
        at = one.last_at or one.since
        changed = await self._connection.execute(
            update(quarantine)
            .where(_Q.consumer == one.consumer, _Q.kind == one.kind, _Q.item == one.item)
            .values(
                reason=one.reason,
                tries=_Q.tries + one.tries,
                last_at=at,
                is_skipped=one.is_skipped,
                retry_at=None,
            )
        )
        if changed.rowcount == 0:
            await self._connection.insert_new(
                quarantine, ["consumer", "kind", "item"], {**vars(one), "last_at": at}
            )

    async def remove(
        self, keys: Collection[tuple[ItemKind, str]], consumer: ItemConsumer = ItemConsumer.MASTERS
    ) -> None:
        """Forget what is no longer quarantined."""
        for kind, item in sorted(keys):
            await self._connection.execute(
                delete(quarantine).where(_Q.consumer == consumer, _Q.kind == kind, _Q.item == item)
            )

    async def request_retry(
        self, kind: ItemKind, item: str, consumer: ItemConsumer, at: datetime
    ) -> None:
        """Have the consumer try an item again. Raises NotFound."""
        changed = await self._connection.execute(
            update(quarantine)
            .where(_Q.consumer == consumer, _Q.kind == kind, _Q.item == item)
            .values(retry_at=at)
        )
        if changed.rowcount == 0:
            raise NotFound("quarantined item", f"{consumer}/{kind}/{item}")

    async def requested(
        self,
        consumer: ItemConsumer,
        kinds: Collection[ItemKind],
        partitions: Collection[int] | None = None,
        limit: int = 100,
    ) -> _Items:
        """Return items of these kinds whose retry was requested, the first request first.

        ``partitions``: only items of these; None: of any or none.
        """
        query = select(quarantine).where(
            _Q.consumer == consumer, _Q.kind.in_(sorted(kinds)), _Q.retry_at.is_not(None)
        )
        if partitions is not None:
            query = query.where(_Q.partition.in_(sorted(partitions)))
        rows = await self._connection.rows(query.order_by(_Q.retry_at, _Q.item).limit(limit))
        return readable(rows, _item, "quarantine", leave_out, key="item")

    async def discard(self, kind: ItemKind, item: str, consumer: ItemConsumer) -> None:
        """Forget an item. Raises NotFound."""
        gone = await self._connection.execute(
            delete(quarantine).where(_Q.consumer == consumer, _Q.kind == kind, _Q.item == item)
        )
        if gone.rowcount == 0:
            raise NotFound("quarantined item", f"{consumer}/{kind}/{item}")

    async def clear(self, partitions: Collection[int]) -> set[int]:
        """Forget everything of these partitions: their new owner tries again.

        Return the ids of the instances among it.
        """
        mine = _Q.partition.in_(sorted(partitions))
        rows = await self._connection.rows(
            select(_Q.item).where(
                mine, _Q.consumer == ItemConsumer.MASTERS, _Q.kind == ItemKind.INSTANCE
            )
        )
        await self._connection.execute(delete(quarantine).where(mine))
        return {number for row in rows if (number := read_count(row.item)) is not None}

    async def count(self, consumer: ItemConsumer = ItemConsumer.MASTERS) -> int:
        """Return how much of a consumer is quarantined."""
        found: int = await self._connection.scalar(
            select(func.count()).select_from(quarantine).where(_Q.consumer == consumer)
        )
        return found

    async def counts(self, since: datetime | None = None) -> Mapping[tuple[str, bool], int]:
        """Return the number of items by consumer, and by whether they are skipped.

        ``since``: only those that failed at that time or later.
        """
        query = select(_Q.consumer, _Q.is_skipped, func.count().label("total")).group_by(
            _Q.consumer, _Q.is_skipped
        )
        if since is not None:
            query = query.where(func.coalesce(_Q.last_at, _Q.since) >= since)
        rows = await self._connection.rows(query)
        return {(row.consumer, bool(row.is_skipped)): row.total for row in rows}

    async def list(
        self,
        limit: int = 100,
        consumer: ItemConsumer | None = None,
        kind: ItemKind | None = None,
        project: str | None = None,
    ) -> _Items:
        """Return what is quarantined, the newest first; of all consumers without ``consumer``."""
        at = func.coalesce(_Q.last_at, _Q.since)
        query = select(quarantine).order_by(at.desc(), _Q.item)
        if consumer is not None:
            query = query.where(_Q.consumer == consumer)
        if kind is not None:
            query = query.where(_Q.kind == kind)
        if project is not None:
            query = query.where(_Q.project == project)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)),
            _item,
            "quarantine",
            limit,
            key="item",
        )

    async def keys(
        self, consumer: ItemConsumer, kinds: Collection[ItemKind]
    ) -> set[tuple[ItemKind, str]]:
        """Return the kind and name of each quarantined item of these kinds."""
        rows = await self._connection.rows(
            select(_Q.kind, _Q.item).where(_Q.consumer == consumer, _Q.kind.in_(sorted(kinds)))
        )
        return {(ItemKind(row.kind), row.item) for row in rows}

    async def of(
        self, kind: ItemKind, item: object, consumer: ItemConsumer = ItemConsumer.MASTERS
    ) -> QuarantinedItem | None:
        """Return why a thing is quarantined; None if it is not."""
        row = await self._connection.first(
            select(quarantine).where(_Q.consumer == consumer, _Q.kind == kind, _Q.item == str(item))
        )
        return None if row is None else _item(row)

    async def prune(self, consumer: ItemConsumer, before: datetime | None) -> None:
        """Forget skipped items that failed before ``before``, and all but the newest.

        ``before`` None: none for its age. ``MOST_SKIPPED`` of each kind stay.
        """
        mine = and_(_Q.consumer == consumer, _Q.is_skipped.is_(True))
        if before is not None:
            await self._connection.execute(delete(quarantine).where(mine, _Q.last_at < before))
        counts = await self._connection.rows(
            select(_Q.kind).where(mine).group_by(_Q.kind).having(func.count() > MOST_SKIPPED)
        )
        for kind in [row.kind for row in counts]:
            of_kind = and_(mine, _Q.kind == kind)
            newest = (
                select(_Q.item)
                .where(of_kind)
                .order_by(_Q.last_at.desc(), _Q.item.desc())
                .limit(MOST_SKIPPED)
            )
            await self._connection.execute(
                delete(quarantine).where(of_kind, _Q.item.not_in(newest.scalar_subquery()))
            )


def _item(row: Row[tuple[object, ...]]) -> QuarantinedItem:
    return record_of(
        QuarantinedItem, row, kind=ItemKind(row.kind), consumer=ItemConsumer(row.consumer)
    )
