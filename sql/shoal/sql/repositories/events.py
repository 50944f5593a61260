"""Events: what changed, one row each, written in the transaction of the change.

A reader that follows the table must know that PostgreSQL gives out ids at insert and shows rows
at commit: id 7 may appear before id 6. Use ``EventTail`` (event_tail.py), or read only up to
``EventTail.position``: all events up to there are visible.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, delete, func, insert, select

from shoal.core.runs.records import ChangeEvent
from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import event
from shoal.sql.schema.types import UnreadableValue
from shoal.sql.statements.rows import record_of

INSERT_EVENT = insert(event)
_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class NewEvent:
    """An event about to be stored. ``data`` holds JSON values."""

    at: datetime
    kind: str
    project: str
    data: Mapping[str, Any]
    workflow_instance_id: int | None = None
    task_instance_id: int | None = None


class Events:
    """The ``event`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(self, events: Sequence[NewEvent]) -> None:
        """Store events. Never the first write of a transaction: see ``EventTail``."""
        if events:
            # vars(), not asdict(): that one copies the data deeply.
            await self._connection.execute(INSERT_EVENT, [vars(one) for one in events])

    async def after(
        self,
        event_id: int,
        limit: int,
        instance_id: int | None = None,
        project: str | None = None,
        until: int | None = None,
        at: datetime | None = None,
    ) -> list[ChangeEvent]:
        """Return events behind ``event_id`` (not behind ``until``) in order of their ids.

        ``at``: only those of this time, as all events of a decision have the same.
        """
        query = select(event).where(event.c.id > event_id).order_by(event.c.id).limit(limit)
        if instance_id is not None:
            query = query.where(event.c.workflow_instance_id == instance_id)
        if project is not None:
            query = query.where(event.c.project == project)
        if until is not None:
            query = query.where(event.c.id <= until)
        if at is not None:
            query = query.where(event.c.at == at)
        return [change_event(row) for row in await self._connection.rows(query)]

    async def last_id(self) -> int:
        """Return the highest visible id; 0 if there is none."""
        return await self._connection.scalar(select(func.max(event.c.id))) or 0

    async def oldest_id(self) -> int | None:
        """Return the lowest id that is kept; None if there is none."""
        found: int | None = await self._connection.scalar(select(func.min(event.c.id)))
        return found

    async def count_before(
        self, before: datetime, most: int, until: int | None = None, after: int | None = None
    ) -> int:
        """Return how many events are from before ``before``; ``most`` at most.

        ``until``, ``after``: only those with ids up to it, or above it.
        """
        found = select(event.c.id).where(event.c.at < before)
        if until is not None:
            found = found.where(event.c.id <= until)
        if after is not None:
            found = found.where(event.c.id > after)
        some = found.limit(most).subquery()
        count: int = await self._connection.scalar(select(func.count()).select_from(some))
        return count

    async def prune(self, before: datetime, limit: int = 10_000, until: int | None = None) -> int:
        """Delete the oldest events from before ``before``; return how many.

        At most ``limit``, so that the transaction is short: repeat until it is less. ``until``:
        none with a higher id.
        """
        oldest = select(event.c.id).where(event.c.at < before)
        if until is not None:
            oldest = oldest.where(event.c.id <= until)
        oldest = oldest.order_by(event.c.at).limit(limit)
        statement = delete(event).where(event.c.id.in_(oldest.scalar_subquery()))
        result = await self._connection.execute(statement, is_long=True)
        return result.rowcount


def change_event(row: Row[Any]) -> ChangeEvent:
    """Return the domain's form of a row; readers count on every id, so none is left out."""
    return record_of(
        ChangeEvent,
        row,
        at=_UNKNOWN if isinstance(row.at, UnreadableValue) else row.at,
        data=row.data if isinstance(row.data, dict) else {},
    )
