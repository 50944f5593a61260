"""The audit: who has done what; and the chain that shows that it was not changed since."""

from datetime import timedelta
from typing import Annotated

from fastapi import Body, Query

from shoal.api.access.audit import Recording
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.audit import (
    AuditEntryOut,
    AuditHeadOut,
    AuditLinkOut,
    AuditPrunedOut,
    AuditPruneIn,
)
from shoal.api.services import StoreDep
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, before_id, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.api.web.store import Store
from shoal.core.access.audit.chain import PRUNED
from shoal.core.access.audit.entries import AuditEntry, EntryFilter
from shoal.core.access.permissions import Permission

router = strict_router("audit")

_KEPT_AT_LEAST = timedelta(days=1)
_PRUNED_TOGETHER = 5_000  # entries of one transaction
_LINKED_WITHIN = timedelta(minutes=1)


Wanted = Annotated[EntryFilter, Query()]


@router.get("/audit", summary="List who did what")
@needs(Permission.AUDIT_READ, audit="audit.read")
async def list_audit(
    store: StoreDep,
    wanted: Wanted,
    project: Annotated[str | None, Query(max_length=100, description="Of this one alone.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AuditEntryOut]:
    """Everything that was changed or refused, the newest first."""
    return await _list(store, wanted, project, limit, cursor)


@router.get(
    "/projects/{project}/audit",
    summary="List who did what in a project",
    responses=documented(404),
)
@needs(Permission.PROJECT_MANAGE, audit="audit.read")
async def list_project_audit(
    store: StoreDep, project: ProjectName, wanted: Wanted, limit: Limit = 50, cursor: Cursor = None
) -> Page[AuditEntryOut]:
    """What was changed or refused in one project, the newest first."""
    async with store.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
    return await _list(store, wanted, project, limit, cursor)


@router.get("/audit-head", summary="Show the end of the audit's chain")
@needs(Permission.AUDIT_READ)
async def get_audit_head(store: StoreDep) -> AuditHeadOut:
    """Note it somewhere else: it proves later what the audit was."""
    async with store.unit_of_work(read_only=True) as uow:
        head = await uow.audit.head()
        pruned = await uow.audit.pruned()
        unlinked = await uow.audit.unlinked(store.clock() - _LINKED_WITHIN)
    return AuditHeadOut(
        position=head.position, hash=head.hash, pruned=pruned.position, unlinked=unlinked
    )


@router.get("/audit-chain", summary="Export the audit")
@needs(Permission.AUDIT_READ, audit="audit.export")
async def get_audit_links(
    store: StoreDep,
    after: Annotated[
        int, Query(ge=0, le=2**62, description="A position: the next one is first.")
    ] = 0,
    limit: Limit = 50,
) -> list[AuditLinkOut]:
    """Entries with their hashes, the oldest first: enough to verify them without trusting us."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.audit.links(after, limit)
    return [
        AuditLinkOut(
            position=one.position,
            hash=one.hash,
            previous=one.previous,
            entry=None if one.entry is None else _out(one.entry),
        )
        for one in found
    ]


@router.post(
    "/audit-prunes", summary="Remove old entries of the audit", responses=documented(400, 413, 415)
)
@needs(Permission.HISTORY_PURGE, audit=PRUNED)
async def prune_audit(
    store: StoreDep, record: Recording, body: Annotated[AuditPruneIn, Body()]
) -> AuditPrunedOut:
    """Removes some thousand of the oldest entries; repeat it until `removed` is 0.

    An entry says up to where, so that the rest can still be verified. Entries of the last day stay.
    """
    if body.before > store.clock() - _KEPT_AT_LEAST:
        raise InvalidRequest([FieldError("before", "lies in the last day: those stay")])
    async with store.unit_of_work() as uow:
        last, removed = await uow.audit.prune(body.before, _PRUNED_TOGETHER)
        if removed:
            record.detail |= {"position": last.position, "hash": last.hash, "removed": removed}
            await uow.commit()
    return AuditPrunedOut(removed=removed, position=last.position, hash=last.hash)


async def _list(
    store: Store, wanted: EntryFilter, project: str | None, limit: int, cursor: str | None
) -> Page[AuditEntryOut]:
    before = before_id("audit", cursor)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.audit.list(wanted, before, limit + 1, project)
    items, more = page(found, limit)
    return Page(
        items=[_out(one) for one in items],
        next=encode_cursor("audit", items[-1].id) if more else None,
    )


def _out(entry: AuditEntry) -> AuditEntryOut:
    return AuditEntryOut.model_validate(entry.document())
