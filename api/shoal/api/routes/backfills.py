"""Backfills: one workflow for many dates."""

import secrets
import uuid
from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import Body, Path, Query, Response
from starlette.convertors import StringConvertor, register_url_convertor

from shoal.api.access.audit import Recording
from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.backfills import counts_of, planned, require_all, require_work
from shoal.api.routes.commands import IdempotencyKey, accept
from shoal.api.schemas.backfills import (
    BackfillAccepted,
    BackfillIn,
    BackfillOut,
    BackfillRunOut,
    PlannedOut,
    PlanOut,
)
from shoal.api.schemas.commands import CommandOut
from shoal.api.schemas.common import Page
from shoal.api.services import ClusterDep, FeedDep, IntakeDep, StoreDep
from shoal.api.web.answers import by_id, legible, shown
from shoal.api.web.paging import (
    MAX_ID,
    Cursor,
    Limit,
    before_id,
    decode_cursor,
    encode_cursor,
    filtered,
    page,
)
from shoal.api.web.problems import documented
from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import Permission
from shoal.core.backfill.plan import BackfillPlan
from shoal.core.backfill.request import (
    JUDGED,
    Backfill,
    BackfillRunState,
    BackfillState,
)
from shoal.core.backfill.window import BackfillRun
from shoal.core.runs.commands import CommandType, NewCommand


class _Request(StringConvertor):
    """What can be asked of a backfill; ``/backfills/7/runs`` is another path, without POST."""

    regex = "pause|resume|cancel|retry"


register_url_convertor("backfill_request", _Request())
router = strict_router("backfills")

BackfillId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[7])]
_REQUESTS: Mapping[str, CommandType] = {
    "pause": CommandType.PAUSE_BACKFILL,
    "resume": CommandType.RESUME_BACKFILL,
    "cancel": CommandType.CANCEL_BACKFILL,
    "retry": CommandType.RETRY_BACKFILL,
}


@router.post(
    "/backfills",
    summary="Run a workflow for many dates",
    status_code=202,
    responses={
        200: {"model": BackfillAccepted, "description": "A dry run: nothing was stored."},
        **documented(400, 404, 409, 413, 415, 429),
    },
)
@needs(Permission.RUN_OPERATE, audit="backfill.request")
async def post_backfill(
    store: StoreDep,
    cluster: ClusterDep,
    feed: FeedDep,
    intake: IntakeDep,
    caller: Calling,
    record: Recording,
    body: Annotated[BackfillIn, Body()],
    response: Response,
    dry_run: Annotated[bool, Query(description="Only return the plan.")] = False,
    idempotency_key: IdempotencyKey = None,
) -> BackfillAccepted:
    """Stores the request durably; a master plans and starts the backfill a moment later.

    The plan is made twice: here, to see what is wrong with it, and by the master, which counts. The
    master refuses it if the caller may not run all that it reaches then.
    """
    intake.begin(caller.principal)
    key = idempotency_key or str(uuid.uuid4())
    async with store.unit_of_work(read_only=True) as uow:
        workflow = await uow.workflows.get(body.project, body.workflow)
        # The earlier request may be under way, and leave nothing to plan.
        earlier = None if dry_run else await uow.commands.with_key(key, caller.principal.id)
        plan = await planned(uow, body) if earlier is None else None
    judged = [] if earlier is None else earlier.detail.get(JUDGED, [])
    if plan is not None:
        names = {run.project for run in plan.runs}  # downstream may reach others
        homes = {await caller.homes.of(Thing.PROJECT, name) for name in names}
        require_all(caller, homes)
        judged = sorted(one for one in homes if one is not None)
    if dry_run:
        response.status_code = 200
        return BackfillAccepted(plan=_plan_out(plan, with_runs=True), command=None)
    if plan is not None:
        require_work(plan)
    new = NewCommand(
        CommandType.BACKFILL,
        secrets.randbelow(cluster.partitions),
        key,
        workflow.id,
        requested_by=caller.name,
        caller_id=caller.principal.id,
        detail={**body.stored(), JUDGED: judged},
    )
    command = await accept(feed, intake, new, response, record)
    return BackfillAccepted(plan=_plan_out(plan, with_runs=False), command=command)


@router.get("/backfills", summary="List backfills")
@needs(Permission.PROJECT_READ)
async def list_backfills(
    store: StoreDep,
    caller: Calling,
    project: Annotated[str | None, Query(description="Only for this project.")] = None,
    workflow: Annotated[str | None, Query(description="Only for this workflow.")] = None,
    state: Annotated[
        list[BackfillState] | None, Query(description="Only in one of these; repeatable.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[BackfillOut]:
    """Backfills, newest first, each with its progress."""
    kind = filtered("backfills", project, workflow, sorted(state or ()))
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.backfills.list(
            project=project,
            workflow_name=workflow,
            states=state or (),
            before_id=before_id(kind, cursor),
            limit=limit + 1,
            visible=caller.visible,
        )
        items, more = page(found, limit)
        counts = await counts_of(uow, [item.id for item in items])
    return Page(
        items=shown("backfill", items, lambda item: _out(item, counts[item.id]), by_id),
        next=encode_cursor(kind, items[-1].id) if more else None,
    )


@router.get("/backfills/{backfill_id}", summary="Show a backfill", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_backfill(store: StoreDep, backfill_id: BackfillId) -> BackfillOut:
    """A backfill and how many of its dates are in which state."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.backfills.get(backfill_id)
        counts = await counts_of(uow, [backfill_id])
    with legible("backfill", backfill_id):
        return _out(found, counts[backfill_id])


@router.get(
    "/backfills/{backfill_id}/runs",
    summary="List the dates of a backfill",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def list_backfill_runs(
    store: StoreDep,
    caller: Calling,
    backfill_id: BackfillId,
    state: Annotated[
        list[BackfillRunState] | None, Query(description="Only in one of these; repeatable.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[BackfillRunOut]:
    """The dates in the order in which they start."""
    after = decode_cursor("backfill-runs", cursor, int)
    async with store.unit_of_work(read_only=True) as uow:
        await uow.backfills.get(backfill_id)
        found = await uow.backfills.some_runs(
            backfill_id,
            state or (),
            None if after is None else after[0],
            limit + 1,
            caller.visible,
        )
    items, more = page(found, limit)
    return Page(
        items=shown("run of a backfill", items, _run, lambda item: item[0].position),
        next=encode_cursor("backfill-runs", items[-1][0].position) if more else None,
    )


@router.post(
    "/backfills/{backfill_id}/{request:backfill_request}",
    summary="Pause, resume, cancel or retry a backfill",
    status_code=202,
    responses=documented(404, 409, 429),
)
@needs(Permission.RUN_OPERATE, audit="backfill.change")
async def request_backfill(
    store: StoreDep,
    feed: FeedDep,
    intake: IntakeDep,
    caller: Calling,
    record: Recording,
    backfill_id: BackfillId,
    request: Annotated[Literal["pause", "resume", "cancel", "retry"], Path(examples=["pause"])],
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> CommandOut:
    """Pausing starts no other date, cancelling stops what runs as well.

    A retry starts what failed or was cancelled. Each is a command: read the outcome with
    `GET /commands/{id}?wait=30`.
    """
    intake.begin(caller.principal)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.backfills.get(backfill_id)
        projects = await uow.backfills.project_ids(backfill_id)
    require_all(caller, projects)
    new = NewCommand(
        _REQUESTS[request],
        found.partition,
        idempotency_key or str(uuid.uuid4()),
        found.workflow_id,
        requested_by=caller.name,
        caller_id=caller.principal.id,
        backfill_id=found.id,
    )
    return await accept(feed, intake, new, response, record)


def _plan_out(plan: BackfillPlan | None, with_runs: bool) -> PlanOut | None:
    if plan is None:
        return None
    runs = plan.runs if with_runs else ()
    return PlanOut(
        total=len(plan.runs),
        to_run=plan.to_run,
        runs=[PlannedOut.of_record(run) for run in runs],
    )


def _out(backfill: Backfill, counts: Mapping[BackfillRunState, int]) -> BackfillOut:
    return BackfillOut.of_record(
        backfill, request=backfill.request.stored(), counts=dict(counts), total=sum(counts.values())
    )


def _run(item: tuple[BackfillRun, str, str]) -> BackfillRunOut:
    run, project, workflow = item
    return BackfillRunOut.of_record(run, project=project, workflow=workflow)
