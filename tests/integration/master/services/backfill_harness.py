"""A master's engine, scanner and backfills around a real database; what runs is moved by hand."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

from shoal.coordination import partition_of
from shoal.core.backfill.request import (
    JUDGED,
    Backfill,
    BackfillRequest,
    BackfillRunState,
    BackfillState,
)
from shoal.core.backfill.window import BackfillRun
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.commands import Command, CommandState, CommandType, NewCommand
from shoal.core.runs.events import TaskClaimed, TaskEnded
from shoal.core.runs.records import Instance
from shoal.core.runs.run import Action, Run
from shoal.core.runs.states import TaskSignal, WorkflowState
from shoal.master.engine.engine import Engine
from shoal.master.services.backfills import REQUESTS, BackfillRunner
from shoal.master.services.commands.scanner import Scanner
from shoal.sql import Database
from tests.integration.master.contexts import context_of
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S

PARTITIONS = 4


class Master:
    """One master without ZooKeeper: it polls when a test calls it."""

    def __init__(self, database: Database, epoch: int = 1) -> None:
        self.database = database
        self.epoch = epoch
        self.notified: list[int] = []
        self.engine = Engine(database, self._perform, utc_now)
        context = context_of(
            database, self.engine, partitions=PARTITIONS, notify_owners=self._notify
        )
        self.backfills = BackfillRunner(context)
        self.engine.register(self.backfills)
        self.scanner = Scanner(context, dict.fromkeys(REQUESTS, self.backfills.carry_out))

    def _notify(self, partitions: Iterable[int]) -> None:
        self.notified += partitions

    async def _perform(self, performed: Sequence[tuple[Run, tuple[Action, ...]]]) -> None:
        """Nobody runs tasks here."""

    @asynccontextmanager
    async def working(self, programs: int = 1) -> AsyncIterator[Self]:
        """Own all partitions and run the engine's loop; whatever ends it fails the test.

        ``programs``: how many the block starts and waits for; each may take the deadline.
        """
        await self.engine.take(dict.fromkeys(range(PARTITIONS), self.epoch), f"m{self.epoch}")
        work = asyncio.create_task(self.engine.run())
        try:
            async with asyncio.timeout(programs * DEADLINE_S):
                yield self
            assert not work.done(), work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def poll(self) -> None:
        """Carry out what is pending, move the backfills on, carry out what that has made."""
        await self.scanner.scan(range(PARTITIONS))
        await self.backfills.advance(range(PARTITIONS))
        await self.scanner.scan(range(PARTITIONS))

    async def end(self, run: BackfillRun, signal: TaskSignal = TaskSignal.SUCCEED) -> None:
        """Let the only task of a date's instance end."""
        instance = await Harness(self.database).instance_of(run)
        async with self.database.unit_of_work(read_only=True) as uow:
            (task,) = await uow.tasks.of_instance(instance.id)
        where = (instance.partition, instance.id)
        await self.engine.submit(*where, TaskClaimed(task.id, "w", utc_now()))
        await self.engine.submit(*where, TaskEnded(task.id, signal, utc_now(), worker="w"))


class Harness:
    """The database as tests see it."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def publish(self, name: str = "w", **fields: Any) -> int:
        """Publish a workflow with one task; return its id."""
        task = {"name": "a", "type": "SHELL", "params": {"script": "true"}}
        spec = WorkflowSpec.model_validate({"name": name, "tasks": [task], **fields})
        async with self.database.unit_of_work() as uow:
            published = await uow.workflows.publish(spec, utc_now())
            await uow.commit()
        return published.version.workflow_id

    async def ask(self, key: str = "k", **fields: Any) -> Command:
        """Ask for a backfill of workflow "w"."""
        return await self.ask_as(None, (), key, **fields)

    async def ask_as(
        self, caller_id: int | None, judged: Sequence[int], key: str, **fields: Any
    ) -> Command:
        """Do the same as somebody; ``judged``: the projects that the API has found allowed."""
        request = BackfillRequest.model_validate({"workflow": "w", **fields})
        async with self.database.unit_of_work() as uow:
            workflow = await uow.workflows.get(request.project, request.workflow)
            new = NewCommand(
                CommandType.BACKFILL,
                partition_of(f"backfill:{key}", PARTITIONS),
                key,
                workflow.id,
                requested_by="test",
                caller_id=caller_id,
                detail={**request.stored(), JUDGED: [*judged]},
            )
            command, _ = await uow.commands.add(new, utc_now())
            await uow.commit()
        return command

    async def request(
        self, kind: CommandType, backfill: Backfill, key: str, caller_id: int | None = None
    ) -> Command:
        """Ask for something about a backfill."""
        new = NewCommand(
            kind,
            backfill.partition,
            key,
            backfill.workflow_id,
            backfill_id=backfill.id,
            caller_id=caller_id,
        )
        async with self.database.unit_of_work() as uow:
            command, _ = await uow.commands.add(new, utc_now())
            await uow.commit()
        return command

    async def stored(self, command: Command) -> Command:
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.commands.get(command.id)

    async def reason(self, command: Command) -> str:
        """The reason for which a command was refused."""
        found = await self.stored(command)
        assert found.state is CommandState.REFUSED, found
        assert found.reason is not None
        return found.reason

    async def backfill(self, number: int = 1) -> Backfill:
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.backfills.get(number)

    async def state(self, number: int = 1) -> BackfillState:
        return (await self.backfill(number)).state

    async def runs(
        self, state: BackfillRunState | None = None, number: int = 1
    ) -> list[BackfillRun]:
        async with self.database.unit_of_work(read_only=True) as uow:
            runs = await uow.backfills.runs(number)
        return [run for run in runs if state in (None, run.state)]

    async def counts(self, number: int = 1) -> Counter[BackfillRunState]:
        return Counter(run.state for run in await self.runs(number=number))

    async def instance_of(self, run: BackfillRun) -> Instance:
        assert run.command_id is not None
        async with self.database.unit_of_work(read_only=True) as uow:
            command = await uow.commands.get(run.command_id)
            assert command.result_instance_id is not None, command
            return await uow.instances.get(command.result_instance_id)

    async def instances(self) -> list[Instance]:
        """All instances, oldest first."""
        async with self.database.unit_of_work(read_only=True) as uow:
            return (await uow.instances.list(limit=500))[::-1]

    async def unfinished(self) -> int:
        over = (WorkflowState.SUCCEEDED, WorkflowState.FAILED, WorkflowState.STOPPED)
        return sum(one.state not in over for one in await self.instances())
