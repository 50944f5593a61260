"""Failures by cause, and costs by who had them."""

from typing import Annotated, Any

from fastapi import Query

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.insight import views
from shoal.api.operations.insight.day_results import seen
from shoal.api.routes.insight.window import Windowed, place_page
from shoal.api.schemas.insight.costs import CostGroupOut, CostsPage
from shoal.api.schemas.insight.failures import FailureGroupOut, FailureGroupsPage
from shoal.api.schemas.insight.trends import CostOut
from shoal.api.services import DayResultsDep, StoreDep
from shoal.api.web.answers import legible, shown
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit
from shoal.core.access.permissions import Permission
from shoal.core.insight.costs import CostBy, CostGroup
from shoal.core.insight.failures import FailureGroup

router = strict_router("insight")

PLACES_EACH = 20  # of one group
_NAMES = {
    CostBy.PROJECT: ("project",),
    CostBy.WORKFLOW: ("project", "workflow"),
    CostBy.TASK: ("project", "workflow", "task"),
    CostBy.LABEL: ("label", "value"),
}


@router.get("/insight/failures", summary="List what fails for the same cause")
@needs(Permission.PROJECT_READ, large=True)
async def list_insight_failures(
    store: StoreDep, caller: Calling, wanted: Windowed, limit: Limit = 50, cursor: Cursor = None
) -> FailureGroupsPage:
    """Attempts that failed in the window, by the fingerprint of their error line, most first.

    One group may have tasks of several workflows: of those that the caller sees.
    """
    async with store.unit_of_work(read_only=True) as uow:
        days = await wanted.days(uow, "failures")
        there, groups = views.NO_FAILURES
        if days.window is not None:
            with legible("roll-up", "failures"):
                there, groups = await views.failures(
                    uow, days.window, caller.visible, wanted.project, wanted.workflow
                )
    some, next_ = place_page("insight failures", (vars(wanted), days.window), groups, limit, cursor)
    return FailureGroupsPage(
        **days.shown(there),
        total=sum(one.count for one in groups),
        items=shown("roll-up", some, _failures, lambda one: one.fingerprint),
        next=next_,
    )


@router.get("/insight/costs", summary="Add up what was used")
@needs(Permission.PROJECT_READ, large=True)
async def list_insight_costs(
    store: StoreDep,
    day_results: DayResultsDep,
    caller: Calling,
    wanted: Windowed,
    by: Annotated[
        CostBy, Query(description="What is added up. `task` needs the filter `project`.")
    ] = CostBy.WORKFLOW,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> CostsPage:
    """Processor time, memory and slots of the attempts that ended in the window; the most first.

    `label`: by each key and value of the labels of runs; a run counts for all that it has.
    """
    if by is CostBy.TASK and wanted.project is None:
        raise InvalidRequest([FieldError("project", "is needed for costs by task")])
    async with store.unit_of_work(read_only=True) as uow:
        days = await wanted.days(uow, "costs")
        found = views.NO_COSTS
        if days.window is not None:
            which = await seen(uow, caller.visible, wanted.project, wanted.workflow)
            with legible("roll-up", "costs"):
                found = await views.costs(uow, day_results, days.window, which, by, caller.visible)
    filters = (vars(wanted), by, days.window)
    some, next_ = place_page("insight costs", filters, found.groups, limit, cursor)
    return CostsPage(
        **days.shown(found.there),
        by=by,
        total=CostOut.model_validate(found.total),
        before=CostOut.model_validate(found.before),
        items=shown("roll-up", some, lambda one: _cost(one, by), lambda one: "/".join(one.name)),
        next=next_,
    )


def _failures(group: FailureGroup) -> FailureGroupOut:
    return FailureGroupOut.of_record(
        group,
        by_day=[{"day": day, "count": count} for day, count in group.by_day.items()],
        where=[
            {"project": project, "workflow": workflow, "task": task, "count": count}
            for (project, workflow, task), count in group.where[:PLACES_EACH]
        ],
        is_more=len(group.where) > PLACES_EACH,
    )


def _cost(group: CostGroup, by: CostBy) -> CostGroupOut:
    names: dict[str, Any] = dict.fromkeys(("project", "workflow", "task", "label", "value"))
    return CostGroupOut.of_record(group, **names | dict(zip(_NAMES[by], group.name, strict=True)))
