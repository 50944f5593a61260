"""Move the backfills of this master's partitions on.

One step of a backfill is one fenced transaction: read the outcomes of its runs, let the pure
``window`` decide, store the START commands together with the new states. A step depends on what is
stored alone, so a master may die at any point of it, and any other one goes on.

A backfill is polled after a request about it, after the end of an instance of one of its dates,
when its partition's notification arrives, and every few seconds.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

import structlog

from shoal.coordination import partition_of
from shoal.core.backfill.plan import calendar_of
from shoal.core.backfill.request import (
    Backfill,
    BackfillRefused,
    BackfillSignal,
    By,
    asked,
    next_backfill_state,
)
from shoal.core.backfill.window import (
    ENDED_BADLY,
    BackfillRun,
    retried,
)
from shoal.core.errors import ShoalError
from shoal.core.runs.commands import Command, CommandType, NewCommand
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.run import Run
from shoal.core.runs.states import IllegalTransition
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import say
from shoal.core.timing.cron.fields import InvalidCron
from shoal.master.services.backfill_needs import BackfillNeeds, needs_of
from shoal.master.services.backfill_rights import require_plan, require_rights
from shoal.master.services.service import MasterContext, PeriodicService, is_passing
from shoal.runtime import failpoints
from shoal.sql import UnitOfWork
from shoal.sql.backfill_plans import plan_of
from shoal.sql.errors import NotFound

log = structlog.get_logger()

REQUESTED_BY = "backfill"
_POLLS_PER_LOOK = 12  # regular polls between two looks at idle partitions

_SIGNALS: Mapping[CommandType, BackfillSignal] = {
    CommandType.PAUSE_BACKFILL: BackfillSignal.PAUSE,
    CommandType.RESUME_BACKFILL: BackfillSignal.RESUME,
    CommandType.CANCEL_BACKFILL: BackfillSignal.CANCEL,
    CommandType.RETRY_BACKFILL: BackfillSignal.RETRY,
}
REQUESTS = frozenset({CommandType.BACKFILL, *_SIGNALS})


class BackfillRunner(PeriodicService):
    """Carries out requests about backfills, and starts their dates."""

    name = "backfills"

    def __init__(self, context: MasterContext) -> None:
        super().__init__(context.settings.scan_interval_s)
        self._database, self._engine = context.database, context.engine
        self._clock, self._notify_owners = context.clock, context.notify_owners
        self._partitions = context.partitions
        self._writing = asyncio.Lock()  # requests and steps of one backfill never cross
        self._notified: set[int] = set()
        self._ended: set[int] = set()  # backfills with an instance that has ended
        # Partitions without a backfill under way, with the epoch at which that was seen: their
        # notifications, which notify for everything else, cost nothing.
        self._idle: dict[int, int] = {}
        self._polls = 0  # regular ones
        self._carried_out = 0  # requests so far: what was read before one may be outdated

    # -- what wakes it -----------------------------------------------------------------------

    def notify(self, partition: int) -> None:
        """Check the backfills of a partition soon."""
        if self._idle.get(partition) != self._engine.epochs.get(partition, -1):
            self._notified.add(partition)
            self._wakeup.notify()

    def on_ended(self, run: Run) -> None:
        """An instance has ended, perhaps one of a backfill."""
        if run.backfill_id is not None:
            self._ended.add(run.backfill_id)
            self._wakeup.notify()

    async def poll(self, is_regular: bool) -> None:
        notified, self._notified = self._notified, set()
        ended, self._ended = self._ended, set()
        if is_regular:
            # A partition gets work by its owner's commands alone: idle ones are looked at seldom.
            if self._polls % _POLLS_PER_LOOK == 0:
                self._idle.clear()
            self._polls += 1
            epochs = self._engine.epochs
            notified = {p for p, epoch in epochs.items() if self._idle.get(p) != epoch}
        await self.advance(notified | await self._homes(ended))

    async def _homes(self, backfills: Collection[int]) -> set[int]:
        """Return the partitions of backfills; notify the owners of others."""
        if not backfills:
            return set()
        async with self._database.unit_of_work(read_only=True) as uow:
            homes = set((await uow.backfills.partitions_of(backfills)).values())
        if others := homes - self._engine.epochs.keys():
            self._notify_owners(others)
        return homes

    async def advance(self, partitions: Collection[int]) -> None:
        """Move on every backfill of these partitions, as far as they are ours."""
        epochs, carried_out = dict(self._engine.epochs), self._carried_out
        ours = epochs.keys() & set(partitions)
        if not ours:
            return
        async with self._database.unit_of_work(read_only=True) as uow:
            active = await uow.backfills.active(ours)
        if carried_out == self._carried_out:
            self._idle.update((one, epochs[one]) for one in ours - set(active.values()))
        for backfill_id, partition in active.items():
            self._idle.pop(partition, None)
            await self._try_step(backfill_id, partition)

    async def _try_step(self, backfill_id: int, partition: int) -> None:
        """Make a step; one backfill in trouble holds up no other."""
        quarantine = self._engine.quarantine
        if quarantine.holds(ItemKind.BACKFILL, backfill_id):
            return
        try:
            await self.step(backfill_id, partition)
        except Exception as error:  # noqa: BLE001 - of this one alone
            if is_passing(error):
                log.warning("step not made; trying again", backfill=backfill_id, error=str(error))
            else:
                quarantine.put(ItemKind.BACKFILL, backfill_id, partition, error)
        else:
            quarantine.passed(ItemKind.BACKFILL, backfill_id)

    # -- requests ----------------------------------------------------------------------------

    async def carry_out(self, command: Command) -> None:
        """Carry out a command about a backfill; its outcome is stored with what it changes."""
        try:
            async with self._writing:
                if command.type is CommandType.BACKFILL:
                    await self._create(command)
                else:
                    await self._request(command)
        except (NotFound, BackfillRefused, InvalidCron) as error:
            await self._refuse(command, str(error))
        except ShoalError as error:
            if not is_passing(error):
                raise
            log.warning(
                "request not stored; the next scan repeats it", command=command.id, error=str(error)
            )
            # Perhaps it was stored, and the answer to COMMIT was lost: then no scan repeats it, and
            # the next regular poll must not consider its partition idle.
            self._carried_out += 1
            self._idle.pop(command.partition, None)
        else:
            self._carried_out += 1
            self._idle.pop(command.partition, None)
            self.notify(command.partition)

    async def _create(self, command: Command) -> None:
        request, judged = asked(command.detail)
        # The plan may take a while, and a writing transaction keeps others waiting.
        async with self._database.unit_of_work(read_only=True) as uow:
            plan = await plan_of(uow, request)
            await require_plan(uow, command, plan, judged)
        plan.require_work()
        now = self._clock()
        async with self._database.unit_of_work() as uow:
            await self._fence(uow, command.partition)
            created = await uow.backfills.create(command, request, plan, now)
            await uow.commands.done(command.id, None, now)
            await _commit(uow)
        log.info("backfill created", backfill=created.id, runs=plan.to_run)

    async def _request(self, command: Command) -> None:
        signal = _SIGNALS[command.type]
        assert command.backfill_id is not None, "checked when it was accepted"
        now = self._clock()
        async with self._database.unit_of_work() as uow:
            await self._fence(uow, command.partition)
            before = await uow.backfills.get(command.backfill_id, lock=True)
            await require_rights(uow, command, await uow.backfills.project_ids(before.id))
            try:
                state = next_backfill_state(before.state, signal)
            except IllegalTransition:
                raise BackfillRefused(
                    "state", f"cannot {signal.lower()}: the backfill is {before.state}"
                ) from None
            if signal is BackfillSignal.RETRY:
                await _retry(uow, before)
            await uow.backfills.set_state(before, state, None, now, ended=False)
            await uow.commands.done(command.id, None, now)
            await _commit(uow)
        log.info("backfill changed", backfill=before.id, state=state)

    async def _refuse(self, command: Command, reason: str) -> None:
        async with self._database.unit_of_work() as uow:
            await self._fence(uow, command.partition)
            await uow.commands.refuse(command.id, reason, self._clock())
            await uow.commit()
        log.warning("command refused", command=command.id, reason=reason)

    # -- steps -------------------------------------------------------------------------------

    async def step(self, backfill_id: int, partition: int) -> None:
        """Do what a backfill needs now. Raises Fenced, NotOwner."""
        async with self._writing:
            async with self._database.unit_of_work(read_only=True) as uow:
                needs = await needs_of(uow, await uow.backfills.get(backfill_id))
            if needs is None or not needs.has_work:
                return
            now = self._clock()
            async with self._database.unit_of_work() as uow:
                await self._fence(uow, partition)
                needs = await needs_of(uow, await uow.backfills.get(backfill_id, lock=True))
                if needs is None or not needs.has_work:
                    return
                commands = await self._store(uow, needs, now)
                await _commit(uow)
        if commands:
            self._notify_owners({command.partition for command in commands})
        if needs.step.state is not None:
            log.info("backfill ended", backfill=backfill_id, state=needs.step.state)

    async def _store(
        self, uow: UnitOfWork, needs: BackfillNeeds, now: datetime
    ) -> list[NewCommand]:
        """Store a step; return the commands that are new with it."""
        changed = dict(needs.step.changed)
        starts = [self._start(needs, changed[position]) for position in needs.step.start]
        stops = [_stop(needs, run) for run in needs.stops]
        stored = await uow.commands.send_many([*starts, *stops], now)
        for position, command in zip(needs.step.start, stored, strict=False):
            changed[position] = replace(changed[position], command_id=command.id, instance_id=None)
        await uow.backfills.save(needs.backfill.id, list(changed.values()))
        if needs.step.state is not None:
            await uow.backfills.set_state(
                needs.backfill, needs.step.state, needs.step.reason, now, ended=True
            )
        return [*starts, *stops]

    def _start(self, needs: BackfillNeeds, run: BackfillRun) -> NewCommand:
        request = needs.backfill.request
        is_root = run.workflow_id == needs.backfill.workflow_id
        workflow = needs.workflows.get(run.workflow_id)
        by_schedule = workflow is not None and calendar_of(request) is By.SCHEDULE
        schedule = workflow.schedule_at(run.logical_time) if workflow and by_schedule else None
        key = f"backfill:{needs.backfill.id}:{run.position}:{run.tries}"
        return NewCommand(
            CommandType.START,
            partition_of(key, self._partitions),
            key,
            run.workflow_id,
            version=request.version if is_root else None,
            parameters={
                **(schedule.parameters if schedule else {}),
                **(request.parameters if is_root else {}),
            },
            logical_time=run.logical_time,
            timezone=schedule.timezone if schedule else None,
            priority=int(request.priority),
            requested_by=REQUESTED_BY,
            selection=request.selection if is_root else None,
            backfill_id=needs.backfill.id,
            labels=request.labels,
        )

    async def _fence(self, uow: UnitOfWork, partition: int) -> None:
        await uow.fence({partition: self._engine.epoch_of(partition)})


async def _retry(uow: UnitOfWork, backfill: Backfill) -> None:
    """Let everything wait again that failed or was cancelled. Raises BackfillRefused."""
    runs = await uow.backfills.runs(backfill.id)
    changed = retried(runs, await uow.backfills.outcomes(backfill.id, ENDED_BADLY))
    if not changed:
        raise BackfillRefused("state", "nothing to retry: no date has failed or was cancelled")
    await uow.backfills.save(backfill.id, list(changed.values()))


def _stop(needs: BackfillNeeds, run: BackfillRun) -> NewCommand:
    outcome = needs.outcomes[run.position]
    assert outcome.partition is not None, "its instance is there"
    return NewCommand(
        CommandType.STOP,
        outcome.partition,
        f"backfill:{needs.backfill.id}:{run.position}:{run.tries}:stop",
        run.workflow_id,
        instance_id=outcome.instance_id,
        requested_by=REQUESTED_BY,
        detail={"reason": say(Code.REASON_BACKFILL_CANCELLED, backfill=needs.backfill.id)},
    )


async def _commit(uow: UnitOfWork) -> None:
    failpoints.hit("backfill.before_commit")
    await uow.commit()
    failpoints.hit("backfill.after_commit")
