"""How roll-ups get into the database, and out of it again.

A batch is written beside the one that counts, in as many transactions as it takes; ``publish``
then lets it count instead of the old one. Whatever is written belongs to a batch that is
known as one that does not count until then, so what a killed writer has left is found by its row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Select, and_, delete, insert, or_, select, tuple_, update

from shoal.sql.driver.connection import Connection
from shoal.sql.errors import RollupTaken
from shoal.sql.schema.tables import rollup, rollup_batch, rollup_day
from shoal.sql.schema.types import JsonText

_D, _B, _R = rollup_day.c, rollup_batch.c, rollup.c
_KEY = (_R.project, _R.workflow, _R.place)
ARE_AGGREGATES = and_(_R.project == "", _R.workflow == "", _R.place < 0)


@dataclass(frozen=True)
class Batch:
    """A batch that is being written, in place of ``before``; None: there was none."""

    id: int
    job: str
    day: date
    before: int | None


@dataclass(frozen=True)
class Counting:
    """The batch that counts, and the digest of the file that it came from."""

    batch: int
    digest: str


@dataclass(frozen=True)
class NewBlock:
    """A part of the rows of a workflow: ``place`` counts the parts from 0.

    ``body``: a JSON list of objects, or, which is a third of that, of the columns' names followed
    by a list of values for each row. Below 0 are aggregates, -1 first, both names empty: what
    readers take in place of the rows of all workflows (``core/insight/aggregates.py``).
    """

    project: str
    workflow: str
    place: int
    body: str


class RollupBatches:
    """Changes ``rollup_day``, ``rollup_batch`` and ``rollup``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def counting(self, job: str, day: date) -> Counting | None:
        """Return which batch is the result of a job for a day; None: there is none."""
        row = await self._connection.first(_counting(job, day))
        return None if row is None else Counting(row.batch, row.digest)

    async def begin(
        self, job: str, day: date, at: datetime, before: Counting | None = None
    ) -> Batch:
        """Begin a batch that is to be the result of a job for a day, in place of ``before``.

        That is what counted before its writer has read anything; None: nothing did.
        """
        [row] = await self._connection.changed(
            insert(rollup_batch)
            .values(job=job, day=day.isoformat(), touched_at=at)
            .returning(_B.id)
        )
        return Batch(row.id, job, day, before.batch if before else None)

    async def add(self, batch: Batch, blocks: Sequence[NewBlock], at: datetime) -> None:
        """Add blocks. Raises RollupTaken if the batch was considered abandoned."""
        touched = await self._connection.execute(
            update(rollup_batch)
            .where(_B.id == batch.id, _B.touched_at.is_not(None))
            .values(touched_at=at)
        )
        if touched.rowcount != 1:
            raise RollupTaken(batch.job, batch.day)
        rows = [
            {
                "batch": batch.id,
                "project": block.project,
                "workflow": block.workflow,
                "place": block.place,
                "body": JsonText(block.body),
            }
            for block in blocks
        ]
        await self._connection.change([(insert(rollup), rows)])

    async def publish(self, batch: Batch, digest: str, rows: int, at: datetime) -> None:
        """Let a batch count in place of the one before it. Raises RollupTaken.

        It is refused if another one counts than that which it replaces: that may be of a newer
        file.
        """
        gone = await self._connection.execute(
            delete(rollup_batch).where(_B.id == batch.id, _B.touched_at.is_not(None))
        )
        if gone.rowcount != 1:
            raise RollupTaken(batch.job, batch.day)
        key = {"job": batch.job, "day": batch.day.isoformat()}
        values = {"batch": batch.id, "digest": digest, "rows": rows, "stored_at": at}
        if batch.before is None:
            is_done = await self._connection.insert_new(rollup_day, [*key], key | values) == 1
        else:
            changed = await self._connection.execute(
                update(rollup_day)
                .where(_D.job == batch.job, _D.day == key["day"], _D.batch == batch.before)
                .values(values)
            )
            is_done = changed.rowcount == 1
        if not is_done:
            raise RollupTaken(batch.job, batch.day)
        if batch.before is not None:
            await self._dismiss(batch.before, key)

    async def give_up(self, batch: Batch) -> None:
        """Say that a batch may go, by its writer."""
        await self._connection.execute(
            update(rollup_batch).where(_B.id == batch.id).values(touched_at=None)
        )

    async def forget(self, job: str, day: date) -> bool:
        """Withdraw the batch that counts for a day; return whether there was one."""
        batch = await self._connection.scalar(_counting(job, day).with_for_update())
        if batch is None:
            return False
        key = {"job": job, "day": day.isoformat()}
        gone = await self._connection.execute(
            delete(rollup_day).where(_D.job == job, _D.day == key["day"], _D.batch == batch)
        )
        if gone.rowcount == 1:
            await self._dismiss(batch, key)
        return gone.rowcount == 1

    async def abandoned(self, before: datetime) -> list[int]:
        """Return the batches that may go: the old ones, and those not written to since then."""
        may_go = or_(_B.touched_at.is_(None), _B.touched_at < before)
        rows = await self._connection.rows(select(_B.id).where(may_go).order_by(_B.id))
        return [row.id for row in rows]

    async def remove_some(self, batch: int, before: datetime, most: int) -> bool:
        """Remove blocks of a batch that may go, ``most`` at once; return whether there are more.

        With the last ones the batch itself goes. One that was written to meanwhile stays.
        """
        may_go = or_(_B.touched_at.is_(None), _B.touched_at < before)
        # From here on its writer, if it still lives, cannot go on.
        held = await self._connection.execute(
            update(rollup_batch).where(_B.id == batch, may_go).values(touched_at=None)
        )
        if held.rowcount != 1:
            return False
        keys = select(*_KEY).where(_R.batch == batch).order_by(*_KEY).limit(most)
        rows = await self._connection.rows(keys)
        if rows:
            up_to = tuple_(*_KEY) <= tuple_(*rows[-1])
            gone = delete(rollup).where(_R.batch == batch, up_to)
            await self._connection.execute(gone, is_long=True)
        if len(rows) == most:
            return True
        await self._connection.execute(delete(rollup_batch).where(_B.id == batch))
        return False

    async def _dismiss(self, batch: int, key: Mapping[str, str]) -> None:
        """Say that a batch may go."""
        await self._connection.execute(insert(rollup_batch).values(id=batch, **key))


def _counting(job: str, day: date) -> Select[Any]:
    return select(_D.batch, _D.digest).where(_D.job == job, _D.day == day.isoformat())
