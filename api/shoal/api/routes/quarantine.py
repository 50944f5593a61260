"""What is quarantined: listed, tried again and discarded."""

from typing import Annotated

from fastapi import Body, Query

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.health import QuarantinedOut, QuarantinedRef
from shoal.api.services import StoreDep
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from shoal.core.untrusted import read_count
from shoal.sql.errors import NotFound

router = strict_router("quarantine")

_LARGEST_ID = 2**63 - 1
_MOST = 10_000  # the newest ones that are listed


@router.get("/quarantine", summary="List quarantined items")
@needs(Permission.CLUSTER_READ)
async def list_quarantined_items(
    store: StoreDep,
    consumer: Annotated[
        ItemConsumer | None, Query(description="Only what this consumer cannot work with.")
    ] = None,
    kind: Annotated[ItemKind | None, Query(description="Only of this kind.")] = None,
    project: Annotated[
        str | None, Query(max_length=100, description="Only of this project.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[QuarantinedOut]:
    """What is quarantined, with the reasons; the item that failed last comes first."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.quarantine.list(_MOST, consumer, kind, project)
    items = sorted(map(quarantined_out, found), key=_key, reverse=True)
    some, following = part_of("quarantine", items, _key, limit, cursor, falling=True)
    return Page(items=some, next=following)


@router.post(
    "/quarantine-retries",
    summary="Try a quarantined item again",
    status_code=202,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.CLUSTER_OPERATE, audit="quarantine.retry")
async def retry_quarantined_item(
    store: StoreDep, body: Annotated[QuarantinedRef, Body()]
) -> QuarantinedOut:
    """Request a retry. The item leaves the list when it works, or stays with the new reason.

    A skipped event becomes the alerts that it would have become then. A message is sent again.
    """
    now = store.clock()
    async with store.unit_of_work() as uow:
        await uow.quarantine.request_retry(body.kind, body.item, body.consumer, now)
        found = await uow.quarantine.of(body.kind, body.item, body.consumer)
        if found is None:
            raise NotFound("quarantined item", body.item)
        number = _number(body)
        if body.kind is ItemKind.MESSAGE:
            await uow.deliveries.send_again(number, now)
            await uow.quarantine.discard(body.kind, body.item, body.consumer)
        elif body.kind is ItemKind.ALERT:
            await uow.alerts.put_off(number, now)
        await uow.commit()
    return quarantined_out(found)


@router.post(
    "/quarantine-discards",
    summary="Discard a quarantined item",
    status_code=204,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.CLUSTER_OPERATE, audit="quarantine.discard")
async def discard_quarantined_item(
    store: StoreDep, body: Annotated[QuarantinedRef, Body()]
) -> None:
    """Forget an item. An alert that is discarded sends no further reminders.

    Items of masters are what keeps a run, schedule or command from its work, and cannot be
    discarded.
    """
    if body.consumer is not ItemConsumer.ALERTS:
        text = "items of masters cannot be discarded: repair the cause, then retry the item"
        raise InvalidRequest([FieldError("consumer", text)])
    async with store.unit_of_work() as uow:
        await uow.quarantine.discard(body.kind, body.item, body.consumer)
        if body.kind is ItemKind.ALERT:
            await uow.alerts.put_off(_number(body), None)
        await uow.commit()


def quarantined_out(one: QuarantinedItem) -> QuarantinedOut:
    """Return an item as it is answered."""
    return QuarantinedOut(**{**vars(one), "last_at": one.last_at or one.since})


def _key(one: QuarantinedOut) -> str:
    return f"{one.last_at.isoformat()} {one.consumer} {one.kind} {one.item}"


def _number(body: QuarantinedRef) -> int:
    """Return the id that an item is named by; 0: it is not named by one."""
    found = read_count(body.item)
    return found if found is not None and found <= _LARGEST_ID else 0
