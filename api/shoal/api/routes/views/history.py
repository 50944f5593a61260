"""What has happened: events, who has asked for what, and takeovers, in the order of time."""

import json
from dataclasses import asdict
from hashlib import sha256
from typing import Annotated

from fastapi import Query

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.runs.filters import Project, Workflow
from shoal.api.schemas.common import Instant, Page
from shoal.api.schemas.views.history import HappenedOut
from shoal.api.services import StoreDep
from shoal.api.web.answers import by_id, shown
from shoal.api.web.paging import MAX_ID, Cursor, Limit, decode_cursor, encode_cursor
from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import Permission
from shoal.core.runs.filters import Between, HistoryFilter, HistoryKind

router = strict_router("events")


@router.get("/history", summary="List what has happened")
@needs(Permission.PROJECT_READ)
async def list_history(
    store: StoreDep,
    caller: Calling,
    kind: Annotated[
        list[HistoryKind] | None, Query(description="Only of one of these; repeatable.")
    ] = None,
    project: Project = None,
    workflow: Workflow = None,
    instance_id: Annotated[
        int | None,
        Query(ge=1, le=MAX_ID, description="Only of this run, with takeovers of its partition."),
    ] = None,
    since: Annotated[Instant | None, Query(description="At this instant or later.")] = None,
    until: Annotated[Instant | None, Query(description="Before.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[HappenedOut]:
    """Events, commands and takeovers, the latest first.

    A page looks through 5,000 of each, so it may be short or empty although more follow: the list
    is over when `next` is null. Takeovers of all partitions are for who may see the cluster. Events
    are kept for `keep_events_days`, commands for `keep_commands_days` and as long as their run, of
    takeovers the newest 10,000.
    """
    if instance_id is not None:  # one that may not be seen is answered as one that is not there
        await caller.require(Permission.PROJECT_READ, Thing.INSTANCE, instance_id)
    wanted = HistoryFilter(
        frozenset(kind or ()),
        project,
        workflow,
        instance_id,
        Between(since, until),
        caller.may(Permission.CLUSTER_READ),
    )
    fields = {**asdict(wanted), "kinds": sorted(wanted.kinds)}
    text = json.dumps(fields, default=str, sort_keys=True)
    name = f"history {sha256(text.encode()).hexdigest()[:16]}"
    after = decode_cursor(name, cursor, int, int, int)
    place = None if after is None else (after[0], after[1], after[2])
    async with store.unit_of_work(read_only=True) as uow:
        found, next_ = await uow.history.page(wanted, caller.visible, place, limit)
    return Page(
        items=shown("event", found, HappenedOut.of, by_id),
        next=None if next_ is None else encode_cursor(name, *next_),
    )
