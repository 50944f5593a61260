"""A master's engine and scanner around a real database, for runs that work for each other.

Nothing happens by itself but the engine's loop: ``poll`` carries out what is pending, ``work``
lets a worker do what is queued.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from shoal.coordination import partition_of
from shoal.core.decide import decide
from shoal.core.definition.model import WorkflowSpec
from shoal.core.errors import ShoalError
from shoal.core.runs.commands import Command, CommandState, CommandType, NewCommand, Parent
from shoal.core.runs.events import Event, StopRequested, TaskClaimed, TaskEnded, TimeReached
from shoal.core.runs.records import Instance, TaskInstance
from shoal.core.runs.run import Action, Decision, Run
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState
from shoal.master.engine.engine import BatchLimits, ClusterFacts, Engine
from shoal.master.engine.listeners import Listener
from shoal.master.services.admission import Admitter
from shoal.master.services.commands.scanner import Scanner
from shoal.sql import Database
from tests.integration.master.contexts import context_of
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S

PARTITIONS = 4
Tasks = Mapping[str, Mapping[str, Any]]
Fate = Callable[[TaskInstance], TaskSignal | None]  # how a task ends; None: it does not, yet


def all_well(_task: TaskInstance) -> TaskSignal | None:
    return TaskSignal.SUCCEED


@contextmanager
def _retried() -> Iterator[None]:
    """What could not be stored is tried again by the next poll."""
    try:
        yield
    except ShoalError as error:
        if not error.retriable:
            raise


class Master(Listener):
    """Owns all partitions."""

    def __init__(
        self, database: Database, epoch: int = 1, batch: int = 500, **settings: Any
    ) -> None:
        self.database = database
        self.epoch = epoch
        self.notified: set[int] = set()
        self.engine = Engine(
            database, self._perform, utc_now, BatchLimits(batch), ClusterFacts(PARTITIONS)
        )
        context = context_of(
            database,
            self.engine,
            partitions=PARTITIONS,
            notify_owners=self.notified.update,
            scan_interval_s=3_600.0,
            **settings,
        )
        self.scanner = Scanner(context)
        self.engine.register(Admitter(context), self.scanner, self)

    def on_commands(self, partitions: Collection[int]) -> None:
        self.notified.update(partitions)

    async def _perform(self, performed: Sequence[tuple[Run, tuple[Action, ...]]]) -> None:
        """The test plays the workers."""

    @staticmethod
    def now() -> datetime:
        return utc_now()

    @staticmethod
    def stop_of(run: Run) -> Decision:
        """What a request to stop a run decides, of which nobody below it has heard."""
        decision = decide(run, StopRequested(utc_now()))
        return replace(decision, messages=(), actions=())

    @staticmethod
    def parent_of(instance: Instance) -> Parent:
        """The first task of an instance, as the parent of a child."""
        return Parent(instance.id, 1, instance.partition)

    @asynccontextmanager
    async def working(self) -> AsyncIterator["Master"]:
        """Take over and run the engine's loop; at the end the master is gone without a word."""
        await self.engine.take(dict.fromkeys(range(PARTITIONS), self.epoch), f"m{self.epoch}")
        loop = asyncio.create_task(self.engine.run())
        try:
            async with asyncio.timeout(DEADLINE_S):
                yield self
            assert not loop.done(), loop
        finally:
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)

    async def poll(self) -> None:
        """Carry out all that is pending, and what follows from it, as far as the store allows."""
        await self.hear()
        while before := await self._pending():
            with _retried():
                await self.scanner.scan(range(PARTITIONS))
            await self.engine.heal()
            await self.hear()
            if await self._pending() == before:
                return

    async def hear(self) -> None:
        """Let the engine decide about all events in its inbox."""
        for run in list(self.engine.runs.values())[:1]:
            with _retried():
                await self.engine.submit(run.partition, run.id, TimeReached(utc_now()))

    async def _pending(self) -> list[int]:
        async with self.database.unit_of_work(read_only=True) as uow:
            return [c.id for c in await uow.commands.requests(range(PARTITIONS), 500)] + [
                c.id for c in await uow.commands.starts(range(PARTITIONS), 500)
            ]

    async def work(self, fate: Fate = all_well) -> bool:
        """Let a worker do every task that is queued now. Returns whether there was any."""
        ready = [t for t in await self._tasks() if t.state in (TaskState.QUEUED, TaskState.CLAIMED)]
        for task in ready:
            async with self.database.unit_of_work(read_only=True) as uow:
                instance = await uow.instances.get(task.workflow_instance_id)
            where = (instance.partition, instance.id)
            events: list[Event] = [TaskClaimed(task.id, "w", utc_now())]
            if (signal := fate(task)) is not None:
                events.append(TaskEnded(task.id, signal, utc_now(), worker="w"))
            for event in events:
                with _retried():
                    await self.engine.submit(*where, event)
        return bool(ready)

    async def _tasks(self) -> list[TaskInstance]:
        async with self.database.unit_of_work(read_only=True) as uow:
            instances = await uow.instances.list(limit=500)
            return [t for one in instances for t in await uow.tasks.of_instance(one.id)]

    async def run(self, fate: Fate = all_well) -> None:
        """Look and work until nothing is left to do."""
        await self.poll()
        while await self.work(fate):
            await self.poll()


class Harness:
    """The database as people see it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._keys = 0

    async def publish(self, name: str, tasks: Tasks, **fields: Any) -> int:
        shell = {"type": "SHELL", "params": {"script": "true"}}
        listed = [{"name": task, **shell, **rest} for task, rest in tasks.items()]
        spec = WorkflowSpec.model_validate({"name": name, "tasks": listed, **fields})
        async with self.database.unit_of_work() as uow:
            published = await uow.workflows.publish(spec, utc_now())
            await uow.commit()
        return published.version.workflow_id

    async def send(self, kind: CommandType, workflow_id: int, **fields: Any) -> Command:
        self._keys += 1
        key = f"key-{self._keys}"
        partition = fields.pop("partition", partition_of(key, PARTITIONS))
        new = NewCommand(kind, partition, key, workflow_id, **fields)
        async with self.database.unit_of_work() as uow:
            command, _ = await uow.commands.add(new, utc_now())
            await uow.commit()
        return command

    async def ask(self, kind: CommandType, instance: Instance) -> Command:
        """Request something of an instance; the command is pending when this returns."""
        return await self.send(
            kind, instance.workflow_id, partition=instance.partition, instance_id=instance.id
        )

    async def command(self, command: Command) -> Command:
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.commands.get(command.id)

    async def pending(self, kind: CommandType) -> list[Command]:
        """The commands of one type that are pending."""
        async with self.database.unit_of_work(read_only=True) as uow:
            found = await uow.commands.requests(range(PARTITIONS), 500)
        return [c for c in found if c.type is kind and c.state is CommandState.PENDING]

    async def instances(self, workflow: str | None = None) -> list[Instance]:
        """Oldest first."""
        async with self.database.unit_of_work(read_only=True) as uow:
            found = (await uow.instances.list(limit=500))[::-1]
        return [one for one in found if workflow in (None, one.workflow)]

    async def states(self) -> dict[str, list[WorkflowState]]:
        """The states of all instances by workflow."""
        found: dict[str, list[WorkflowState]] = {}
        for one in await self.instances():
            found.setdefault(one.workflow, []).append(one.state)
        return found

    async def task(self, instance: Instance, task: str) -> TaskInstance:
        """The newest attempt."""
        async with self.database.unit_of_work(read_only=True) as uow:
            tasks = await uow.tasks.of_instance(instance.id)
        return next(one for one in tasks if one.task == task)
