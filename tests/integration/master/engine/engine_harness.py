"""An engine that owns partition 0 of a real database, whose actions are noted, not performed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.commands import Command, CommandType, NewCommand
from shoal.core.runs.records import NewInstance
from shoal.core.runs.run import Action, Run
from shoal.master.engine.engine import BatchLimits, Engine
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import DatabaseUnavailable
from tests.support.clock import utc_now
from tests.support.instances import create
from tests.support.waiting import DEADLINE_S


class Unsteady(Database):
    """A database that can be out of reach, and counts what wants to write."""

    down = False
    writers = 0

    def unit_of_work(self, *, read_only: bool = False) -> UnitOfWork:
        if self.down:
            raise DatabaseUnavailable("out of reach")
        self.writers += not read_only
        return super().unit_of_work(read_only=read_only)


@dataclass
class Harness:
    """An engine that owns partition 0, and what it performed."""

    database: Unsteady
    engine: Engine = field(init=False)
    actions: list[tuple[int, Action]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.limit()

    def limit(self, **limits: int) -> None:
        """Begin anew with an engine that does so much at once."""
        self.engine = Engine(self.database, self._perform, utc_now, BatchLimits(**limits))

    async def _perform(self, performed: Sequence[tuple[Run, tuple[Action, ...]]]) -> None:
        self.actions += [(run.id, action) for run, actions in performed for action in actions]

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run the engine's loop; whatever ends it fails the test."""
        work = asyncio.create_task(self.engine.run())
        try:
            async with asyncio.timeout(DEADLINE_S):
                yield
            assert not work.done(), work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def publish(self, **fields: object) -> int:
        """Publish workflow "w", with one task if nothing else is said; return its id."""
        task = {"name": "a", "type": "SHELL", "params": {"script": "true"}}
        spec = WorkflowSpec.model_validate({"name": "w", "tasks": [task], **fields})
        async with self.database.unit_of_work() as uow:
            published = await uow.workflows.publish(spec, utc_now())
            await uow.commit()
        return published.version.workflow_id

    async def command(self, kind: CommandType, instance_id: int | None = None) -> Command:
        """Add a command for partition 0."""
        workflow_id = await self.publish()
        new = NewCommand(kind, 0, f"{kind} {instance_id}", workflow_id, instance_id=instance_id)
        async with self.database.unit_of_work() as uow:
            command, _ = await uow.commands.add(new, utc_now())
            await uow.commit()
        return command

    async def stored(self, command: Command) -> Command:
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.commands.get(command.id)

    async def runs(self, count: int, **fields: object) -> list[Run]:
        """Create instances in partition 0 that no engine knows yet."""
        workflow_id = await self.publish(**fields)
        now = utc_now()
        async with self.database.unit_of_work() as uow:
            keys = [NewCommand(CommandType.START, 0, f"k{n}", workflow_id) for n in range(count)]
            added = await uow.commands.add_many(keys, now)
            new = [
                NewInstance(c.id, workflow_id, 1, 0, 2, {}, now, now, admitted_at=now)
                for c, _ in added
            ]
            runs = await create(uow, new)
            await uow.commands.done_many([(c.id, 1) for c, _ in added], now)
            await uow.commit()
        return runs
