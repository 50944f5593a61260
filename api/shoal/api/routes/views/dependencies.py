"""Dependencies: the workflows of a day and what they wait for, across projects."""

from datetime import date
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import Query

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.views.dependencies import graph_of
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.views.dependencies import DependencyGraphOut
from shoal.api.services import StoreDep
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import NAME_PATTERN, Day

router = strict_router("workflows")

_FIRST, _LAST = date(2, 3, 1), date(9989, 12, 31)  # a month before and after exists


@router.get(
    "/projects/{project}/dependency-graph",
    summary="Show which workflows wait for which on a day",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ, large=True)
async def get_dependency_graph(
    store: StoreDep,
    caller: Calling,
    project: ProjectName,
    workflow: Annotated[
        str | None,
        Query(
            pattern=NAME_PATTERN,
            description="Around this workflow; without it around all of the project that name "
            "others or are named.",
        ),
    ] = None,
    day: Annotated[
        Day | None,
        Query(
            alias="date",
            description="The logical day of the workflow, in its zone; default: today in "
            "its zone; for a project, today in UTC.",
        ),
    ] = None,
    hops: Annotated[
        int, Query(ge=0, le=20, description="How many steps to go in both directions.")
    ] = 2,
) -> DependencyGraphOut:
    """Workflows with their runs, and what they wait for, by the newest definitions.

    A workflow waits for those that it runs (SUB_WORKFLOW, MAP), and for those whose runs its
    DEPENDENT tasks look for. What counts of a workflow are the runs that matter for the day: where
    one looks for `last1Days`, those of the day before. Around a project every workflow has its own
    day, and `edges` tell which runs of which day are waited for. 500 workflows at most;
    `is_cut` tells.
    """
    async with store.unit_of_work(read_only=True) as uow:
        zone = "UTC"
        if workflow is not None:
            zone = (await uow.workflows.version_by_name(project, workflow)).spec.timezone
        else:
            await uow.projects.get(project)
        if day is None:
            day = store.clock().astimezone(ZoneInfo(zone)).date()
        if not _FIRST <= day <= _LAST:
            raise InvalidRequest([FieldError("date", f"must lie between {_FIRST} and {_LAST}")])
        return await graph_of(uow, project, workflow, day, hops, caller.visible)
