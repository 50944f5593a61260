"""Instances: the START and RERUN commands of a scan are carried out in batches.

A batch is one transaction: instances, attempts, what the runs begin with, the outcomes of the
commands, and the admission of runs that must not overlap. What the commands refer to is read by one
statement for all of them. After an error each command is tried alone.

``Begun`` is decided for each run that the engine adopts: new runs, those of a partition that was
taken over, and those that a failed store evicted from memory. For new runs it is decided here, so
that the transaction that creates them stores what they begin with, and the engine adopts them with
that decision. A new run that cannot begin so is adopted without one.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Self

from shoal.core.decide import decide
from shoal.core.definition import deadline
from shoal.core.definition.labels import inherited
from shoal.core.definition.model import WorkflowSpec
from shoal.core.definition.parameters import launch
from shoal.core.errors import ShoalError
from shoal.core.runs.commands import Command, CommandType, Parent
from shoal.core.runs.events import Begun
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.records import NewInstance
from shoal.core.runs.run import Decision, Run
from shoal.master.services.admission import Gate
from shoal.master.services.commands.outcomes import CommandOutcomes, notify_parents
from shoal.master.services.service import MasterContext, is_passing
from shoal.runtime import failpoints
from shoal.sql import UnitOfWork
from shoal.sql.errors import Archived, NotFound, StaleRow, UnusableDefinition
from shoal.sql.repositories.definitions.workflows import Origin

_MOST_TASKS = 2_000  # of the instances that one transaction creates, unless it is a single one
_MOST_AT_ONCE = 500  # tasks that are decided without a turn for others
_MOST_CHANGES = 100 * _MOST_AT_ONCE  # so few tasks do not reach it; it refuses long texts


class _UnusableStart(ShoalError):
    """A command that can never be carried out; its text becomes the reason in its row."""


class _Definitions:
    """Workflows, their versions and their projects' parameters, as one transaction sees them."""

    def __init__(self, uow: UnitOfWork, origins: Mapping[int, Origin]) -> None:
        self._uow = uow
        self._origins = origins

    @classmethod
    async def of(cls, uow: UnitOfWork, workflow_ids: Collection[int]) -> Self:
        """Read what is known of these workflows; nothing else is asked for later."""
        return cls(uow, await uow.workflows.origins(workflow_ids))

    async def version(self, workflow_id: int, version: int | None) -> tuple[int, WorkflowSpec]:
        """Return a version of a workflow, with its number; None: the newest.

        A deleted workflow has no newest version, but each one can still be had by its number.
        Raises NotFound, Archived.
        """
        origin = self._origins.get(workflow_id)
        if origin is None or (version is None and origin.is_deleted):
            raise NotFound("workflow", f"{workflow_id}")
        self.require_in_use(workflow_id)
        number = origin.version if version is None else version
        return number, await self._uow.workflows.spec(workflow_id, number)

    def require_in_use(self, workflow_id: int) -> None:
        """Raise Archived if nothing of a workflow may start."""
        origin = self._origins.get(workflow_id)
        if origin is not None and origin.is_archived:
            raise Archived(origin.project, origin.name)

    def parameters(self, workflow_id: int) -> Mapping[str, str]:
        """Return the definitions of the parameters of a workflow's project."""
        return self._origins[workflow_id].parameters

    def newest(self, workflow_ids: Collection[int]) -> dict[int, int]:
        """Return the newest versions of workflows, deleted or not, by their ids."""
        return {one: self._origins[one].version for one in workflow_ids}


class _Families:
    """What is known of the runs above new children, as one transaction sees them."""

    def __init__(
        self, stopping: Collection[int], descendants: Mapping[int, int], most: int
    ) -> None:
        self._stopping, self._most = stopping, most
        self._descendants = Counter(descendants)  # by root

    @classmethod
    async def of(cls, uow: UnitOfWork, commands: Collection[Command], most: int) -> Self:
        """Read what the starts of children among the commands need."""
        parents = [c.parent for c in commands if c.parent is not None]
        if not parents:
            return cls((), {}, most)
        above = {one for parent in parents for one in (*parent.ancestors, parent.instance_id)}
        roots = {parent.root for parent in parents}
        descendants = {root: await uow.admission.descendants(root, most) for root in roots}
        return cls(await uow.admission.stopping(above), descendants, most)

    def admit(self, parent: Parent) -> None:
        """Count one more child. Raises _UnusableStart if it must not start."""
        above = [*parent.ancestors, parent.instance_id]
        if (stopping := next((one for one in above if one in self._stopping), None)) is not None:
            raise _UnusableStart(f"instance {stopping}, which it would work for, is being stopped")
        if self._descendants[parent.root] >= self._most:
            raise _UnusableStart(
                f"instance {parent.root} has {self._most:,} runs of sub-workflows, and no more are "
                "allowed (max_descendants in [master]); does one of its workflows, directly or "
                "not, run itself?"
            )
        self._descendants[parent.root] += 1


class Starts:
    """Creates the instances of one master's partitions."""

    def __init__(self, context: MasterContext, outcomes: CommandOutcomes) -> None:
        self._database, self._engine = context.database, context.engine
        self._clock, self._notify_owners = context.clock, context.notify_owners
        self._outcomes = outcomes
        self._max_descendants = context.settings.max_descendants

    async def create(self, commands: list[Command]) -> None:
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
            if is_passing(error) and not isinstance(error, StaleRow):
                raise
            if len(commands) > 1:
                for command in commands:
                    await self.create([command])
            elif isinstance(error, ShoalError):
                await self._outcomes.settle(
                    commands[0], self._outcomes.refuse(commands[0], str(error))
                )
            else:
                self._outcomes.quarantine(commands[0].id, commands[0].partition, error)
            return len(commands)
        for command in commands[:handled]:
            self._engine.quarantine.passed(ItemKind.COMMAND, command.id)
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
            definitions = await _Definitions.of(uow, {c.workflow_id for c in commands})
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
            notified = await notify_parents(uow, commands, refused, runs, now)
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
        self, uow: UnitOfWork, definitions: _Definitions, commands: list[Command]
    ) -> tuple[list[NewInstance], dict[int, str]]:
        """Return what the first commands ask for, and why some cannot be carried out, by command.

        However many commands there are: they stop where the instances have tasks enough.
        """
        new: list[NewInstance] = []
        refused: dict[int, str] = {}
        tasks = 0
        families = await _Families.of(uow, commands, self._max_descendants)
        above = await uow.labels.of({i for c in commands if (i := _labelled_by(c)) is not None})
        for command in commands:
            try:
                labels = above.get(_labelled_by(command) or 0, {})
                one = await self._new_instance(uow, definitions, command, labels)
                tasks += await uow.workflows.size(one.workflow_id, one.version)
                if command.parent is not None and not (new and tasks > _MOST_TASKS):
                    families.admit(command.parent)
            except (Archived, NotFound, _UnusableStart, UnusableDefinition) as error:
                refused[command.id] = str(error)
                continue
            if new and tasks > _MOST_TASKS:
                break
            new.append(one)
        return new, refused

    async def _new_instance(
        self,
        uow: UnitOfWork,
        definitions: _Definitions,
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
                command_id=command.id,
                workflow_id=source.workflow_id,
                version=source.version,
                partition=command.partition,
                priority=source.priority,
                parameters=source.parameters,
                logical_time=source.logical_time,
                created_at=now,
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
                raise _UnusableStart(f"version {version} has no task {names}")
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
            raise _UnusableStart(f"parameters do not fit version {version}: {error}") from None
        timezone = command.timezone or spec.timezone
        # A fire time counts also if it was fired late. Backfills repeat the past.
        fired_at = command.logical_time if command.schedule_id is not None else None
        is_timed = command.backfill_id is None
        return NewInstance(
            command_id=command.id,
            workflow_id=command.workflow_id,
            version=version,
            partition=command.partition,
            priority=spec.priority if command.priority is None else command.priority,
            parameters=launched.parameters,
            logical_time=command.logical_time or command.created_at or now,
            created_at=now,
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


async def first_decisions(runs: Sequence[Run], at: datetime) -> dict[int, Decision]:
    """Decide what new runs begin with, and apply it; return the decisions by instance id.

    The caller stores both together. Left out are runs that wait for others, and decisions that
    need more than a row: messages, an end, new attempts.
    """
    if sum(len(run.attempts) for run in runs) > _MOST_AT_ONCE:
        return await asyncio.to_thread(_decide_all, runs, at)  # nothing else knows these runs yet
    return _decide_all(runs, at, _MOST_CHANGES)


def _decide_all(runs: Sequence[Run], at: datetime, most: int = sys.maxsize) -> dict[int, Decision]:
    begun: dict[int, Decision] = {}
    for run in runs:
        decision = _decide(run, at, most)
        if decision is not None and _is_plain(decision):
            run.apply(decision)
            begun[run.id] = decision
    return begun


def _decide(run: Run, at: datetime, most: int) -> Decision | None:
    if run.admitted_at is None:
        return None
    try:
        return decide(run, Begun(at), most)
    except Exception:  # noqa: BLE001 - the engine meets it again: a long one, or of a spoilt run
        return None


def _is_plain(decision: Decision) -> bool:
    """Whether it sends nothing, ends nothing and makes no attempts."""
    is_new = any(attempt.id is None for attempt in decision.attempts.values())
    return decision.finished_at is None and not decision.messages and not is_new
