"""Masters without ZooKeeper on one database: each owns a partition and is notified at once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.commands import Command, CommandState, CommandType, NewCommand
from shoal.core.runs.events import TaskClaimed, TaskEnded
from shoal.core.runs.records import Instance
from shoal.core.runs.run import Action, Run
from shoal.core.runs.states import TaskSignal, WorkflowState
from shoal.master.engine.engine import Engine
from shoal.master.services.admission import Admitter
from shoal.master.services.commands.scanner import Scanner
from shoal.sql import Database
from tests.integration.master.contexts import context_of
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S

PARTITIONS = 2
_SCAN_INTERVAL_S = 3_600.0  # everything is done when a notification arrives, or not at all


class Master:
    """Owns one partition; what its tasks do is up to the test."""

    def __init__(
        self,
        harness: "Harness",
        partition: int,
        epoch: int = 1,
        max_open: int = 10_000,
        is_served: Callable[[str], bool] = lambda _group: True,
        **settings: Any,
    ):
        self.harness = harness
        self.partition = partition
        self.epoch = epoch
        self.engine = Engine(harness.database, self._perform, utc_now)
        context = context_of(
            harness.database,
            self.engine,
            notify_owners=harness.notify,
            scan_interval_s=_SCAN_INTERVAL_S,
            max_open_instances=max_open,
            **settings,
        )
        context = replace(context, is_served=is_served)
        self.admission = Admitter(context)
        self.scanner = Scanner(context)
        self.engine.register(self.admission, self.scanner)

    async def _perform(self, performed: Sequence[tuple[Run, tuple[Action, ...]]]) -> None:
        """Nobody runs tasks here."""

    @asynccontextmanager
    async def working(self) -> AsyncIterator["Master"]:
        """Take the partition, run the loops; whatever ends them fails the test."""
        await self.engine.take({self.partition: self.epoch}, f"m{self.epoch}")
        self.harness.masters[self.partition] = self
        loops = [asyncio.create_task(w()) for w in (self.engine.run, self.scanner.run)]
        try:
            yield self
            assert not any(loop.done() for loop in loops), loops
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)


class Harness:
    """One database and who works on it. ``deaf``: notifications do not notify."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.masters: dict[int, Master] = {}
        self.deaf = False
        self._keys = 0

    def notify(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            if partition in self.masters and not self.deaf:
                self.masters[partition].scanner.notify(partition)

    @asynccontextmanager
    async def working(self, **options: Any) -> AsyncIterator[list[Master]]:
        """A master for each partition."""
        async with asyncio.timeout(DEADLINE_S), AsyncExitStack() as stack:
            yield [
                await stack.enter_async_context(Master(self, partition, **options).working())
                for partition in range(PARTITIONS)
            ]

    async def publish(self, name: str = "w", **fields: Any) -> int:
        """Publish a workflow with one task; return its id."""
        task = {"name": "a", "type": "SHELL", "params": {"script": "true"}}
        spec = WorkflowSpec.model_validate({"name": name, "tasks": [task], **fields})
        async with self.database.unit_of_work() as uow:
            published = await uow.workflows.publish(spec, utc_now())
            await uow.commit()
        return published.version.workflow_id

    async def send(self, *new: NewCommand) -> list[Command]:
        """Store commands and notify."""
        async with self.database.unit_of_work() as uow:
            stored = await uow.commands.add_many(new, utc_now())
            await uow.commit()
        self.notify({command.partition for command in new})
        return [command for command, _ in stored]

    def new_start(self, workflow_id: int, **fields: Any) -> NewCommand:
        """A START for one partition after the other."""
        self._keys += 1
        partition = fields.pop("partition", self._keys % PARTITIONS)
        key = f"key-{self._keys}"
        return NewCommand(CommandType.START, partition, key, workflow_id, **fields)

    async def command(self, command_id: int) -> Command:
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.commands.get(command_id)

    async def outcome(self, command: Command) -> Command:
        """Wait until a command is carried out or refused."""
        while (found := await self.command(command.id)).state is CommandState.PENDING:
            await asyncio.sleep(0.005)
        return found

    async def start(self, workflow_id: int, **fields: Any) -> Instance:
        """Start a run and return it, admitted or not."""
        (command,) = await self.send(self.new_start(workflow_id, **fields))
        found = await self.outcome(command)
        assert found.result_instance_id is not None, found.reason
        return await self.instance(found.result_instance_id)

    async def request(self, kind: CommandType, instance: Instance) -> Command:
        """Send a request about an instance; return its outcome."""
        self._keys += 1
        new = NewCommand(
            kind,
            instance.partition,
            f"request-{self._keys}",
            instance.workflow_id,
            instance_id=instance.id,
        )
        return await self.outcome((await self.send(new))[0])

    async def instance(self, instance_id: int) -> Instance:
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.instances.get(instance_id)

    async def is_in(self, instance: Instance, *states: WorkflowState) -> Instance:
        """Wait until an instance is in one of these states."""
        while (found := await self.instance(instance.id)).state not in states:
            await asyncio.sleep(0.005)
        return found

    async def stays(self, state: WorkflowState, *instances: Instance) -> None:
        """Check the state of instances once all that was said has been heard."""
        while await self._is_anything_unheard():
            await asyncio.sleep(0.005)
        for instance in instances:
            assert (await self.instance(instance.id)).state is state

    async def _is_anything_unheard(self) -> bool:
        async with self.database.unit_of_work(read_only=True) as uow:
            return bool(await uow.commands.requests(range(PARTITIONS), 1))

    async def end(self, instance: Instance, signal: TaskSignal = TaskSignal.SUCCEED) -> None:
        """Let the only task of a running instance end, and the instance with it."""
        await self.is_in(instance, WorkflowState.RUNNING, WorkflowState.STOPPING)
        await self.report(instance, signal)

    async def report(self, instance: Instance, signal: TaskSignal = TaskSignal.SUCCEED) -> None:
        """Tell the master that the only task has ended; that says nothing if it does not run."""
        async with self.database.unit_of_work(read_only=True) as uow:
            (task,) = await uow.tasks.of_instance(instance.id)
        engine = self.masters[instance.partition].engine
        where = (instance.partition, instance.id)
        await engine.submit(*where, TaskClaimed(task.id, "w", utc_now()))
        await engine.submit(*where, TaskEnded(task.id, signal, utc_now(), worker="w"))
