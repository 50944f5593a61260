"""One request about many runs or tasks, with a preview."""

import uuid
from functools import partial
from typing import Annotated

from fastapi import Body, Query, Response

from shoal.api.access.audit import Recording
from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.commands import check_shape
from shoal.api.operations.runs.bulk import (
    Preview,
    digest_of,
    judged,
    meant,
    previewed,
    record_of,
    stored,
)
from shoal.api.routes.commands import IdempotencyKey
from shoal.api.routes.runs.filters import Instances
from shoal.api.schemas.runs.bulk import (
    BulkIn,
    BulkItem,
    BulkOut,
    EffectOut,
    ItemProblem,
    TouchedTask,
)
from shoal.api.services import ClusterDep, FeedDep, IntakeDep, StoreDep
from shoal.api.web.errors import INTERNAL, FieldError, Forbidden, InvalidRequest, PreviewOutdated
from shoal.api.web.problems import documented, kind_of
from shoal.core.access.permissions import Permission
from shoal.core.errors import ShoalError
from shoal.core.runs.filters import InstanceFilter
from shoal.sql.errors import NotFound

router = strict_router("commands")

MOST_TASKS = 100  # of one item that a preview names


@router.post(
    "/bulk-commands",
    summary="Ask the same of many runs or tasks",
    status_code=202,
    responses=documented(400, 412, 413, 415, 429),
)
@needs(Permission.RUN_OPERATE, audit="command.request", large=True)
async def post_bulk_commands(
    store: StoreDep,
    cluster: ClusterDep,
    feed: FeedDep,
    intake: IntakeDep,
    caller: Calling,
    wanted: Instances,
    body: Annotated[BulkIn, Body()],
    response: Response,
    record: Recording,
    dry_run: Annotated[bool, Query(description="Only say what it would touch.")] = False,
    idempotency_key: IdempotencyKey = None,
) -> BulkOut:
    """Stores a command for each of the ids, 500 at most, or of what the filters mean.

    The filters of `GET /instances` apply; they need the `digest` of a preview (`dry_run`),
    and if they mean others by now nothing is done (412). Each is authorised by itself and has a
    result of its own: what one may not touch does not keep the others. The same idempotency key
    stores no second command for any of them.
    """
    intake.begin(caller.principal)
    _check(body, wanted, dry_run)
    ids, is_more = await meant(store, caller, body, wanted)
    digest = digest_of(body, ids)
    if body.digest not in (None, digest):
        raise PreviewOutdated(
            "other runs or tasks would be affected than in the preview of this digest; request "
            "a new preview (dry_run=true), and use its digest"
        )
    items = await judged(store, cluster, caller, body, ids, idempotency_key or str(uuid.uuid4()))
    for item in items:
        if isinstance(item.error, Forbidden | NotFound):
            record_of(record, body, item.id).refused(Permission.RUN_OPERATE)
    if dry_run:
        response.status_code = 200
        items = await previewed(store, items)
    else:
        items = await stored(intake, items, partial(record_of, record, body))
        feed.poll_soon()
    return BulkOut(
        digest=digest,
        is_more=is_more,
        items=[
            BulkItem(
                id=one.id,
                command_id=None if one.command is None else one.command.id,
                problem=None if one.error is None else problem_of_item(one.error),
                preview=None if one.preview is None else _preview(one.preview),
            )
            for one in items
        ],
    )


def _check(body: BulkIn, wanted: InstanceFilter, dry_run: bool) -> None:
    """Raise InvalidRequest for what does not go together."""
    check_shape(body.command(1), None)
    is_filtered = bool(wanted)
    errors = []
    if body.ids is not None and is_filtered:
        errors.append(FieldError("ids", "do not go with filters: give the one or the other"))
    if body.ids is None and body.is_about_tasks:
        errors.append(FieldError("ids", f"are required for {body.type}: it is about tasks"))
    elif body.ids is None and not is_filtered:
        errors.append(FieldError("ids", "are required without filters: nothing means everything"))
    elif body.ids is None and not dry_run and body.digest is None:
        message = "is required with filters: take it from a preview (dry_run=true)"
        errors.append(FieldError("digest", message))
    if errors:
        raise InvalidRequest(errors)


def problem_of_item(error: ShoalError) -> ItemProblem:
    """Return the problem of one of many."""
    kind = kind_of(error) or INTERNAL
    return ItemProblem(
        type=f"/problems/{kind.slug}", status=int(kind.status), detail=kind.detail or str(error)
    )


def _preview(found: Preview) -> EffectOut:
    tasks = found.tasks or []
    shown = [TouchedTask.model_validate(one) for one in tasks[:MOST_TASKS]]
    return EffectOut(
        refusal=found.refusal,
        state=found.state,
        tasks=None if found.tasks is None else shown,
        more_tasks=max(0, len(tasks) - MOST_TASKS),
    )
