"""One transaction and the repositories that work in it."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from sqlalchemy.ext.asyncio import AsyncEngine

from shoal.sql.admission import Admission
from shoal.sql.backfills import Backfills
from shoal.sql.calendars import Calendars
from shoal.sql.commands import Commands
from shoal.sql.concurrency import ConcurrencyGroups
from shoal.sql.connection import Connection, opened
from shoal.sql.dependencies import Dependencies
from shoal.sql.events import Events
from shoal.sql.instances import Instances
from shoal.sql.partitions import Partitions
from shoal.sql.plans import PlanCache
from shoal.sql.projects import Projects
from shoal.sql.schedules import Schedules
from shoal.sql.secrets import Secrets
from shoal.sql.slots import Slots
from shoal.sql.tasks import Tasks
from shoal.sql.workflows import Workflows


class UnitOfWork:
    """Everything done inside ``async with`` happens together at ``commit``, or not at all.

    Used by one task at a time, for one transaction. A writing one on SQLite holds the database's
    only write lock from its start, so keep it short and never open a second one inside it.
    """

    connection: Connection
    projects: Projects
    workflows: Workflows
    commands: Commands
    instances: Instances
    admission: Admission
    tasks: Tasks
    partitions: Partitions
    calendars: Calendars
    schedules: Schedules
    secrets: Secrets
    events: Events
    backfills: Backfills
    concurrency: ConcurrencyGroups
    slots: Slots
    dependencies: Dependencies

    def __init__(self, engine: AsyncEngine, plans: PlanCache) -> None:
        self._engine = engine
        self._plans = plans
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        connection = await self._stack.enter_async_context(opened(self._engine))
        self.connection = connection
        self.events = Events(connection)
        self.projects = Projects(connection)
        self.commands = Commands(connection)
        self.tasks = Tasks(connection)
        self.secrets = Secrets(connection)
        self.partitions = Partitions(connection)
        self.calendars = Calendars(connection, self.projects)
        self.concurrency = ConcurrencyGroups(connection, self.projects)
        self.slots = Slots(connection)
        self.dependencies = Dependencies(connection)
        self.schedules = Schedules(connection, self.partitions, self.calendars)
        self.instances = Instances(connection, self._plans, self.events)
        self.admission = Admission(connection, self._plans)
        self.workflows = Workflows(
            connection,
            self._plans,
            self.projects,
            self.schedules,
            self.concurrency,
            self.events,
        )
        self.backfills = Backfills(connection, self.events)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, error, tb)

    async def fence(self, epochs: Mapping[int, int]) -> None:
        """Raise Fenced unless each of these partitions still has the caller's epoch.

        Call it first in every transaction that writes on behalf of partitions: a successor's
        ``raise_epochs`` waits until this transaction has ended.
        """
        await self.partitions.require(epochs)

    async def commit(self) -> None:
        """Make the changes durable. The unit of work is over then.

        If this raises DatabaseUnavailable, the changes may or may not have been made.
        """
        await self.connection.commit()
