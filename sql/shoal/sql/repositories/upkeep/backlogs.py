"""What lags behind in the database: the oldest of what waits, and when upkeep was done last."""

from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from sqlalchemy import func, select, update

from shoal.core.alerts.records import DefinitionKind
from shoal.core.runs.states import TaskState
from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import alert_definition, event, partition, task_instance
from shoal.sql.schema.types import UnreadableValue
from shoal.sql.statements.value_sets import Among, numbers

_T = task_instance.c
_MOST_QUEUED = 1_000  # attempts that are looked at


@dataclass(frozen=True)
class QueuedTask:
    """The oldest attempt that waits in the queue of a worker group."""

    task_instance_id: int
    worker_group: str
    since: datetime


class Backlogs:
    """Reads across tables for the health of the cluster; each query walks along an index."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def oldest_queued(self) -> QueuedTask | None:
        """Return the attempt that has waited longest; None: none is queued.

        Of the ``_MOST_QUEUED`` with the lowest ids: an attempt may be queued long after it was
        stored, or again, so the lowest id alone says little.
        """
        rows = await self._connection.rows(
            select(_T.id, _T.worker_group, _T.queued_at)
            .where(_T.state == TaskState.QUEUED)
            .order_by(_T.id)
            .limit(_MOST_QUEUED)
        )
        found = [
            QueuedTask(row.id, row.worker_group, at)
            for row in rows
            if (at := _instant(row.queued_at)) is not None
        ]
        return min(found, key=attrgetter("since"), default=None)

    async def has_alert_rules(self) -> bool:
        """Return whether any project has a rule for alerts now."""
        rule = select(alert_definition.c.id).where(alert_definition.c.kind == DefinitionKind.RULE)
        return await self._connection.first(rule.limit(1)) is not None

    async def first_event_after(self, position: int) -> datetime | None:
        """Return when the first event behind an id happened; None: there is none."""
        row = await self._connection.first(
            select(event.c.at).where(event.c.id > position).order_by(event.c.id).limit(1)
        )
        return None if row is None else _instant(row.at)

    async def purged_at(self) -> datetime | None:
        """Return when the partition whose last purge is the oldest was purged; None: never."""
        row = await self._connection.first(
            select(
                func.min(partition.c.purged_at).label("at"),
                (func.count() - func.count(partition.c.purged_at)).label("never"),
            )
        )
        return None if row is None or row.never else _instant(row.at)

    async def note_purge(self, partitions: list[int], at: datetime) -> None:
        """Note that a purge of all rules has gone through these partitions."""
        await self._connection.execute(
            update(partition)
            .where(Among(partition.c.number, numbers("numbers")))
            .values(purged_at=at),
            {"numbers": sorted(partitions)},
        )


def _instant(value: Any) -> datetime | None:
    return None if value is None or isinstance(value, UnreadableValue) else value
