"""Fire the schedules of this master's partitions.

The fire time comes from the schedule, never from the clock: a late or repeated look finds the
same instants, and the command's idempotency key (schedule, fire time) makes each one instance.
After a pause of the whole cluster only the newest missed fire time is made up for.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime

import structlog

from shoal.coordination import partition_of
from shoal.core import cron, failpoints
from shoal.core.commands import CommandType, NewCommand
from shoal.core.cron_fields import InvalidCron
from shoal.core.errors import ShoalError
from shoal.core.records import Schedule
from shoal.master.engine import Clock, Engine
from shoal.master.errors import NotOwner
from shoal.sql import Database
from shoal.sql.errors import Fenced

log = structlog.get_logger()

_BATCH = 500


class Scheduler:
    """Turns due schedules into START commands."""

    def __init__(
        self,
        database: Database,
        engine: Engine,
        clock: Clock,
        partitions: int,
        interval_s: float,
        ring: Callable[[Iterable[int]], None],
    ) -> None:
        self._database = database
        self._engine = engine
        self._clock = clock
        self._partitions = partitions
        self._interval_s = interval_s  # new schedules are noticed at least this soon
        self._ring = ring
        self._changed = asyncio.Event()

    def look_soon(self) -> None:
        """A schedule or the set of partitions may have changed."""
        self._changed.set()

    async def work(self) -> None:
        """Run for ever."""
        while True:
            self._changed.clear()
            try:
                wait_s = await self._fire_due()
            except ShoalError as error:
                if not error.retriable and not isinstance(error, (Fenced, NotOwner)):
                    raise
                log.warning("schedules not read; trying again", error=str(error))
                wait_s = self._interval_s
            # Not wait_for: before Python 3.12 it swallows a cancellation that meets the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()

    async def _fire_due(self) -> float:
        """Fire what is due; return the seconds until the next look."""
        partitions = set(self._engine.epochs)
        if not partitions:
            return self._interval_s
        now = self._clock()
        async with self._database.unit_of_work(read_only=True) as uow:
            due = await uow.schedules.due(partitions, now, _BATCH)
            next_due = await uow.schedules.next_due(partitions)
        fired = 0
        for schedule in due:
            try:
                await self._fire(schedule, now)
                fired += 1
            except InvalidCron as error:
                # Published by another version, or with other time zones installed.
                log.error("schedule cannot fire", schedule=schedule.id, error=str(error))
        if due:
            return 0.0 if fired else self._interval_s
        if next_due is None:
            return self._interval_s
        return min(self._interval_s, max(0.0, (next_due - now).total_seconds()))

    async def _fire(self, schedule: Schedule, now: datetime) -> None:
        assert schedule.next_fire_at is not None
        timetable = cron.parse(schedule.cron, schedule.timezone)
        fire_time = newest_missed(timetable, schedule.next_fire_at, now)
        following = timetable.next(fire_time)
        key = f"schedule:{schedule.id}:{fire_time.astimezone(UTC).isoformat()}"
        command = NewCommand(
            CommandType.START,
            partition_of(key, self._partitions),
            key,
            schedule.workflow_id,
            parameters=dict(schedule.parameters),
            logical_time=fire_time,
            timezone=schedule.timezone,
            schedule_id=schedule.id,
            requested_by="schedule",
        )
        async with self._database.unit_of_work() as uow:
            await uow.fence({schedule.partition: self._engine.epoch_of(schedule.partition)})
            if await uow.schedules.advance(schedule.id, schedule.next_fire_at, following):
                await uow.commands.add(command, now)
            failpoints.hit("fire.before_commit")
            await uow.commit()
        failpoints.hit("fire.after_commit")
        self._ring([command.partition])
        log.info(
            "schedule fired",
            schedule=schedule.id,
            workflow=schedule.workflow,
            fire_time=fire_time.isoformat(),
        )


def newest_missed(timetable: cron.Cron, planned: datetime, now: datetime) -> datetime:
    """Return the newest fire time not after ``now``, at least ``planned``."""
    newest = timetable.previous(now)
    if timetable.matches(now):
        newest = now.replace(microsecond=0)
    return planned if newest is None or newest < planned else newest
