"""Calendars: days of a project on which its schedules do not fire."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.projects import NewName, ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.schedules import CalendarIn, CalendarOut
from shoal.api.services import StoreDep
from shoal.api.web.answers import by_name, shown
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.sql import UnitOfWork

router = strict_router("calendars")

CalendarName = Annotated[str, Path(max_length=100, examples=["holidays"])]


@router.get("/projects/{project}/calendars", summary="List calendars", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_calendars(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[CalendarOut]:
    """The calendars of a project by name."""
    after = decode_cursor("calendars", cursor, str)
    async with store.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
        position = (project, after[0]) if after else None
        found = await uow.calendars.list(project, position, limit + 1)
    items, more = page(found, limit)
    return Page(
        items=shown("calendar", items, CalendarOut.model_validate, by_name),
        next=encode_cursor("calendars", items[-1].name) if more else None,
    )


@router.get(
    "/projects/{project}/calendars/{name}", summary="Show a calendar", responses=documented(404)
)
@needs(Permission.PROJECT_READ)
async def get_calendar(
    store: StoreDep, project: ProjectName, name: CalendarName, response: Response
) -> CalendarOut:
    """One calendar with its days."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, await _stored(uow, project, name))


async def _stored(uow: UnitOfWork, project: str, name: str) -> CalendarOut:
    return CalendarOut.model_validate(await uow.calendars.get(project, name))


@router.put(
    "/projects/{project}/calendars/{name}",
    summary="Make or change a calendar",
    responses={
        201: {"model": CalendarOut, "description": "It is new."},
        **documented(400, 404, 413, 415),
    },
)
@needs(Permission.PROJECT_EDIT, audit="calendar.set")
async def put_calendar(
    store: StoreDep,
    project: ProjectName,
    name: NewName,
    body: Annotated[CalendarIn, Body()],
    condition: Condition,
) -> CalendarOut:
    """Replaces its days.

    A fire time that is planned already does not fire if its day is left out now.
    """
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name), body)
        stored, is_new = await uow.calendars.put(
            project, name, body.days, body.description, store.clock()
        )
        await uow.commit()
    return condition.answer(CalendarOut.model_validate(stored), is_new=is_new)


@router.delete(
    "/projects/{project}/calendars/{name}",
    summary="Delete a calendar",
    status_code=204,
    responses=documented(404, 409),
)
@needs(Permission.PROJECT_EDIT, audit="calendar.delete")
async def delete_calendar(
    store: StoreDep, project: ProjectName, name: CalendarName, condition: Condition
) -> None:
    """Refused while a schedule names it."""
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name))
        await uow.calendars.delete(project, name)
        await uow.commit()
