"""Fire the schedules of this master's partitions.

The fire time comes from the schedule, never from the clock: a late or repeated poll finds the
same instants, and the command's idempotency key (schedule, fire time) makes each one instance.
Many schedules fire in one transaction, fenced for all their partitions; one that cannot fire
is quarantined and holds up no other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

import structlog

from shoal.coordination import partition_of
from shoal.core.runs.commands import CommandType, NewCommand
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.records import StoredSchedule
from shoal.core.schedule.fire_times import DueFires, Timetable, due
from shoal.master.errors import PartitionNotOwned
from shoal.master.services.service import MasterContext, PeriodicService, is_passing
from shoal.runtime import failpoints
from shoal.sql import UnitOfWork
from shoal.sql.errors import Fenced, UnreadableRow

log = structlog.get_logger()

_SCHEDULES_PER_POLL = 5_000  # the next poll takes the rest
_SCHEDULES_AT_ONCE = 500  # in one transaction
_FIRES_AT_ONCE = 2_000  # in one transaction, plus those of the last schedule in it
# Missed fire times may be many: a poll makes up for so many of all schedules and of one.
_FIRES_PER_POLL = 20_000
_FIRES_OF_ONE = 1_000


@dataclass(frozen=True)
class _Firing:
    """A schedule and what fires of it now."""

    schedule: StoredSchedule
    planned: datetime
    due: DueFires


@dataclass
class _Batch:
    """What goes into one transaction."""

    firings: list[_Firing] = field(default_factory=list)
    taken: int = 0  # schedules, also those that do not fire
    fires: int = 0

    def is_behind(self, now: datetime) -> bool:
        """Whether a schedule has more to fire than this."""
        return any(
            one.due.next is not None and one.due.next.astimezone(UTC) <= now for one in self.firings
        )


class Scheduler(PeriodicService):
    """Turns due schedules into START commands."""

    name = "schedules"

    def __init__(self, context: MasterContext) -> None:
        self._interval_s = context.settings.scan_interval_s  # new schedules are noticed that soon
        super().__init__(self._interval_s)
        self._database, self._engine = context.database, context.engine
        self._clock, self._notify_owners = context.clock, context.notify_owners
        self._partitions = context.partitions
        self._polled: Mapping[int, int] = {}  # partitions of the last poll, with their epochs

    def notify(self, partition: int) -> None:
        """Poll soon if the partition is new here.

        Notifications are about commands, not schedules: what is due of those that were read before
        is known.
        """
        if self._polled.get(partition) != self._engine.epochs.get(partition, -1):
            self._wakeup.notify()

    async def poll(self, is_regular: bool) -> None:
        self._wakeup.due_in(await self.fire_due())

    async def fire_due(self) -> float:
        """Fire what is due; return the seconds until the next poll, 0 if there is more now."""
        partitions = dict(self._engine.epochs)
        if not partitions:
            return self._interval_s
        polled_at = self._clock()
        most = _SCHEDULES_PER_POLL + self._engine.quarantine.held(ItemKind.SCHEDULE)
        async with self._database.unit_of_work(read_only=True) as uow:
            next_due = await uow.schedules.next_due(partitions)
            if is_due := next_due is not None and next_due <= polled_at:
                overdue = await uow.schedules.due(partitions, polled_at, most, self._quarantine_row)
        if is_due:
            # Those in quarantine are tried seldom, despite notifications.
            holds = self._engine.quarantine.holds
            ready = [one for one in overdue if not holds(ItemKind.SCHEDULE, one.id)]
            if await self._fire_all(ready) or (ready and len(overdue) == _SCHEDULES_PER_POLL):
                return 0.0
            async with self._database.unit_of_work(read_only=True) as uow:
                # What is still due could not fire, and waits for the next regular poll.
                next_due = await uow.schedules.next_due(partitions, after=polled_at)
        self._polled = partitions
        if next_due is None:
            return self._interval_s
        return min(self._interval_s, max(0.0, (next_due - self._clock()).total_seconds()))

    def _quarantine(self, schedule: StoredSchedule, error: Exception) -> None:
        """Leave a schedule that cannot fire alone, for a while."""
        self._engine.quarantine.put(ItemKind.SCHEDULE, schedule.id, schedule.partition, error)

    def _quarantine_row(self, error: UnreadableRow) -> None:
        if not self._engine.quarantine.holds(ItemKind.SCHEDULE, error.key):
            self._engine.quarantine.put(ItemKind.SCHEDULE, error.key, error.partition, error)

    async def _fire_all(self, overdue: Sequence[StoredSchedule]) -> bool:
        """Fire schedules, a few hundred at a time; return whether they have more to fire now."""
        share = min(_FIRES_OF_ONE, max(1, _FIRES_PER_POLL // max(1, len(overdue))))
        is_more = False
        left = list(overdue)
        while left := [one for one in left if one.partition in self._engine.epochs]:
            chunk, now = left[:_SCHEDULES_AT_ONCE], self._clock()
            try:
                batch = await self._fire(chunk, now, share)
            except Fenced as error:
                lost = sorted(error.partitions)
                log.warning("schedules belong to another master now", partitions=lost)
                left = [one for one in left if one.partition not in error.partitions]
            except Exception as error:
                if is_passing(error):
                    raise
                is_more = await self._fire_singly(chunk, now, share) or is_more
                left = left[len(chunk) :]
            else:
                is_more = is_more or batch.is_behind(now)
                left = left[batch.taken :]
        return is_more

    async def _fire_singly(
        self, chunk: Sequence[StoredSchedule], now: datetime, share: int
    ) -> bool:
        """Fire one by one, since the database refused something in all of them together."""
        is_more = False
        for schedule in chunk:
            try:
                is_more = (await self._fire([schedule], now, share)).is_behind(now) or is_more
            except (Fenced, PartitionNotOwned):
                continue  # its partition has a new owner, which fires it
            except Exception as error:
                if is_passing(error):
                    raise
                self._quarantine(schedule, error)
        return is_more

    async def _fire(self, chunk: Sequence[StoredSchedule], now: datetime, share: int) -> _Batch:
        """Fire the first schedules of ``chunk``, at least one, in one transaction."""
        epochs = {one.partition: self._engine.epoch_of(one.partition) for one in chunk}
        async with self._database.unit_of_work() as uow:
            await uow.fence(epochs)
            batch = await self._due(uow, chunk, now, share)
            await uow.schedules.advance_many(
                [(one.schedule.id, one.planned, one.due.next) for one in batch.firings]
            )
            skipped = [(one.schedule, one.planned) for one in batch.firings if one.due.passed_over]
            await uow.schedules.note_skipped(skipped, now)
            commands = [command for one in batch.firings for command in self._commands(one)]
            await uow.commands.send_many(commands, now)
            failpoints.hit("fire.before_commit")
            await uow.commit()
        failpoints.hit("fire.after_commit")
        self._notify_owners({command.partition for command in commands})
        for one in batch.firings:
            self._engine.quarantine.passed(ItemKind.SCHEDULE, one.schedule.id)
            _log_fired(one)
        return batch

    async def _due(
        self, uow: UnitOfWork, chunk: Sequence[StoredSchedule], now: datetime, share: int
    ) -> _Batch:
        """Return what fires of the first schedules; they cannot change until the commit."""
        present = await uow.schedules.hold([one.id for one in chunk], self._quarantine_row)
        wanted = {(one.project, one.calendar) for one in present.values() if one.calendar}
        unread: list[UnreadableRow] = []
        calendars = await uow.calendars.days(wanted, unread.append)
        batch = _Batch()
        for one in chunk:
            if batch.fires >= _FIRES_AT_ONCE:
                break
            batch.taken += 1
            schedule = present.get(one.id)
            if schedule is None:
                continue
            named = (schedule.project, schedule.calendar or "")
            if unread and schedule.calendar and named not in calendars:
                self._quarantine(schedule, unread[0])
                continue
            days = calendars.get(named, frozenset())
            firing = self._firing(schedule, days, now, share)
            if firing is not None:
                batch.firings.append(firing)
                batch.fires += len(firing.due.fires)
        return batch

    def _firing(
        self, schedule: StoredSchedule, days: frozenset[date], now: datetime, share: int
    ) -> _Firing | None:
        """Return what fires of a schedule; None if it is not due or cannot fire."""
        planned = schedule.next_fire_at
        if planned is None or planned > now:
            return None
        window = schedule.missed_window
        oldest = None if window is None else timedelta(seconds=window)
        try:
            timetable = Timetable.of(schedule, days)
            found = due(timetable, planned, now, schedule.missed, oldest, share)
        except Exception as error:  # noqa: BLE001 - of another version or with other time zones
            self._quarantine(schedule, error)
            return None
        return _Firing(schedule, planned, found)

    def _commands(self, firing: _Firing) -> Iterator[NewCommand]:
        schedule = firing.schedule
        for fire_time in firing.due.fires:
            key = f"schedule:{schedule.id}:{fire_time.astimezone(UTC).isoformat()}"
            yield NewCommand(
                CommandType.START,
                partition_of(key, self._partitions),
                key,
                schedule.workflow_id,
                parameters=dict(schedule.parameters),
                logical_time=fire_time,
                timezone=schedule.timezone,
                priority=schedule.priority,
                schedule_id=schedule.id,
                requested_by="schedule",
            )


def _log_fired(firing: _Firing) -> None:
    schedule, fires = firing.schedule, firing.due.fires
    fields = {"schedule": schedule.id, "workflow": schedule.workflow}
    if firing.due.passed_over:
        log.warning(
            "fire times were missed and left out",
            **fields,
            planned=firing.planned.isoformat(),
            missed=schedule.missed,
        )
    if fires:
        log.info("schedule fired", **fields, fire_time=fires[0].isoformat(), fires=len(fires))
