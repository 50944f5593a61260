"""What lags behind in the database: the oldest of what waits, and when upkeep was done last."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update

from shoal.core.runs.states import TaskState
from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import event, partition, task_instance
from shoal.sql.schema.types import UnreadableValue
from shoal.sql.statements.value_sets import Among, numbers

_T = task_instance.c


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
        """Return the attempt with the lowest id among those that are queued; None: none is."""
        row = await self._connection.first(
            select(_T.id, _T.worker_group, _T.queued_at)
            .where(_T.state == TaskState.QUEUED)
            .order_by(_T.id)
            .limit(1)
        )
        if row is None or _instant(row.queued_at) is None:
            return None
        return QueuedTask(row.id, row.worker_group, row.queued_at)

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
