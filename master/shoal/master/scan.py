"""The scanner: commands of this master's partitions become instances and events.

Woken by the partitions' bells, and at least every few seconds by itself, since a bell is only a
hint. START and RERUN are carried out in batches, one transaction each: instances, attempts and
the commands' outcomes together. The other commands are events for a run, decided by the engine.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime

import structlog

from shoal.core import failpoints
from shoal.core.commands import Command, CommandType
from shoal.core.errors import ShoalError
from shoal.core.events import (
    ForceRequested,
    KillRequested,
    PauseRequested,
    RecoverRequested,
    Request,
    RerunRequested,
    ResumeRequested,
    StopRequested,
    WholeRequest,
)
from shoal.core.parameters import launch
from shoal.core.records import NewInstance
from shoal.core.run import Run
from shoal.master.engine import Clock, Engine
from shoal.master.errors import NotOwner, Quarantined
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import Fenced, NotFound, StaleRow

log = structlog.get_logger()

CarryOut = Callable[[Command], Awaitable[None]]

_CREATES = frozenset({CommandType.START, CommandType.RERUN})
_OF_WHOLE: dict[CommandType, type[WholeRequest]] = {
    CommandType.PAUSE: PauseRequested,
    CommandType.RESUME: ResumeRequested,
    CommandType.STOP: StopRequested,
    CommandType.RECOVER: RecoverRequested,
}
_REQUESTS = frozenset(
    {*_OF_WHOLE, CommandType.RERUN_TASKS, CommandType.KILL_TASK, CommandType.FORCE_SUCCESS}
)


class _Unusable(ShoalError):
    """A command that can never be carried out; its text becomes the reason in its row."""


class Scanner:
    """Reads the command table for one master."""

    def __init__(
        self,
        database: Database,
        engine: Engine,
        clock: Clock,
        interval_s: float,
        batch: int,
        others: Mapping[CommandType, CarryOut] | None = None,
    ) -> None:
        self._database = database
        self._engine = engine
        self._clock = clock
        self._interval_s = interval_s
        self._batch_size = batch
        self._others = others or {}  # who carries out what is not about an instance
        self._rung: set[int] = set()
        self._bell = asyncio.Event()

    def ring(self, partition: int) -> None:
        """Look at a partition soon. Called on the event loop."""
        self._rung.add(partition)
        self._bell.set()

    async def work(self) -> None:
        """Run for ever."""
        all_due_at = 0.0  # monotonic; other bells must not put off a look at what rang unheard
        while True:
            with suppress(TimeoutError):
                # Not wait_for: before Python 3.12 it swallows a cancellation that meets the bell.
                async with asyncio.timeout(all_due_at - time.monotonic()):
                    await self._bell.wait()
            self._bell.clear()
            partitions, self._rung = self._rung & self._engine.epochs.keys(), set()
            if time.monotonic() >= all_due_at:
                partitions = set(self._engine.epochs)
                all_due_at = time.monotonic() + self._interval_s
            try:
                await self.scan(partitions)
            except ShoalError as error:
                if not error.retriable and not isinstance(error, (Fenced, NotOwner, StaleRow)):
                    raise
                log.warning("scan failed; the next one repeats it", error=str(error))

    async def scan(self, partitions: Collection[int]) -> None:
        """Carry out what is pending in ``partitions``, oldest first."""
        seen: set[int] = set()
        while partitions:
            async with self._database.unit_of_work(read_only=True) as uow:
                commands = await uow.commands.pending(partitions, self._batch_size)
            if seen.issuperset(command.id for command in commands):
                return  # nothing there, or nothing that could be settled now
            seen.update(command.id for command in commands)
            await self._create([c for c in commands if c.type in _CREATES])
            requests: list[Awaitable[None]] = [
                self._request(c) for c in commands if c.type in _REQUESTS
            ]
            requests += [self._others[c.type](c) for c in commands if c.type in self._others]
            # All of them settled before the next scan, or it would find them pending again.
            for error in await asyncio.gather(*requests, return_exceptions=True):
                if error is not None:
                    raise error
            if len(commands) < self._batch_size:
                return

    # -- instances ---------------------------------------------------------------------------

    async def _create(self, commands: list[Command]) -> None:
        """Create the instances of a batch; a command that spoils the batch is tried alone."""
        epochs = dict(self._engine.epochs)  # as they were: the fence finds out what has changed
        commands = [c for c in commands if c.partition in epochs]
        if not commands:
            return
        try:
            runs = await self._create_together(commands, epochs)
        except ShoalError as error:
            if error.retriable or isinstance(error, (Fenced, NotOwner)):
                raise
            if len(commands) == 1:
                await self._refuse(commands[0], str(error))
                return
            for command in commands:
                await self._create([command])
            return
        for run in runs:
            # Whoever has taken the partition since has found the run in the database.
            if self._engine.epochs.get(run.partition) == epochs[run.partition]:
                self._engine.adopt(run)

    async def _create_together(
        self, commands: list[Command], epochs: Mapping[int, int]
    ) -> list[Run]:
        now = self._clock()
        async with self._database.unit_of_work() as uow:
            await uow.fence({c.partition: epochs[c.partition] for c in commands})
            new = []
            for command in commands:
                try:
                    new.append(await self._new_instance(uow, command))
                except (NotFound, _Unusable) as error:
                    await uow.commands.refuse(command.id, str(error), now)
            runs = await uow.instances.create(new)
            outcomes = [(n.command_id, run.id) for n, run in zip(new, runs, strict=True)]
            await uow.commands.done_many(outcomes, now)
            failpoints.hit("start.before_commit")
            await uow.commit()
        failpoints.hit("start.after_commit")
        return runs

    async def _new_instance(self, uow: UnitOfWork, command: Command) -> NewInstance:
        now = self._clock()
        if command.type is CommandType.RERUN:
            assert command.instance_id is not None
            source = await uow.instances.get(command.instance_id)
            return NewInstance(
                command.id,
                source.workflow_id,
                source.version,
                command.partition,
                source.priority,
                source.parameters,
                source.logical_time,
                now,
                timezone=source.timezone,
                rerun_of=source.id,
                run_number=source.run_number + 1,
                schedule_id=source.schedule_id,
                startup=source.startup,
                selection=source.selection,
                admitted_at=now,
            )
        version = await uow.workflows.version(command.workflow_id, command.version)
        try:
            launched = launch(
                version.spec.parameters,
                await uow.projects.parameters(version.project),
                command.parameters,
                # One text for many runs may hold dates; what somebody typed for one run is data.
                data=command.schedule_id is None and command.backfill_id is None,
            )
        except ValueError as error:
            raise _Unusable(f"parameters do not fit version {version.version}: {error}") from None
        return NewInstance(
            command.id,
            command.workflow_id,
            version.version,
            command.partition,
            version.spec.priority if command.priority is None else command.priority,
            launched.parameters,
            command.logical_time or command.created_at or now,
            now,
            timezone=command.timezone or version.spec.timezone,
            schedule_id=command.schedule_id,
            startup=launched.startup,
            selection=command.selection,
            parent=command.parent,
            backfill_id=command.backfill_id,
            admitted_at=now,
        )

    async def _refuse(self, command: Command, reason: str) -> None:
        async with self._database.unit_of_work() as uow:
            await uow.fence({command.partition: self._engine.epoch_of(command.partition)})
            await uow.commands.refuse(command.id, reason, self._clock())
            await uow.commit()
        log.warning("command refused", command=command.id, reason=reason)

    # -- requests ----------------------------------------------------------------------------

    async def _request(self, command: Command) -> None:
        event = _event(command, self._clock())
        assert command.instance_id is not None
        try:
            await self._engine.submit(command.partition, command.instance_id, event, command)
        except (NotFound, Quarantined) as error:
            await self._refuse(command, str(error))
        except ShoalError as error:
            log.warning(
                "request not stored; the next scan repeats it", command=command.id, error=str(error)
            )


def _event(command: Command, now: datetime) -> Request:
    """Return what a command about an instance asks the engine for."""
    match command.type:
        case CommandType.RERUN_TASKS:
            assert command.selection is not None, "checked when it was accepted"
            return RerunRequested(command.selection, now)
        case CommandType.KILL_TASK:
            assert command.task is not None, "checked when it was accepted"
            return KillRequested(command.task, now)
        case CommandType.FORCE_SUCCESS:
            assert command.task is not None, "checked when it was accepted"
            return ForceRequested(command.task, now, command.requested_by)
        case _:
            return _OF_WHOLE[command.type](now)
