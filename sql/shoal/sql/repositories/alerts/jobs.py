"""The jobs of alert servers: their epochs, and how far they have come."""

from dataclasses import dataclass

from sqlalchemy import func, insert, select, update

from shoal.sql.driver.connection import Connection
from shoal.sql.errors import JobTaken
from shoal.sql.schema.tables import alert_job, event

READING = "rules"  # the job that reads events
_DEFINITIONS = "definitions"
_J = alert_job.c


@dataclass(frozen=True)
class AlertJob:
    """``position``: of the last event that it has dealt with; None: it has not begun."""

    name: str
    epoch: int
    position: int | None


class AlertJobs:
    """The ``alert_job`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def begin(self, name: str, epoch: int) -> AlertJob:
        """Take a job for an epoch; return it. Raises JobTaken if a later epoch has it."""
        await self._connection.insert_new(
            alert_job, ["name"], {"name": name, "epoch": epoch, "position": None}
        )
        await self.require(name, epoch)
        row = await self._connection.first(select(alert_job).where(_J.name == name))
        assert row is not None, "it has just been stored"
        return AlertJob(row.name, row.epoch, row.position)

    async def epoch(self, name: str) -> int | None:
        """Return the epoch that has a job; None: none yet."""
        found: int | None = await self._connection.scalar(select(_J.epoch).where(_J.name == name))
        return found

    async def supersede(self, name: str, stored: int) -> int:
        """Take a job from the epoch ``stored``, which can write no more; return the one after it.

        Raises JobTaken if another process was quicker.
        """
        changed = await self._connection.execute(
            update(alert_job).where(_J.name == name, _J.epoch == stored).values(epoch=stored + 1)
        )
        if changed.rowcount == 0:
            raise JobTaken(name, stored)
        return stored + 1

    async def require(self, name: str, epoch: int, position: int | None = None) -> None:
        """Raise JobTaken if a later epoch has the job; store ``position`` if there is one.

        Call it first in every transaction of the job: a successor waits for its end.
        """
        values = {"epoch": epoch} if position is None else {"epoch": epoch, "position": position}
        changed = await self._connection.execute(
            update(alert_job).where(_J.name == name, _J.epoch <= epoch).values(values)
        )
        if changed.rowcount == 0:
            raise JobTaken(name, epoch)

    async def note_change(self) -> None:
        """Count a change of definitions. What happens from the first one on is looked at."""
        last = await self._connection.scalar(select(func.max(event.c.id))) or 0
        begun = {"name": READING, "epoch": 0, "position": last}
        await self._connection.insert_new(alert_job, ["name"], begun)
        changed = await self._connection.execute(
            update(alert_job)
            .where(_J.name == _DEFINITIONS)
            .values(position=func.coalesce(_J.position, 0) + 1)
        )
        if changed.rowcount == 0:
            await self._connection.execute(
                insert(alert_job).values(name=_DEFINITIONS, epoch=0, position=1)
            )

    async def position(self) -> int | None:
        """Return the last event that was dealt with; None: none yet."""
        found: int | None = await self._connection.scalar(
            select(_J.position).where(_J.name == READING)
        )
        return found

    async def changes(self) -> int:
        """Return how often definitions have changed; 0: there never were any."""
        found = await self._connection.scalar(select(_J.position).where(_J.name == _DEFINITIONS))
        return found or 0
