"""Totals, workflows and tasks in a window, beside the window before."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, TypeVar

from fastapi import Query

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.insight import views
from shoal.api.operations.insight.day_results import seen
from shoal.api.routes.insight.window import Windowed, place_page
from shoal.api.schemas.common import Answer
from shoal.api.schemas.insight.trends import (
    DayTotalsOut,
    RunDayOut,
    SummaryOut,
    TaskDayOut,
    TaskTrendOut,
    TaskTrendsPage,
    WorkflowTrendOut,
    WorkflowTrendsPage,
)
from shoal.api.services import DayResultsDep, StoreDep
from shoal.api.web.answers import legible, shown
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit
from shoal.core.access.permissions import Permission
from shoal.core.insight.days import RunDay, TaskDay
from shoal.core.insight.trends import TaskTrend, WorkflowSort, WorkflowTrend

D = TypeVar("D", bound=Answer)

router = strict_router("insight")


@router.get("/insight/summary", summary="Add up what has run")
@needs(Permission.PROJECT_READ, large=True)
async def get_insight_summary(
    store: StoreDep, day_results: DayResultsDep, caller: Calling, wanted: Windowed
) -> SummaryOut:
    """Runs and attempts of all workflows that the caller sees, by day and in all.

    The preceding window of the same length is included. A day has what ended on it, UTC.
    """
    async with store.unit_of_work(read_only=True) as uow:
        days = await wanted.days(uow, "workflow_days")
        found = views.NO_SUMMARY
        if days.window is not None:
            which = await seen(uow, caller.visible, wanted.project, wanted.workflow)
            with legible("roll-up", "workflow_days"):
                found = await views.summary(uow, day_results, days.window, which)
    return SummaryOut.model_validate(
        {
            **days.shown(found.there),
            "total": found.total,
            "before": found.before,
            "daily": [DayTotalsOut.of_record(one, day=day) for day, one in found.daily.items()],
        }
    )


@router.get("/insight/workflows", summary="List how workflows have changed")
@needs(Permission.PROJECT_READ, large=True)
async def list_insight_workflows(
    store: StoreDep,
    day_results: DayResultsDep,
    caller: Calling,
    wanted: Windowed,
    sort: Annotated[
        WorkflowSort,
        Query(
            description="What comes first: whose median duration has grown by most (`slower`), "
            "whose runs and attempts wait longest on average (`waits`), that has most failed runs "
            "(`failures`), most late ones (`late`), or had most seconds of slots (`cost`)."
        ),
    ] = WorkflowSort.SLOWER,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> WorkflowTrendsPage:
    """Workflows with runs that ended in the window or the one before, side by side.

    Counts, means and highest values are exact. Percentiles over several days are means of the
    days' percentiles, weighted by how many values each day had.
    """
    async with store.unit_of_work(read_only=True) as uow:
        days = await wanted.days(uow, "workflow_days")
        found = views.NO_WORKFLOWS
        if days.window is not None:
            which = await seen(uow, caller.visible, wanted.project, wanted.workflow)
            with legible("roll-up", "workflow_days"):
                found = await views.workflows(uow, day_results, days.window, which, sort)
        filters = (caller.visible and sorted(caller.visible), vars(wanted), sort, days.window)
        some, next_ = place_page("insight workflows", filters, found.order, limit, cursor)
        trends = []
        if days.window is not None:
            trends = await views.trends(uow, day_results, days.window, found, some)
        predictions = await views.predictions(uow, some)
    return WorkflowTrendsPage(
        **days.shown(found.there),
        items=shown(
            "roll-up",
            trends,
            lambda one: _workflow(one, predictions.get((one.project, one.workflow))),
            lambda one: f"{one.project}/{one.workflow}",
        ),
        next=next_,
    )


@router.get("/insight/tasks", summary="List how the tasks of a workflow have changed")
@needs(Permission.PROJECT_READ, large=True)
async def list_insight_tasks(
    store: StoreDep, caller: Calling, wanted: Windowed, limit: Limit = 50, cursor: Cursor = None
) -> TaskTrendsPage:
    """Tasks of one workflow, which `project` and `workflow` name, in the window and the one before.

    What was busy for longest in the window comes first. A workflow that the caller may not see has
    no tasks, as one that there is not.
    """
    if wanted.project is None or wanted.workflow is None:
        missing = "project" if wanted.project is None else "workflow"
        raise InvalidRequest([FieldError(missing, "is needed: tasks are of one workflow")])
    async with store.unit_of_work(read_only=True) as uow:
        days = await wanted.days(uow, "task_days")
        found = views.NO_TASKS
        if days.window is not None:
            with legible("roll-up", f"{wanted.project}/{wanted.workflow}"):
                found = await views.tasks(
                    uow, days.window, caller.visible, wanted.project, wanted.workflow
                )
    some, next_ = place_page(
        "insight tasks", (vars(wanted), days.window), found.trends, limit, cursor
    )
    return TaskTrendsPage(
        **days.shown(found.there),
        project=wanted.project,
        workflow=wanted.workflow,
        items=shown("roll-up", some, lambda one: _task(one, found), lambda one: one.task),
        next=next_,
    )


def _workflow(trend: WorkflowTrend, prediction: Mapping[str, Any] | None) -> WorkflowTrendOut:
    daily = [_day(RunDayOut, day, one) for day, one in sorted(trend.daily.items())]
    return WorkflowTrendOut.of_record(trend, prediction=prediction, daily=daily)


def _task(trend: TaskTrend, found: views.WindowTasks) -> TaskTrendOut:
    return TaskTrendOut.of_record(
        trend,
        critical=found.critical.get(trend.task),
        flapping=found.flapping.get(trend.task),
        daily=[_day(TaskDayOut, day, one) for day, one in sorted(trend.daily.items())],
    )


def _day(kind: type[D], day: date, one: RunDay | TaskDay) -> D:
    percentiles = {"duration_p50_s": one.duration_p50, "duration_p95_s": one.duration_p95}
    return kind.of_record(one, day=day, **percentiles)
