"""The grid of a workflow, runs by tasks, and the days of its calendar."""

from datetime import date, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from fastapi import Query, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.views.calendar import page_of_days
from shoal.api.routes.projects import ProjectName
from shoal.api.routes.runs.filters import from_cursor, read_order, to_cursor
from shoal.api.routes.workflows.published import WorkflowName
from shoal.api.schemas.common import Page
from shoal.api.schemas.views.grid import DayOut, GridLegend, GridOut, GridRun, GridTask
from shoal.api.services import StoreDep
from shoal.api.web.answers import answer, by_id, shown
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, bad_cursor, decode_cursor, encode_cursor
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import Day, Zone
from shoal.core.runs.cells import CELLS, FORCED, NO_TASK, UNKNOWN
from shoal.core.runs.filters import InstanceFilter
from shoal.core.runs.states import TaskState

router = strict_router("workflows")

MOST_CELLS = 200_000  # of one page
MOST_DAYS = 400
_ONE_DAY = timedelta(days=1)
_LEGEND = [
    *(GridLegend(cell=code, state=state, means=state.value) for state, code in CELLS.items()),
    GridLegend(cell=FORCED, state=TaskState.SUCCEEDED, means="SUCCEEDED, by request"),
    GridLegend(cell=NO_TASK, state=None, means="no such task in this run, or it has not begun"),
    GridLegend(cell=UNKNOWN, state=None, means="a state that this version does not know"),
]


@router.get(
    "/projects/{project}/workflows/{name}/grid",
    summary="Show the runs of a workflow with the states of their tasks",
    response_model=GridOut,
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_workflow_grid(
    store: StoreDep,
    project: ProjectName,
    name: WorkflowName,
    sort: Annotated[
        Literal["-logical_time", "-created_at"],
        Query(description="The latest logical time first, or the latest start."),
    ] = "-logical_time",
    limit: Annotated[
        int, Query(ge=1, le=100, description="How many runs, at most.", examples=[50])
    ] = 50,
    cursor: Cursor = None,
) -> Response:
    """Runs by tasks: one character for the newest attempt of each task, which `legend` explains.

    `tasks` are those of the newest version and then those that only the runs of this page have, so
    the place of a column belongs to its page. A page has 200,000 cells at most: of workflows with
    more than 2,000 tasks it has fewer runs. `next` leads to the runs before.
    """
    wanted = InstanceFilter(project=project, workflow=name)
    order = read_order(sort, wanted)
    after = from_cursor(wanted, order, cursor)
    async with store.unit_of_work(read_only=True) as uow:
        workflow = await uow.workflows.get(project, name)
        spec = await uow.workflows.spec(workflow.id, workflow.version)
        most = max(1, min(limit, MOST_CELLS // len(spec.tasks)))
        runs, position = await uow.instances.search(wanted, order, after, most)
        cells = await uow.grid.cells([one.id for one in runs], [one.name for one in spec.tasks])

    def made() -> GridOut:
        types = {one.name: one.type for one in spec.tasks}
        return GridOut(
            project=project,
            workflow=name,
            tasks=[
                GridTask(name=one, type=types.get(one), is_current=one in types)
                for one in cells.tasks
            ],
            runs=shown(
                "workflow instance",
                runs,
                lambda one: GridRun.model_validate({**vars(one), "cells": cells.runs[one.id]}),
                by_id,
            ),
            legend=_LEGEND,
            next=to_cursor(wanted, order, position),
        )

    return await answer(made, len(cells.tasks))


@router.get(
    "/projects/{project}/workflows/{name}/days",
    summary="List the days of a workflow's calendar",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def list_workflow_days(
    store: StoreDep,
    project: ProjectName,
    name: WorkflowName,
    first: Annotated[
        Day | None,
        Query(description="The first day; without it so many days that the last is today."),
    ] = None,
    limit: Annotated[
        int, Query(ge=1, le=MOST_DAYS, description="How many days, at most.", examples=[366])
    ] = 366,
    timezone: Annotated[
        Zone | None,
        Query(
            description="Time zone of the days; default: the workflow's.",
            examples=["Europe/Berlin"],
        ),
    ] = None,
    cursor: Cursor = None,
) -> Page[DayOut]:
    """Day by day: how the newest run for each logical time went, and how many fires have no run.

    `limit` days from `first` on. One answer looks at 20,000 runs and 10,000 fire times at most;
    `next` leads to the days that are left of these.
    """
    position = decode_cursor("days", cursor, str, str)
    now = store.clock()
    async with store.unit_of_work(read_only=True) as uow:
        workflow = await uow.workflows.get(project, name)
        zone = ZoneInfo(
            timezone or (await uow.workflows.spec(workflow.id, workflow.version)).timezone
        )
        if position is None:
            today = now.astimezone(zone).date()
            start = today - (limit - 1) * _ONE_DAY if first is None else first
            last = _checked("first", start, start) + (limit - 1) * _ONE_DAY
        else:
            start, last = _interval(*position)
        found = await page_of_days(uow, workflow, start, last, zone, now)
    return Page(
        items=[DayOut.model_validate(one) for one in found.days],
        next=encode_cursor("days", found.next.isoformat(), last.isoformat())
        if found.next
        else None,
    )


def _checked(field: str, day: date, last: date) -> date:
    """Return a day if the instants of all days from it on exist. Raises InvalidRequest."""
    if not date(2, 1, 1) <= day <= last <= date(9990, 1, 1):
        raise InvalidRequest([FieldError(field, "must lie in the years 2 to 9990")])
    return day


def _interval(first: str, last: str) -> tuple[date, date]:
    """Return the days in a cursor. Raises InvalidRequest."""
    try:
        start, end = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError:
        raise bad_cursor() from None
    if not timedelta(0) <= end - start < MOST_DAYS * _ONE_DAY:
        raise bad_cursor()
    return _checked("cursor", start, end), end
