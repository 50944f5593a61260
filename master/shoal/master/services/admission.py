"""Which runs may start: overlap policies at work, inside the transactions that create and end runs.

A ``Gate`` is part of one transaction. It locks the workflows whose policies matter (after the
fence, before anything is written, see ``shoal.sql.repositories.runs.admission``), reads which of
their runs are active and which wait once all ends are written, and stores what
``shoal.core.runs.overlap`` decides: ``admitted_at``, and an ADMIT or STOP command for each run
that has to hear of it. So an end and its consequences are one, and a master's death in between
costs nothing. A regular poll finds room that no end has made: by a new version, or by a run that
ended under another policy.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

import structlog

from shoal.core.runs.commands import CommandState, CommandType, NewCommand
from shoal.core.runs.overlap import Lineup, Moves, OverlapPolicy, Waiter, refusal, settle
from shoal.core.runs.run import Run
from shoal.core.runs.states import WorkflowState
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import say
from shoal.master.engine.listeners import EndOfRuns
from shoal.master.services.service import MasterContext, PeriodicService
from shoal.runtime import failpoints
from shoal.sql import UnitOfWork
from shoal.sql.errors import KeyTaken
from shoal.sql.repositories.runs.admission import supersede_key

log = structlog.get_logger()

REQUESTED_BY = "overlap"
# Regular polls of the scanner between two of this service: every end admits at once, a poll only
# finds what was lost on the way.
_SCANS_PER_POLL = 6


@dataclass
class _WorkflowLineup:
    """One locked workflow."""

    policy: OverlapPolicy
    lineup: Lineup
    moves: list[Moves] = field(default_factory=list)

    def settle(self) -> None:
        moves = settle(self.policy, self.lineup)
        self.lineup = self.lineup.after(moves)
        self.moves.append(moves)


class Gate:
    """The workflows that one transaction has locked, and what it does to their runs."""

    def __init__(self, uow: UnitOfWork, policies: dict[int, OverlapPolicy]) -> None:
        self._uow = uow
        self._policies = policies
        self._unknown = uow.admission.unknown
        self._lines: dict[int, _WorkflowLineup] = {}
        self._newcomers: dict[int, Run] = {}
        self.admitted: set[int] = set()  # newcomers that may start
        self.to_notify: set[int] = set()  # partitions, after the commit

    @classmethod
    async def locked(cls, uow: UnitOfWork, newest: Mapping[int, int]) -> Self:
        """Lock those of the workflows whose runs may have to wait; see ``admission.lock``."""
        return cls(uow, await uow.admission.lock(newest))

    @property
    def workflow_ids(self) -> Collection[int]:
        """The locked workflows."""
        return self._policies.keys()

    async def read(self) -> None:
        """Read the active and waiting runs; the transaction's own ends are written by now."""
        for workflow_id, policy in self._policies.items():
            lineup = await self._uow.admission.lineup(workflow_id, policy)
            self._lines[workflow_id] = _WorkflowLineup(policy, lineup)

    def is_open(self, workflow_id: int) -> bool:
        """Whether a new run starts at once, beside any others."""
        return workflow_id not in self._policies and workflow_id not in self._unknown

    def refusal(self, workflow_id: int, coming: int) -> str | None:
        """Return why one more run is refused, after ``coming`` others that were not."""
        if self.is_open(workflow_id):
            return None
        if (reason := self._unknown.get(workflow_id)) is not None:
            return f"it is not known whether another run may start: {reason}"
        line = self._lines[workflow_id]
        lineup = line.lineup
        return refusal(line.policy, lineup.active, lineup.waiting_count + coming, lineup.active_ids)

    def enter(self, workflow_id: int, run: Run) -> None:
        """Let a run that was created, not admitted, take its place."""
        line = self._lines[workflow_id]
        line.lineup = line.lineup.joined_by(Waiter(run.id, run.priority, run.logical_time))
        line.settle()
        self._newcomers[run.id] = run

    def settle(self) -> None:
        """Let waiting runs take the room that there is."""
        for line in self._lines.values():
            line.settle()

    async def write(self, at: datetime) -> None:
        """Store what was decided. The caller notifies ``to_notify`` after the commit."""
        commands: list[NewCommand] = []
        for workflow_id, line in self._lines.items():
            commands += await self._admissions(workflow_id, line.moves, at)
            commands += await self._stops(workflow_id, line.moves)
        if commands:
            await self._uow.commands.send_many(commands, at)
            self.to_notify |= {command.partition for command in commands}

    async def _admissions(
        self, workflow_id: int, moves: Iterable[Moves], at: datetime
    ) -> list[NewCommand]:
        """Mark the runs as admitted; return the messages to those that are held already."""
        ids = [run for move in moves for run in move.admit]
        admitted = await self._uow.admission.admit(ids, at) if ids else {}
        for run_id in admitted.keys() & self._newcomers.keys():
            self._newcomers[run_id].admitted_at = at
            self.admitted.add(run_id)
        return [
            _admit(run_id, workflow_id, partition)
            for run_id, partition in admitted.items()
            if run_id not in self._newcomers
        ]

    async def _stops(self, workflow_id: int, moves: Iterable[Moves]) -> list[NewCommand]:
        stops: dict[int, tuple[str, str]] = {}  # key and reason by instance
        for move in moves:
            for run_id in move.supersede:
                stops[run_id] = (
                    supersede_key(run_id),
                    say(Code.REASON_SUPERSEDED, instance=move.by),
                )
            for run_id in move.replace:
                key = f"replace:{run_id}:{move.by}"
                stops[run_id] = (key, say(Code.REASON_REPLACED, instance=move.by))
        partitions = await self._uow.admission.partitions_of(stops) if stops else {}
        return [
            NewCommand(
                CommandType.STOP,
                partitions[run_id],
                key,
                workflow_id,
                instance_id=run_id,
                requested_by=REQUESTED_BY,
                detail={"reason": reason},
            )
            for run_id, (key, reason) in stops.items()
        ]


class Admitter(PeriodicService):
    """Admits runs when others end, and finds room that no end has made."""

    name = "admission"

    def __init__(self, context: MasterContext) -> None:
        self._interval_s = _SCANS_PER_POLL * context.settings.scan_interval_s
        super().__init__(self._interval_s, first_s=self._interval_s)
        self._database, self._engine = context.database, context.engine
        self._clock, self._notify_owners = context.clock, context.notify_owners
        self._quarantined: set[int] = set()  # runs that hold no place any longer

    def on_quarantined(self, instance_ids: Collection[int]) -> None:
        """These runs are quarantined: others may take their places."""
        self._quarantined |= set(instance_ids)
        self._wakeup.notify()

    @property
    def has_work(self) -> bool:
        """Whether the next poll gives places away."""
        return bool(self._quarantined)

    async def on_ending(self, uow: UnitOfWork, runs: Sequence[Run]) -> EndOfRuns:
        """Let others start in the transaction that stores the end of ``runs``."""
        policies = await uow.admission.lock_of([run.id for run in runs])
        return _AfterEnds(Gate(uow, policies), self._notify_owners)

    async def poll(self, is_regular: bool) -> None:
        await self._give_up_places()
        if is_regular:
            await self.admit_waiting()

    async def _give_up_places(self) -> None:
        """Let others start in the places of quarantined runs.

        Of those, the ones that have not begun wait in line again once they are repaired.
        """
        ids, self._quarantined = self._quarantined, set()
        if not ids:
            return
        try:
            async with self._database.unit_of_work() as uow:
                gate = Gate(uow, await uow.admission.lock_of(ids))
                await uow.admission.withdraw(ids, gate.workflow_ids)
                await gate.read()
                gate.settle()
                await gate.write(self._clock())
                await uow.commit()
        except BaseException:
            self._quarantined |= ids
            raise
        self._notify_owners(gate.to_notify)

    async def admit_waiting(self) -> None:
        """Admit what waits in this master's partitions although there is room for it."""
        waiting = [
            run.id
            for run in self._engine.runs.values()
            if run.state is WorkflowState.QUEUED and run.admitted_at is None
        ]
        if not waiting:
            return
        await self._repeat(waiting)
        async with self._database.unit_of_work() as uow:
            gate = Gate(uow, await uow.admission.lock_of(waiting, all_of_them=True))
            await gate.read()
            gate.settle()
            await gate.write(self._clock())
            await uow.commit()
        if gate.to_notify:
            log.info("runs admitted that no end has admitted", partitions=sorted(gate.to_notify))
            self._notify_owners(gate.to_notify)

    async def _repeat(self, waiting: Collection[int]) -> None:
        """Send ADMIT to those that were admitted long ago if the message is not there."""
        now = self._clock()
        before = now - timedelta(seconds=self._interval_s)
        async with self._database.unit_of_work(read_only=True) as uow:
            homes = await uow.admission.not_begun(waiting, before)
        if not homes:
            return
        async with self._database.unit_of_work() as uow:
            messages = [_admit(run_id, *home) for run_id, home in homes.items()]
            try:
                sent = await uow.commands.send_many(messages, now)
            except KeyTaken as error:
                log.error("admitted runs cannot be notified", error=str(error))
                return
            await uow.commit()
        if pending := {one.partition for one in sent if one.state is CommandState.PENDING}:
            log.warning("admitted runs notified again", instances=sorted(homes))
            self._notify_owners(pending)


def _admit(run_id: int, workflow_id: int, partition: int) -> NewCommand:
    """Return the message to a run that it may start."""
    return NewCommand(
        CommandType.ADMIT,
        partition,
        f"admit:{run_id}",
        workflow_id,
        instance_id=run_id,
        requested_by=REQUESTED_BY,
    )


class _AfterEnds(EndOfRuns):
    """The part of one transaction that lets others move up."""

    def __init__(self, gate: Gate, notify_owners: Callable[[Iterable[int]], None]) -> None:
        self._gate = gate
        self._notify_owners = notify_owners

    async def write(self, at: datetime) -> None:
        """The ends are written: let the runs start that waited for them."""
        await self._gate.read()
        self._gate.settle()
        await self._gate.write(at)
        if self._gate.to_notify:
            failpoints.hit("admit.before_commit")

    def committed(self) -> None:
        """Notify the owners of the runs that may start."""
        if self._gate.to_notify:
            failpoints.hit("admit.after_commit")
            self._notify_owners(self._gate.to_notify)
