"""Purges: requests to delete history; the masters carry them out."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.purges import PurgeIn, PurgeOut, StoreOut, StoresOut
from shoal.api.services import ClusterDep, IntakeDep, StoreDep
from shoal.api.web.answers import by_id, shown
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import MAX_ID, Cursor, Limit, before_id, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.runs.retention import NewPurge, Purge
from shoal.sql import UnitOfWork

router = strict_router("purges")

PurgeId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[3])]


@router.post(
    "/purges",
    summary="Let history go",
    status_code=202,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.HISTORY_PURGE, audit="purge.request")
async def post_purge(
    store: StoreDep,
    cluster: ClusterDep,
    intake: IntakeDep,
    caller: Calling,
    body: Annotated[PurgeIn, Body()],
    response: Response,
) -> PurgeOut:
    """Stores the request durably; each master sees to its own partitions within seconds.

    What is not finished, or needed by something that is not, stays, and so do the newest
    instances of each workflow (`keep_newest_instances`), whatever is asked for.
    """
    now = store.clock()
    if body.before is not None and body.before > now:
        raise InvalidRequest([FieldError("before", "lies in the future")])
    if body.workflow is not None and body.project is None:
        raise InvalidRequest([FieldError("project", "is missing: whose workflow is it?")])
    async with store.unit_of_work() as uow:
        new = NewPurge(
            body.dry_run,
            body.before,
            body.project,
            await _workflow(uow, body),
            caller.name,
            body.even_if_not_exported,
        )
        purge = await uow.purges.add(new, cluster.partitions, now)
        await uow.commit()
    intake.notify(range(cluster.partitions))
    response.headers["Location"] = f"/api/v1/purges/{purge.id}"
    response.headers["Retry-After"] = "1"
    return _out(purge)


async def _workflow(uow: UnitOfWork, body: PurgeIn) -> int | None:
    """Return the id of the workflow; project and workflow must exist. Raises NotFound."""
    if body.project is None:
        return None
    if body.workflow is None:
        await uow.projects.get(body.project)
        return None
    return (await uow.workflows.get(body.project, body.workflow)).id


@router.get("/purges", summary="List purges")
@needs(Permission.HISTORY_PURGE)
async def list_purges(store: StoreDep, limit: Limit = 50, cursor: Cursor = None) -> Page[PurgeOut]:
    """Purges, newest first. They are forgotten after 30 days."""
    before = before_id("purges", cursor)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.purges.list(limit + 1, before)
        why = await _held_because(uow, found)
    items, more = page(found, limit)
    return Page(
        items=shown("purge", items, lambda purge: _out(purge, why), by_id),
        next=encode_cursor("purges", items[-1].id) if more else None,
    )


@router.get("/purges/{purge_id}", summary="Show a purge", responses=documented(404))
@needs(Permission.HISTORY_PURGE)
async def get_purge(store: StoreDep, purge_id: PurgeId) -> PurgeOut:
    """How far the masters have come."""
    async with store.unit_of_work(read_only=True) as uow:
        purge = await uow.purges.get(purge_id)
        return _out(purge, await _held_because(uow, [purge]))


@router.get("/stores", summary="Show how large the history is")
@needs(Permission.CLUSTER_READ)
async def get_stores(store: StoreDep) -> StoresOut:
    """Rows and bytes of each table, as the database estimates them without counting."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.sizes.read()
    return StoresOut(
        kind=store.database.kind,
        bytes=found.bytes,
        free_bytes=found.free_bytes,
        stores=[
            StoreOut(name=name, rows=rows, bytes=size)
            for name, (rows, size) in found.tables.items()
        ],
    )


async def _held_because(uow: UnitOfWork, purges: Sequence[Purge]) -> str | None:
    """Return why rows wait for the exported history; None: no row does."""
    if not any(purge.held for purge in purges):
        return None
    found = await uow.verified_history.get()
    if found.verified_at is None:
        told = "nothing was exported yet"
    else:
        told = f"the exported history was in order last at {found.verified_at.isoformat()}"
    return f"{told}; {found.trouble}" if found.trouble else told


def _out(purge: Purge, why: str | None = None) -> PurgeOut:
    asked = purge.asked
    return PurgeOut(
        id=purge.id,
        dry_run=asked.is_rehearsal,
        before=asked.before,
        project=asked.project,
        workflow_id=asked.workflow_id,
        created_at=purge.created_at,
        finished_at=purge.finished_at,
        partitions=purge.partitions,
        partitions_done=purge.partitions_done,
        oldest=purge.oldest,
        even_if_not_exported=asked.even_if_not_exported,
        held=purge.held,
        held_because=why if purge.held else None,
        **vars(purge.counts),
    )
