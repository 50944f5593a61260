"""What people have asked to be purged, and how far each partition's owner has come with it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Float,
    Row,
    Select,
    case,
    cast,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)

from shoal.core.runs.retention import Counts, NewPurge, Purge
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.schema.tables import IS_OPEN_PART, project, purge, purge_part, workflow
from shoal.sql.schema.types import UtcDateTime
from shoal.sql.statements.rows import leave_out, readable

_p = purge_part.c
_PurgeList = list["Purge"]


@dataclass
class PurgePart:
    """What has been done for one partition since it was stored last."""

    counts: dict[str, int] = field(default_factory=dict)
    oldest: datetime | None = None

    def add(self, oldest: datetime | None = None, **counts: int) -> None:
        """Add to the numbers; ``oldest`` counts if it is older."""
        for name, number in counts.items():
            self.counts[name] = self.counts.get(name, 0) + number
        if oldest is not None and (self.oldest is None or oldest < self.oldest):
            self.oldest = oldest


class Purges:
    """The ``purge`` and ``purge_part`` tables."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(self, new: NewPurge, partitions: int, at: datetime) -> Purge:
        """Store a request, with a part for each partition."""
        [[row_id]] = await self._connection.reserve_ids({purge: 1})
        await self._connection.execute(insert(purge).values(id=row_id, created_at=at, **vars(new)))
        zero = {**vars(Counts()), "held": 0}
        parts = [{"purge_id": row_id, "partition": n, **zero} for n in range(partitions)]
        await self._connection.execute(insert(purge_part), parts)
        return await self.get(row_id)

    async def get(self, purge_id: int) -> Purge:
        """Return a purge. Raises NotFound."""
        row = await self._connection.first(_purges().where(purge.c.id == purge_id))
        if row is None:
            raise NotFound("purge", purge_id)
        return readable([row], _purge, "purge")[0]

    async def list(self, limit: int = 20, before: int | None = None) -> _PurgeList:
        """Return purges, the newest first, starting below the id ``before``."""
        newest = select(purge.c.id).order_by(purge.c.id.desc()).limit(limit)
        if before is not None:
            newest = newest.where(purge.c.id < before)
        rows = await self._connection.rows(
            _purges().where(purge.c.id.in_(newest)).order_by(purge.c.id.desc())
        )
        return readable(rows, _purge, "purge", leave_out)

    async def unfinished(self, partitions: Collection[int]) -> dict[int, set[int]]:
        """Return which of these partitions each purge still waits for, oldest purge first."""
        query = (
            select(_p.purge_id, _p.partition)
            .where(IS_OPEN_PART, _p.partition.in_(sorted(partitions)))
            .order_by(_p.purge_id)
        )
        found: dict[int, set[int]] = {}
        for row in await self._connection.rows(query):
            found.setdefault(row.purge_id, set()).add(row.partition)
        return found

    async def note(self, purge_id: int, parts: Mapping[int, PurgePart]) -> None:
        """Add what has been done, in the transaction that does it, to each partition's part."""
        for partition, part in sorted(parts.items()):
            values: dict[str, Any] = {
                name: purge_part.c[name] + number for name, number in part.counts.items()
            }
            if part.oldest is not None:
                is_older = _p.oldest.is_(None) | (_p.oldest > part.oldest)
                values["oldest"] = case(
                    (is_older, literal(part.oldest, UtcDateTime())), else_=_p.oldest
                )
            await self._connection.execute(
                update(purge_part)
                .where(_p.purge_id == purge_id, _p.partition == partition, IS_OPEN_PART)
                .values(**values)
            )

    async def finish(
        self,
        purge_id: int,
        partitions: Collection[int],
        at: datetime,
        held: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """Note that these partitions are done; ``held``: rows that wait for the export, by one."""
        is_meant = (_p.purge_id == purge_id) & _p.partition.in_(sorted(partitions))
        for partition, number in sorted(held.items()):
            if partition in partitions:
                await self._connection.execute(
                    update(purge_part)
                    .where(_p.purge_id == purge_id, _p.partition == partition, IS_OPEN_PART)
                    .values(held=number)
                )
        await self._connection.execute(
            update(purge_part).where(is_meant, IS_OPEN_PART).values(finished_at=at)
        )

    async def forget(self, before: datetime, limit: int) -> int:
        """Delete purges that were asked for before, with their parts; return how many.

        A purge that long ago is over, or its masters are.
        """
        query = select(purge.c.id).where(purge.c.created_at < before)
        return await self._delete(query.order_by(purge.c.id).limit(limit))

    async def withdraw(self, requested_by: str) -> int:
        """Delete the purges of requests, with their parts; return how many.

        A master that is at work on one goes on, and stores no more how far it has come.
        """
        return await self._delete(select(purge.c.id).where(purge.c.requested_by == requested_by))

    async def last_asked_at(self, requested_by: str) -> datetime | None:
        """Return when a purge was last requested; None: never, as far as is known."""
        query = select(purge.c.created_at).where(purge.c.requested_by == requested_by)
        moment: datetime | None = await self._connection.scalar(
            query.order_by(purge.c.id.desc()).limit(1)
        )
        return moment

    async def _delete(self, query: Select[Any]) -> int:
        ids = [row.id for row in await self._connection.rows(query)]
        if ids:
            await self._connection.execute(delete(purge_part).where(_p.purge_id.in_(ids)))
            await self._connection.execute(delete(purge).where(purge.c.id.in_(ids)))
        return len(ids)

    async def workflows(self, asked: NewPurge) -> set[int] | None:
        """Return the workflows that a purge is about, deleted ones too; None: all."""
        if asked.workflow_id is not None:
            return {asked.workflow_id}
        if asked.project is None:
            return None
        query = select(workflow.c.id).join_from(workflow, project)
        rows = await self._connection.rows(query.where(project.c.name == asked.project))
        return {row.id for row in rows}


def _purges() -> Select[Any]:
    names = list(vars(Counts()))
    # As floats: SQLite's sum of integers fails beyond 64 bits, and with it the whole list.
    sums: list[ColumnElement[Any]] = [func.sum(cast(_p[name], Float)).label(name) for name in names]
    return (
        select(
            purge,
            *sums,
            func.count().label("parts"),
            func.count(_p.finished_at).label("parts_done"),
            func.min(_p.oldest).label("oldest"),
            func.max(_p.finished_at).label("finished_at"),
            func.sum(cast(_p.held, Float)).label("held"),
        )
        .join_from(purge, purge_part)
        .group_by(purge.c.id)
    )


def _purge(row: Row[Any]) -> Purge:
    return Purge(
        id=row.id,
        asked=NewPurge(
            row.is_rehearsal,
            row.before,
            row.project,
            row.workflow_id,
            row.requested_by,
            row.even_if_not_exported,
        ),
        created_at=row.created_at,
        partitions=row.parts,
        partitions_done=row.parts_done,
        counts=Counts(**{name: int(getattr(row, name)) for name in vars(Counts())}),
        oldest=row.oldest,
        finished_at=row.finished_at if row.parts_done == row.parts else None,
        held=int(row.held),
    )
