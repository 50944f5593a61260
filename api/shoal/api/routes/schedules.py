"""Schedules: what they are, and when they will fire."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Annotated

from fastapi import Body, Path, Query

from shoal.api.access.audit import Recording
from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import NOTHING, needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.authoring.timetables import days_of, schedule_out, timetable_of
from shoal.api.routes.projects import ProjectName
from shoal.api.routes.runs.bulk import problem_of_item
from shoal.api.schemas.common import Page
from shoal.api.schemas.schedules import (
    MOST_SCHEDULES,
    BulkSchedule,
    BulkSchedulesIn,
    BulkSchedulesOut,
    FireTimeOut,
    PreviewIn,
    PreviewOut,
    ScheduleOut,
)
from shoal.api.services import StoreDep
from shoal.api.web.answers import by_id, legible, shown
from shoal.api.web.errors import FieldError, Forbidden, InvalidRequest
from shoal.api.web.paging import (
    MAX_ID,
    Cursor,
    Limit,
    decode_cursor,
    encode_cursor,
    filtered,
    page,
    part_of,
)
from shoal.api.web.problems import documented
from shoal.api.web.store import Store
from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import Permission
from shoal.core.errors import ShoalError
from shoal.core.schedule.fire_times import Timetable, instant
from shoal.core.schedule.preview import preview
from shoal.core.timing.cron import expression as cron
from shoal.core.timing.cron.expression import InvalidCron
from shoal.sql.errors import NotFound

router = strict_router("schedules")

ScheduleId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[7])]


@router.get("/schedules", summary="List all schedules")
@needs(Permission.PROJECT_READ)
async def list_schedules(
    store: StoreDep,
    caller: Calling,
    project: Annotated[str | None, Query(description="Only for this project.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ScheduleOut]:
    """The schedules of all published workflows, oldest first."""
    kind = filtered("schedules", project)
    after = decode_cursor(kind, cursor, int)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.schedules.list(
            project, after[0] if after else 0, limit + 1, visible=caller.visible
        )
        items, more = page(found, limit)
        days = await days_of(uow, items)
    return Page(
        items=shown("schedule", items, lambda item: schedule_out(item, days), by_id),
        next=encode_cursor(kind, items[-1].id) if more else None,
    )


@router.get(
    "/projects/{project}/workflows/{name}/schedules",
    summary="List the schedules of a workflow",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def list_workflow_schedules(
    store: StoreDep,
    project: ProjectName,
    name: Annotated[str, Path(max_length=100, examples=["daily"])],
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ScheduleOut]:
    """The timetables of a workflow and when they fire next; they change with the definition."""
    async with store.unit_of_work(read_only=True) as uow:
        await uow.workflows.get(project, name)
        found = await uow.schedules.of_workflow(project, name)
        items, following = part_of("schedules", found, lambda one: one.id, limit, cursor)
        days = await days_of(uow, items)
    return Page(
        items=shown("schedule", items, lambda item: schedule_out(item, days), by_id), next=following
    )


@router.get(
    "/schedules/{schedule_id}/preview",
    summary="Show when a schedule will fire",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ, large=True)
async def preview_schedule(
    store: StoreDep,
    schedule_id: ScheduleId,
    n: Annotated[int, Query(ge=1, le=500, description="How many lines.")] = 10,
) -> PreviewOut:
    """The next fire times, also if it is switched off.

    Each with what a clock change does to it; of each day that is left out the first one.
    """
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.schedules.get(schedule_id)
        days = await days_of(uow, [found])
    timetable = timetable_of(found, days)
    if timetable is None:
        unknown = "its time zone, its expression or its calendar is unknown"
        reason = f"cannot be read by this version: {unknown}"
        raise InvalidRequest([FieldError("schedule_id", reason)])
    return _preview(timetable, store.clock(), n)


@router.post(
    "/schedules/{schedule_id}/pause", summary="Pause a schedule", responses=documented(404)
)
@needs(Permission.RUN_OPERATE, audit="schedule.pause")
async def pause_schedule(store: StoreDep, schedule_id: ScheduleId) -> ScheduleOut:
    """It does not fire until it is resumed, even if a new version is published."""
    return await _changed(store, "pause", schedule_id)


@router.post(
    "/schedules/{schedule_id}/resume", summary="Resume a schedule", responses=documented(404)
)
@needs(Permission.RUN_OPERATE, audit="schedule.resume")
async def resume_schedule(store: StoreDep, schedule_id: ScheduleId) -> ScheduleOut:
    """It fires from now on, if its definition has it enabled; nothing is made up for."""
    return await _changed(store, "resume", schedule_id)


@router.post(
    "/bulk-schedules",
    summary="Pause or resume many schedules",
    responses=documented(400, 413, 415),
)
@needs(Permission.RUN_OPERATE, audit="schedule.pause")
async def post_bulk_schedules(
    store: StoreDep,
    caller: Calling,
    body: Annotated[BulkSchedulesIn, Body()],
    record: Recording,
    project: Annotated[str | None, Query(description="All of this project.")] = None,
    workflow: Annotated[
        str | None, Query(description="All of this workflow; with `project`.")
    ] = None,
    dry_run: Annotated[bool, Query(description="Only say which it would be.")] = False,
) -> BulkSchedulesOut:
    """Of each of the ids, 500 at most, or of all of a project or a workflow.

    Each is authorised by itself, and has a result of its own; one that is paused already, or is
    not, stays as it is.
    """
    _check_bulk(body, project, workflow)
    is_more = False
    if body.ids is not None:
        ids = list(dict.fromkeys(body.ids))
    else:
        async with store.unit_of_work(read_only=True) as uow:
            found = await uow.schedules.list(
                project, 0, MOST_SCHEDULES + 1, visible=caller.visible, workflow=workflow
            )
        ids, is_more = page([one.id for one in found], MOST_SCHEDULES)
    await caller.look_up(Thing.SCHEDULE, ids)
    items = []
    for one in ids:
        entry = record.about_one(f"schedule.{body.type}", Thing.SCHEDULE, one)
        try:
            await caller.require(Permission.RUN_OPERATE, Thing.SCHEDULE, one)
            stored = await _changed(store.recording(entry), body.type, one, dry_run=dry_run)
            items.append(BulkSchedule(id=one, schedule=stored, problem=None))
        except ShoalError as error:
            if error.retriable:
                raise
            if isinstance(error, Forbidden | NotFound):
                entry.refused(Permission.RUN_OPERATE)
            items.append(BulkSchedule(id=one, schedule=None, problem=problem_of_item(error)))
    return BulkSchedulesOut(is_more=is_more, items=items)


async def _changed(
    store: Store, how: str, schedule_id: int, *, dry_run: bool = False
) -> ScheduleOut:
    async with store.unit_of_work(read_only=dry_run) as uow:
        if dry_run:
            found = await uow.schedules.get(schedule_id)
        elif how == "pause":
            found = await uow.schedules.pause(schedule_id, store.clock())
        else:
            found = await uow.schedules.unpause(schedule_id, store.clock())
        days = await days_of(uow, [found])
        if not dry_run:
            await uow.commit()
    with legible("schedule", schedule_id):
        return schedule_out(found, days)


def _check_bulk(body: BulkSchedulesIn, project: str | None, workflow: str | None) -> None:
    """Raise InvalidRequest for what does not go together."""
    errors = []
    if workflow is not None and project is None:
        errors.append(FieldError("project", "is required with workflow"))
    if body.ids is not None and project is not None:
        errors.append(FieldError("ids", "do not go with project: give the one or the other"))
    if body.ids is None and project is None:
        errors.append(FieldError("ids", "are required without project: nothing means everything"))
    if errors:
        raise InvalidRequest(errors)


@router.post(
    "/schedules/preview",
    summary="Show when a schedule would fire",
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.PROJECT_READ, audit=NOTHING, large=True)
async def preview_expression(store: StoreDep, body: Annotated[PreviewIn, Body()]) -> PreviewOut:
    """As for a schedule that exists; nothing is stored."""
    try:
        parsed = cron.parse(
            body.cron, body.timezone, on_gap=body.on_gap, on_overlap=body.on_overlap
        )
    except InvalidCron as error:
        raise InvalidRequest([FieldError("cron", str(error))]) from None
    days: Iterable[date] = ()
    if body.calendar is not None:
        async with store.unit_of_work(read_only=True) as uow:
            found = await uow.calendars.get(body.project or "default", body.calendar)
        days = found.days
    start, end = instant(body.start, body.timezone), instant(body.end, body.timezone)
    timetable = Timetable(parsed, start, end, frozenset(body.exclude).union(days))
    return _preview(timetable, store.clock(), body.n)


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
