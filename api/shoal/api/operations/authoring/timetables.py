"""Schedules with the days that their calendars leave out, for people."""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime

from shoal.api.schemas.schedules import ScheduleOut
from shoal.core.definition.fields import Priority
from shoal.core.runs.records import StoredSchedule
from shoal.core.schedule.fire_times import Timetable
from shoal.core.timing.cron.expression import InvalidCron
from shoal.sql import UnitOfWork
from shoal.sql.statements.rows import leave_out

FIRE_TIMES = 5
Days = Mapping[tuple[str, str], frozenset[date]]


async def days_of(uow: UnitOfWork, schedules: Iterable[StoredSchedule]) -> Days:
    """Return the days of the calendars that schedules name."""
    return await uow.calendars.days(
        {(one.project, one.calendar) for one in schedules if one.calendar}, leave_out
    )


def timetable_of(schedule: StoredSchedule, days: Days) -> Timetable | None:
    """Return the timetable; None if it cannot be read here, as it cannot fire then.

    Nor can it while its calendar cannot be read.
    """
    try:
        left_out = days[schedule.project, schedule.calendar] if schedule.calendar else ()
    except KeyError:
        return None
    try:
        return Timetable.of(schedule, left_out)
    except InvalidCron:
        return None


def schedule_out(schedule: StoredSchedule, days: Days) -> ScheduleOut:
    """Return a schedule with its next fire times."""
    timetable = timetable_of(schedule, days)
    enabled = schedule.enabled
    return ScheduleOut.of_record(
        schedule,
        parameters=dict(schedule.parameters),
        enabled=enabled,
        priority=None if schedule.priority is None else Priority(schedule.priority).name,
        on_gap=timetable.cron.on_gap if timetable else None,
        on_overlap=timetable.cron.on_overlap if timetable else None,
        start=schedule.starts_at,
        end=schedule.ends_at,
        exclude=list(schedule.exclude),
        missed=schedule.missed.value,
        next_fire_at=schedule.next_fire_at if enabled else None,
        next_fire_times=_fire_times(schedule, timetable) if enabled and timetable else [],
    )


def _fire_times(schedule: StoredSchedule, timetable: Timetable) -> list[datetime]:
    """The stored next fire time (maybe overdue) and those that follow it."""
    planned = schedule.next_fire_at
    if planned is None:
        return []
    if timetable.admits(planned):
        times = [planned, *timetable.upcoming(planned, FIRE_TIMES - 1)]
    else:  # its day is left out since
        times = timetable.upcoming(planned, FIRE_TIMES)
    return [moment.astimezone(UTC) for moment in times]
