"""A master's engine and scanner in this process; its worker is done by hand, and costs nothing.

What is left out is what a master does beside deciding and storing: ZooKeeper, gRPC, the timers.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.commands import CommandType, NewCommand
from shoal.core.runs.events import TaskClaimed, TaskEnded
from shoal.core.runs.run import Action, Enqueue, Run
from shoal.core.runs.states import TaskSignal
from shoal.master.engine.engine import BatchLimits, Engine
from shoal.master.services.commands.scanner import Scanner
from shoal.master.services.service import MasterContext, UpkeepJobs
from shoal.master.settings import MasterSettings
from shoal.sql import Database

PARTITIONS = 8
SLOTS = 8  # tasks that are claimed, and then end, together
BATCH = 500
WORKER = "by-hand"


class DrivenEngine:
    """Starts instances and runs their tasks when told to."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.engine = Engine(database, self._perform, _now, BatchLimits(BATCH))
        settings = MasterSettings(scan_interval_s=60.0, scan_batch=BATCH, max_open_instances=10**6)
        context = MasterContext(
            database,
            self.engine,
            _now,
            PARTITIONS,
            settings,
            UpkeepJobs(_now),
            notify_owners=lambda _: None,
        )
        self._scanner = Scanner(context)
        self._waiting: deque[tuple[int, int, int]] = deque()  # partition, instance, attempt
        self._keys = 0

    async def _perform(self, performed: Sequence[tuple[Run, tuple[Action, ...]]]) -> None:
        for run, actions in performed:
            for action in actions:
                assert isinstance(action, Enqueue), action
                attempt = run.attempts[action.key[0]]
                assert attempt.id is not None
                self._waiting.append((run.partition, run.id, attempt.id))

    async def start(self, spec: WorkflowSpec, instances: int) -> None:
        """Start instances; their first tasks wait when this returns."""
        async with self.database.unit_of_work() as uow:
            published = await uow.workflows.publish(spec, _now())
            await uow.commit()
        for first in range(0, instances, BATCH):
            async with self.database.unit_of_work() as uow:
                for number in range(first, min(first + BATCH, instances)):
                    self._keys += 1
                    key, part = f"key-{_now().timestamp()}-{self._keys}", number % PARTITIONS
                    workflow = published.version.workflow_id
                    new = NewCommand(CommandType.START, part, key, workflow)
                    await uow.commands.add(new, _now())
                await uow.commit()
            await self._scanner.scan(range(PARTITIONS))

    async def run(self, tasks: int) -> None:
        """Run so many tasks: the newest that wait, so whatever else waits goes on waiting."""
        done = 0
        while done < tasks:
            if not self._waiting:
                await asyncio.sleep(0)  # the engine is at it
            count = min(SLOTS, len(self._waiting), tasks - done)
            batch = [self._waiting.pop() for _ in range(count)]
            await self._tell(batch, lambda task: TaskClaimed(task, WORKER, _now()))
            await self._tell(
                batch,
                lambda task: TaskEnded(
                    task, TaskSignal.SUCCEED, _now(), WORKER, exit_code=0, started_at=_now()
                ),
            )
            done += count

    async def _tell(self, batch: Sequence[tuple[int, int, int]], event: Any) -> None:
        await asyncio.gather(
            *(self.engine.submit(part, run, event(task)) for part, run, task in batch)
        )


@asynccontextmanager
async def driven_engine(database: Database) -> AsyncIterator[DrivenEngine]:
    """Run an engine that owns all partitions of a migrated database."""
    async with database.unit_of_work() as uow:
        await uow.partitions.ensure(PARTITIONS)
        await uow.commit()
    hand = DrivenEngine(database)
    epochs = await hand.engine.stored_epochs(range(PARTITIONS))
    await hand.engine.take({part: epoch + 1 for part, epoch in epochs.items()}, "bench")
    working = asyncio.create_task(hand.engine.run())
    try:
        yield hand
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


def diamond() -> WorkflowSpec:
    """Return a workflow of five tasks: a; b, c, d; e."""
    tasks = [task("a"), *(task(name, "a") for name in "bcd"), task("e", "b", "c", "d")]
    return WorkflowSpec.model_validate({"name": "diamond", "tasks": tasks})


def wide(tasks: int) -> WorkflowSpec:
    """Return a workflow of independent tasks."""
    names = [task(f"t{n}") for n in range(tasks)]
    return WorkflowSpec.model_validate({"name": f"wide-{tasks}", "tasks": names})


def line(tasks: int) -> WorkflowSpec:
    """Return a workflow whose tasks follow each other."""
    names = [task(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(tasks)]
    return WorkflowSpec.model_validate({"name": f"line-{tasks}", "tasks": names})


def task(name: str, *after: str) -> dict[str, Any]:
    """Return the definition of a SHELL task."""
    params = {"script": "true"}
    return {"name": name, "type": "SHELL", "params": params, "depends_on": list(after)}


def _now() -> datetime:
    return datetime.now(UTC)
