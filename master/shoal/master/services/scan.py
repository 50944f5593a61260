"""The scanner: commands of this master's partitions become instances and events.

Woken by the partitions' notifications, and at least every few seconds by itself, since a
notification is only a hint. START and RERUN are carried out in batches, one transaction each:
instances, attempts and the commands' outcomes together, and the admission of those that must not
overlap. The other commands are events for a run, decided by the engine, those for one run in the
order in which they were accepted. They never wait behind starts, of which a master takes no more
than it may hold; the rest stays pending until instances end.
"""

import asyncio
import time
from collections import Counter
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import replace
from datetime import datetime

import structlog

from shoal.core.definition import deadline
from shoal.core.definition.labels import inherited
from shoal.core.definition.model import WorkflowSpec
from shoal.core.definition.parameters import launch
from shoal.core.errors import ShoalError
from shoal.core.runs.commands import Command, CommandType
from shoal.core.runs.events import OF_WHOLE, Admitted, ChildChanged, Request, request_of
from shoal.core.runs.quarantine import Kind
from shoal.core.runs.records import NewInstance
from shoal.core.runs.run import Decision, Run
from shoal.master.engine import messages
from shoal.master.engine.beginning import first_decisions
from shoal.master.errors import NotOwner, Quarantined
from shoal.master.services import admission
from shoal.master.services.admission import Gate
from shoal.master.services.definitions import Definitions
from shoal.master.services.service import MasterContext, PeriodicService
from shoal.runtime import failpoints
from shoal.sql import UnitOfWork
from shoal.sql.errors import (
    Archived,
    Fenced,
    NotFound,
    StaleRow,
    UnreadableRow,
    UnusableDefinition,
)

log = structlog.get_logger()

CarryOut = Callable[[Command], Awaitable[None]]

_CREATES = frozenset({CommandType.START, CommandType.RERUN})
_REQUESTS = frozenset(
    {*OF_WHOLE, CommandType.STOP, CommandType.ADMIT, CommandType.CHILD}
    | {CommandType.RERUN_TASKS, CommandType.KILL_TASK, CommandType.FORCE_SUCCESS}
)


# Senders of commands that are not requests of people: they must not be refused while their
# instance is quarantined, or the senders would wait for ever.
_INTERNAL = frozenset({messages.REQUESTED_BY, admission.REQUESTED_BY, "backfill"})
# A full master takes a start at every end, and is full again: it counts as full for so long.
_FULL_FOR_S = 60.0
_MOST_TASKS = 2_000  # of the instances that one transaction creates, unless it is a single one


class _Unusable(ShoalError):
    """A command that can never be carried out; its text becomes the reason in its row."""


class Scanner(PeriodicService):
    """Reads the command table for one master."""

    name = "scanner"

    def __init__(
        self, context: MasterContext, others: Mapping[CommandType, CarryOut] | None = None
    ) -> None:
        """``others``: what carries out commands that are not about an instance."""
        settings = context.settings
        super().__init__(settings.scan_interval_s)
        self._database, self._engine = context.database, context.engine
        self._clock, self._notify_owners = context.clock, context.notify_owners
        self._batch_size, self._max_open = settings.scan_batch, settings.max_open_instances
        self._others = others or {}
        self._is_full = False  # starts may be pending until instances end
        self._full_s: float | None = None  # when it was last full; monotonic
        self._notified: set[int] = set()
        self._waiting: set[int] = set()  # commands for quarantined instances

    @property
    def was_full(self) -> bool:
        """Whether starts have had to wait for ends of instances, now or a moment ago."""
        return self._full_s is not None and time.monotonic() - self._full_s < _FULL_FOR_S

    def notify(self, partition: int) -> None:
        """Read the commands of a partition soon."""
        self._notified.add(partition)
        self._wakeup.notify()

    async def poll(self, is_regular: bool) -> None:
        partitions, self._notified = self._notified & self._engine.epochs.keys(), set()
        if is_regular:
            partitions = set(self._engine.epochs)
            self._waiting.clear()
        await self.scan(partitions)

    def on_ended(self, run: Run) -> None:
        """There is room for another instance."""
        if self._is_full:
            self._is_full = False
            self._notified |= self._engine.epochs.keys()
            self._wakeup.notify()

    async def scan(self, partitions: Collection[int]) -> None:
        """Carry out what is pending in ``partitions``, starts and others oldest first each."""
        seen: set[int] = set()
        while partitions:
            most_starts = min(self._batch_size, self._max_open - len(self._engine.runs))
            self._is_full = most_starts <= 0
            if self._is_full:
                self._full_s = time.monotonic()
            # Quarantined commands stay pending and must not stand in the way of the others.
            quarantined = self._engine.quarantine.held(Kind.COMMAND) + len(self._waiting)
            most = (
                most_starts + quarantined if most_starts > 0 else 0,
                self._batch_size + quarantined,
            )
            bad: list[UnreadableRow] = []
            async with self._database.unit_of_work(read_only=True) as uow:
                starts, commands = await uow.commands.pending(partitions, *most, bad.append)
            for row in bad:
                self._quarantine(row.key, row.partition, row)
            starts, commands = self._sound(starts)[: max(0, most_starts)], self._sound(commands)
            is_last = len(commands) < self._batch_size and not 0 < most_starts <= len(starts)
            commands += starts
            if seen.issuperset(command.id for command in commands):
                return  # nothing there, or nothing that could be settled now
            seen.update(command.id for command in commands)
            await self._create([c for c in commands if c.type in _CREATES])
            lines = await self._lines([c for c in commands if c.type in _REQUESTS])
            requests: list[Awaitable[None]] = [self._carry_out(line) for line in lines]
            requests += [
                self._try(c, self._others[c.type](c)) for c in commands if c.type in self._others
            ]
            # All of them settled before the next scan, or it would find them pending again.
            for error in await asyncio.gather(*requests, return_exceptions=True):
                if error is not None:
                    raise error
            if is_last:
                return

    # -- what cannot be worked with ------------------------------------------------------------

    def _sound(self, commands: Iterable[Command]) -> list[Command]:
        """Return those that are not quarantined."""
        holds = self._engine.quarantine.holds
        return [command for command in commands if not holds(Kind.COMMAND, command.id)]

    def _quarantine(self, key: object, partition: int, error: Exception) -> None:
        """Quarantine a command. It stays pending, for a version that can carry it out."""
        if partition in self._engine.epochs and not self._engine.quarantine.holds(
            Kind.COMMAND, key
        ):
            self._engine.quarantine.put(Kind.COMMAND, key, partition, error)

    async def _try(self, command: Command, work: Awaitable[None]) -> None:
        """Carry a command out; what is wrong with it holds up no other."""
        try:
            await work
        except Exception as error:
            if _is_passing(error):
                raise
            self._quarantine(command.id, command.partition, error)
        else:
            self._engine.quarantine.passed(Kind.COMMAND, command.id)

    # -- instances ---------------------------------------------------------------------------

    async def _create(self, commands: list[Command]) -> None:
        """Create the instances of a batch, in as many transactions as that takes."""
        while commands:
            epochs = dict(self._engine.epochs)  # as they were: the fence finds out what has changed
            commands = [c for c in commands if c.partition in epochs]
            if commands:
                handled = await self._create_first(commands, epochs)
                commands = commands[handled:]

    async def _create_first(self, commands: list[Command], epochs: Mapping[int, int]) -> int:
        """Carry out the first commands; return how many. After an error each is tried alone."""
        try:
            handled, runs, begun = await self._create_together(commands, epochs)
        except Exception as error:
            if _is_passing(error) and not isinstance(error, StaleRow):
                raise
            if len(commands) > 1:
                for command in commands:
                    await self._create([command])
            elif isinstance(error, ShoalError):
                await self._try(commands[0], self._refuse(commands[0], str(error)))
            else:
                self._quarantine(commands[0].id, commands[0].partition, error)
            return len(commands)
        for command in commands[:handled]:
            self._engine.quarantine.passed(Kind.COMMAND, command.id)
        for run in runs:
            # A master that has taken the partition since has found the run in the database.
            if self._engine.epochs.get(run.partition) == epochs[run.partition]:
                self._engine.adopt(run, begun.get(run.id))
        return handled

    async def _create_together(
        self, commands: list[Command], epochs: Mapping[int, int]
    ) -> tuple[int, Sequence[Run], dict[int, Decision]]:
        """Carry out the first commands, as many as are good for one transaction.

        Return how many, the new runs, and what those have begun with that have begun.
        """
        now = self._clock()
        async with self._database.unit_of_work() as uow:
            await uow.fence({c.partition: epochs[c.partition] for c in commands})
            definitions = await Definitions.of(uow, {c.workflow_id for c in commands})
            new, refused = await self._new_instances(uow, definitions, commands)
            commands = commands[: len(new) + len(refused)]
            judged = {n.workflow_id for n in new if n.backfill_id is None}
            gate = await Gate.locked(uow, definitions.newest(judged))
            await gate.read()
            new = _let_in(gate, new, refused)
            begins_at = self._clock()
            reserved = await uow.new_instances.reserve(new)
            runs = reserved.runs
            begun = await first_decisions(runs, begins_at)
            await uow.new_instances.insert(reserved, begun)
            for one, run in zip(new, runs, strict=True):
                if one.admitted_at is None:
                    gate.enter(one.workflow_id, run)
            await gate.write(now)
            notified = await _notify_parents(uow, commands, refused, runs, now)
            await uow.commands.refuse_many(list(refused.items()), now)
            outcomes = [(n.command_id, run.id) for n, run in zip(new, runs, strict=True)]
            await uow.commands.done_many(outcomes, now)
            late = await first_decisions([r for r in runs if r.id in gate.admitted], begins_at)
            begun |= late
            await uow.instances.save([(r, late[r.id]) for r in runs if r.id in late], now)
            failpoints.hit("start.before_commit")
            await uow.commit()
        failpoints.hit("start.after_commit")
        self._notify_owners(gate.to_notify | notified)
        return len(commands), runs, begun

    async def _new_instances(
        self, uow: UnitOfWork, definitions: Definitions, commands: list[Command]
    ) -> tuple[list[NewInstance], dict[int, str]]:
        """Return what the first commands ask for, and why some cannot be carried out, by command.

        However many commands there are: they stop where the instances have tasks enough.
        """
        new: list[NewInstance] = []
        refused: dict[int, str] = {}
        tasks = 0
        above = await uow.labels.of({i for c in commands if (i := _labelled_by(c)) is not None})
        for command in commands:
            try:
                labels = above.get(_labelled_by(command) or 0, {})
                one = await self._new_instance(uow, definitions, command, labels)
                tasks += await uow.workflows.size(one.workflow_id, one.version)
            except (Archived, NotFound, _Unusable, UnusableDefinition) as error:
                refused[command.id] = str(error)
                continue
            if new and tasks > _MOST_TASKS:
                break
            new.append(one)
        return new, refused

    async def _new_instance(
        self,
        uow: UnitOfWork,
        definitions: Definitions,
        command: Command,
        labels: Mapping[str, str],
    ) -> NewInstance:
        """``labels``: of the run that it repeats, or whose task has started it."""
        now = self._clock()
        if command.type is CommandType.RERUN:
            assert command.instance_id is not None
            source = await uow.instances.get(command.instance_id)
            definitions.require_in_use(source.workflow_id)
            spec = await uow.workflows.spec(source.workflow_id, source.version)
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
                deadline_at=_deadline(spec, now, source.timezone),
                labels=labels,
            )
        version, spec = await definitions.version(command.workflow_id, command.version)
        if command.selection is not None:
            unknown = command.selection.unknown(task.name for task in spec.tasks)
            if unknown:
                names = ", ".join(unknown)
                raise _Unusable(f"version {version} has no task {names}")
        try:
            launched = launch(
                spec.parameters,
                definitions.parameters(command.workflow_id),
                command.parameters,
                # One text for many runs may hold dates; what was typed for one run is data,
                # as is what a parent has rendered.
                data=command.parent is not None
                or (command.schedule_id is None and command.backfill_id is None),
            )
        except ValueError as error:
            raise _Unusable(f"parameters do not fit version {version}: {error}") from None
        timezone = command.timezone or spec.timezone
        # A fire time counts also if it was fired late. Backfills repeat the past.
        fired_at = command.logical_time if command.schedule_id is not None else None
        is_timed = command.backfill_id is None
        return NewInstance(
            command.id,
            command.workflow_id,
            version,
            command.partition,
            spec.priority if command.priority is None else command.priority,
            launched.parameters,
            command.logical_time or command.created_at or now,
            now,
            timezone=timezone,
            schedule_id=command.schedule_id,
            startup=launched.startup,
            selection=command.selection,
            parent=command.parent,
            backfill_id=command.backfill_id,
            admitted_at=now,
            deadline_at=_deadline(spec, fired_at or now, timezone) if is_timed else None,
            labels=inherited(command.labels, labels, spec.labels),
        )

    async def _refuse(self, command: Command, reason: str) -> None:
        async with self._database.unit_of_work() as uow:
            await uow.fence({command.partition: self._engine.epoch_of(command.partition)})
            now = self._clock()
            notified = await _notify_parents(uow, [command], {command.id: reason}, [], now)
            await uow.commands.refuse(command.id, reason, now)
            await uow.commit()
        self._notify_owners(notified)
        log.warning("command refused", command=command.id, reason=reason)

    # -- requests ----------------------------------------------------------------------------

    async def _lines(self, commands: Collection[Command]) -> list[list[Command]]:
        """Return the commands as lists, each to be carried out in its order."""
        started: dict[str, Command] = {}
        if keys := {key for command in commands if (key := _start_key(command)) is not None}:
            async with self._database.unit_of_work(read_only=True) as uow:
                started = await uow.commands.sent(keys)
        lines: dict[Hashable, list[Command]] = {}
        for command in commands:
            start = started.get(_start_key(command) or "")
            if start is not None:
                command = replace(command, instance_id=start.result_instance_id)
            try:
                lines.setdefault(_line_of(command), []).append(command)
            except Exception as error:  # noqa: BLE001 - its row holds what no request is
                self._quarantine(command.id, command.partition, error)
        return list(lines.values())

    async def _carry_out(self, line: Collection[Command]) -> None:
        """Carry out commands one after the other, up to one that has to be repeated."""
        for command in line:
            try:
                if not await self._request(command):
                    return
            except Exception as error:
                if _is_passing(error):
                    raise
                self._quarantine(command.id, command.partition, error)
                return

    async def _request(self, command: Command) -> bool:
        """Carry out a command about an instance; False: it could not be stored."""
        if command.instance_id is None:
            await self._refuse(command, "its sub-workflow was not started")
            return True
        try:
            event = _event(command, self._clock())
        except Exception as error:  # noqa: BLE001 - its row holds what no request is
            self._quarantine(command.id, command.partition, error)
            return False
        try:
            await self._engine.submit(command.partition, command.instance_id, event, command)
        except Quarantined as error:
            if command.requested_by in _INTERNAL:
                self._waiting.add(command.id)  # until the instance goes on
                return False
            await self._refuse(command, str(error))
        except NotFound as error:
            await self._refuse(command, str(error))
        except ShoalError as error:
            log.warning(
                "request not stored; the next scan repeats it", command=command.id, error=str(error)
            )
            return False
        self._waiting.discard(command.id)
        self._engine.quarantine.passed(Kind.COMMAND, command.id)
        return True


def _deadline(spec: WorkflowSpec, since: datetime, timezone: str) -> datetime | None:
    """Return when a run should have ended that was due, or was asked for, at ``since``."""
    if spec.deadline is None:
        return None
    return deadline.instant_of(spec.deadline, since, timezone)


def _labelled_by(command: Command) -> int | None:
    """Return the instance whose labels a new one inherits."""
    if command.type is CommandType.RERUN:
        return command.instance_id
    return None if command.parent is None else command.parent.instance_id


def _is_passing(error: Exception) -> bool:
    """Whether another try may get over it, here or at another master."""
    if isinstance(error, ShoalError) and error.retriable:
        return True
    return isinstance(error, Fenced | NotOwner | StaleRow | OSError)


async def _notify_parents(
    uow: UnitOfWork,
    commands: Iterable[Command],
    refused: Mapping[int, str],
    created: Iterable[Run],
    at: datetime,
) -> set[int]:
    """Send tasks that a sub-workflow was refused, or waits; return their partitions."""
    news = [
        messages.refusal_of(command.parent, refused[command.id], command.instance_id)
        for command in commands
        if command.parent is not None and command.id in refused
    ]
    news += [
        messages.waiting(run.parent, run.id)
        for run in created
        if run.parent is not None and run.admitted_at is None
    ]
    if not news:
        return set()
    stored = await uow.commands.send_many(await messages.news_commands(uow, news), at)
    return {command.partition for command in stored}


def _start_key(command: Command) -> str | None:
    """Return the key of the START whose instance a request is about; None if it names one."""
    if command.instance_id is not None or command.parent is None:
        return None
    return messages.start_key(command.parent)


def _line_of(command: Command) -> Hashable:
    """Return the key of the commands among which this one keeps its order."""
    if command.type is CommandType.CHILD:  # the children of a MAP need not wait for each other
        return command.instance_id, command.detail["task_instance_id"], command.detail["index"]
    return command.instance_id or command.id


def _let_in(gate: Gate, new: list[NewInstance], refused: dict[int, str]) -> list[NewInstance]:
    """Return the instances to create, not admitted where a policy decides; note refusals."""
    accepted: list[NewInstance] = []
    coming: Counter[int] = Counter()
    for one in new:
        if one.backfill_id is not None or gate.is_open(one.workflow_id):
            accepted.append(one)
            continue
        reason = gate.refusal(one.workflow_id, coming[one.workflow_id])
        if reason is None:
            coming[one.workflow_id] += 1
            accepted.append(replace(one, admitted_at=None))
        else:
            refused[one.command_id] = reason
    return accepted


def _event(command: Command, now: datetime) -> Request | Admitted | ChildChanged:
    """Return the event of a command about an instance."""
    match command.type:
        case CommandType.CHILD:
            return messages.child_event(command, now)
        case CommandType.ADMIT:
            return Admitted(now)
        case _:
            return request_of(command, now)
