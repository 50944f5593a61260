"""Schedules: what they are, and when they will fire."""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Annotated

from fastapi import Body, Path, Query

from shoal.api.access.callers import Calling
from shoal.api.access.guard import NOTHING, needs
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.schedules import FireTimeOut, PreviewIn, PreviewOut, ScheduleOut
from shoal.api.services import Shoal
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.legible import by_id, shown
from shoal.api.web.paging import MAX_ID, Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.api.web.route import strict_router
from shoal.core.access.permissions import Permission
from shoal.core.definition.priority import Priority
from shoal.core.runs.records import Schedule
from shoal.core.schedule.fire_times import Timetable, instant
from shoal.core.schedule.preview import preview
from shoal.core.timing.cron import expression as cron
from shoal.core.timing.cron.expression import InvalidCron
from shoal.sql import UnitOfWork
from shoal.sql.statements.reading import leave_out

router = strict_router("schedules")

FIRE_TIMES = 5
ScheduleId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[7])]
_Days = Mapping[tuple[str, str], frozenset[date]]


@router.get("/schedules", summary="List all schedules")
@needs(Permission.PROJECT_READ)
async def list_all_schedules(
    shoal: Shoal,
    caller: Calling,
    project: Annotated[str | None, Query(description="Only those of this project.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ScheduleOut]:
    """The schedules of all published workflows, oldest first."""
    after = decode_cursor("schedules", cursor, int)
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.schedules.list(
            project, after[0] if after else 0, limit + 1, visible=caller.visible
        )
        items, more = page(found, limit)
        days = await _days(uow, items)
    return Page(
        items=shown("schedule", items, lambda item: _schedule(item, days), by_id),
        next=encode_cursor("schedules", items[-1].id) if more else None,
    )


@router.get(
    "/projects/{project}/workflows/{name}/schedules",
    summary="List the schedules of a workflow",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def list_schedules(
    shoal: Shoal,
    project: ProjectName,
    name: Annotated[str, Path(max_length=100, examples=["daily"])],
) -> Page[ScheduleOut]:
    """The timetables of a workflow and when they fire next; they change with the definition."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        await uow.workflows.get(project, name)
        found = await uow.schedules.of_workflow(project, name)
        days = await _days(uow, found)
    return Page(items=shown("schedule", found, lambda item: _schedule(item, days), by_id))


@router.get(
    "/schedules/{schedule_id}/preview",
    summary="Show when a schedule will fire",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def preview_schedule(
    shoal: Shoal,
    schedule_id: ScheduleId,
    n: Annotated[int, Query(ge=1, le=500, description="How many lines.")] = 10,
) -> PreviewOut:
    """The next fire times, also if it is switched off.

    Each with what a clock change does to it; of each day that is left out the first one.
    """
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.schedules.get(schedule_id)
        days = await _days(uow, [found])
    timetable = _timetable(found, days)
    if timetable is None:
        unknown = "its time zone, its expression or its calendar is unknown"
        reason = f"cannot be read by this version: {unknown}"
        raise InvalidRequest([FieldError("schedule_id", reason)])
    return _preview(timetable, shoal.clock(), n)


@router.post(
    "/schedules/preview",
    summary="Show when a schedule would fire",
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.PROJECT_READ, audit=NOTHING)
async def preview_expression(shoal: Shoal, body: Annotated[PreviewIn, Body()]) -> PreviewOut:
    """As for a schedule that exists; nothing is stored."""
    try:
        parsed = cron.parse(
            body.cron, body.timezone, on_gap=body.on_gap, on_overlap=body.on_overlap
        )
    except InvalidCron as error:
        raise InvalidRequest([FieldError("cron", str(error))]) from None
    days: Iterable[date] = ()
    if body.calendar is not None:
        async with shoal.database.unit_of_work(read_only=True) as uow:
            found = await uow.calendars.get(body.project or "default", body.calendar)
        days = found.days
    start, end = instant(body.start, body.timezone), instant(body.end, body.timezone)
    timetable = Timetable(parsed, start, end, frozenset(body.exclude).union(days))
    return _preview(timetable, shoal.clock(), body.n)


async def _days(uow: UnitOfWork, schedules: Iterable[Schedule]) -> _Days:
    return await uow.calendars.days(
        {(one.project, one.calendar) for one in schedules if one.calendar}, leave_out
    )


def _timetable(schedule: Schedule, days: _Days) -> Timetable | None:
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


def _preview(timetable: Timetable, now: datetime, n: int) -> PreviewOut:
    lines = preview(timetable, now, n)
    return PreviewOut(
        cron=timetable.cron.expression,
        timezone=timetable.cron.timezone,
        on_gap=timetable.cron.on_gap,
        on_overlap=timetable.cron.on_overlap,
        fire_times=[
            FireTimeOut(
                local=line.moment,
                utc=line.moment.astimezone(UTC),
                fires=line.fires,
                marks=[mark.value for mark in line.marks],
            )
            for line in lines
        ],
    )


def _schedule(schedule: Schedule, days: _Days) -> ScheduleOut:
    timetable = _timetable(schedule, days)
    enabled = schedule.enabled
    return ScheduleOut(
        id=schedule.id,
        project=schedule.project,
        workflow=schedule.workflow,
        cron=schedule.cron,
        timezone=schedule.timezone,
        parameters=dict(schedule.parameters),
        enabled=enabled,
        priority=None if schedule.priority is None else Priority(schedule.priority).name,
        on_gap=timetable.cron.on_gap if timetable else None,
        on_overlap=timetable.cron.on_overlap if timetable else None,
        start=schedule.starts_at,
        end=schedule.ends_at,
        exclude=list(schedule.exclude),
        calendar=schedule.calendar,
        missed=schedule.missed.value,
        missed_window=schedule.missed_window,
        next_fire_at=schedule.next_fire_at if enabled else None,
        next_fire_times=_fire_times(schedule, timetable) if enabled and timetable else [],
    )


def _fire_times(schedule: Schedule, timetable: Timetable) -> list[datetime]:
    """The stored next fire time (maybe overdue) and those that follow it."""
    planned = schedule.next_fire_at
    if planned is None:
        return []
    if timetable.admits(planned):
        times = [planned, *timetable.upcoming(planned, FIRE_TIMES - 1)]
    else:  # its day is left out since
        times = timetable.upcoming(planned, FIRE_TIMES)
    return [moment.astimezone(UTC) for moment in times]
