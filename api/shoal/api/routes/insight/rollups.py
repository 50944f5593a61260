"""Results of jobs as they are, for programs."""

from typing import Annotated

from fastapi import Query

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.insight.window import Day
from shoal.api.routes.runs.filters import Project
from shoal.api.schemas.common import Page
from shoal.api.schemas.insight.rollups import RollupOut, RollupRowsOut, RollupRowsPage
from shoal.api.services import StoreDep
from shoal.api.web.answers import shown
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, filtered, page
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import NAME_PATTERN

router = strict_router("insight")

#: Columns of rows of a project that reveal load of the others.
_OF_ALL_PROJECTS = {"schedule_moves": ("place", "highest_before", "highest_after")}

JobName = Annotated[
    str | None,
    Query(
        pattern=NAME_PATTERN,
        description="Whose result; has to be given. `GET /insight/rollups` lists them.",
        examples=["workflow_days"],
    ),
]


@router.get("/insight/rollups", summary="List which results of jobs there are")
@needs(Permission.PROJECT_READ)
async def list_insight_rollups(
    store: StoreDep,
    caller: Calling,
    job: Annotated[str | None, Query(pattern=NAME_PATTERN, description="Only of this job.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[RollupOut]:
    """The newest day first. How many rows there are of all projects is for who sees the cluster."""
    sees_cluster = caller.may(Permission.CLUSTER_READ)
    kind = filtered("insight rollups", job)
    after = decode_cursor(kind, cursor, str, str)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.rollups.days(job)
    found.sort(key=lambda one: one.job)
    found.sort(key=lambda one: one.day, reverse=True)
    if after is not None:
        day, name = after
        found = [
            one
            for one in found
            if one.day.isoformat() < day or (one.day.isoformat() == day and one.job > name)
        ]
    some, more = page(found, limit)
    return Page(
        items=[
            RollupOut(
                job=one.job,
                day=one.day,
                rows=one.rows if sees_cluster else None,
                stored_at=one.stored_at,
            )
            for one in some
        ],
        next=encode_cursor(kind, some[-1].day.isoformat(), some[-1].job) if more else None,
    )


@router.get("/insight/rollup-rows", summary="List the rows of a result")
@needs(Permission.PROJECT_READ, large=True)
async def list_insight_rollup_rows(
    store: StoreDep,
    caller: Calling,
    job: JobName = None,
    day: Annotated[
        Day | None,
        Query(description="Of the result; default: the newest.", examples=["2026-01-31"]),
    ] = None,
    project: Project = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RollupRowsPage:
    """The rows that one job has found about one day, workflow by workflow, of visible projects.

    Rows that are of no project come first, for who sees the cluster. A result that there is not is
    empty. Of a move of a schedule `place`, `highest_before` and `highest_after` tell of the
    schedules of all projects: they are null for who does not see the cluster.
    """
    sees_cluster = caller.may(Permission.CLUSTER_READ)
    hidden = {} if sees_cluster else dict.fromkeys(_OF_ALL_PROJECTS.get(job or "", ()))
    if job is None:
        raise InvalidRequest([FieldError("job", "is required: rows belong to one job")])
    async with store.unit_of_work(read_only=True) as uow:
        if day is None and (newest := await uow.rollups.newest(job)) is not None:
            day = newest.day
        kind = filtered("insight rollup rows", job, day, project)
        after = decode_cursor(kind, cursor, str, str)
        if day is None:
            return RollupRowsPage(job=job, day=None, items=[])
        names = await uow.rollups.names(
            job,
            day,
            caller.visible,
            limit + 1,
            with_cluster=sees_cluster,
            project=project,
            after=None if after is None else (after[0], after[1]),
        )
        some, more = page(names, limit)
        blocks = await uow.rollups.of_workflows(job, day, some)
    blocks.sort(key=lambda one: (one.project, one.workflow))
    return RollupRowsPage(
        job=job,
        day=day,
        items=shown(
            "roll-up",
            blocks,
            lambda one: RollupRowsOut(
                project=one.project,
                workflow=one.workflow,
                rows=[{**row, **hidden} for row in one.rows],
            ),
            lambda one: f"{one.project}/{one.workflow}",
        ),
        next=encode_cursor(kind, *some[-1]) if more else None,
    )
