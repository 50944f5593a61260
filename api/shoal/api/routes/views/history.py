"""What has happened: events, who has asked for what, and takeovers, in the order of time."""

from typing import Annotated

from fastapi import Query

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.schemas.common import Page
from shoal.api.schemas.views.history import HappenedOut
from shoal.api.services import StoreDep
from shoal.api.web.answers import by_id, shown
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, filtered
from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import Permission
from shoal.core.runs.filters import HistoryFilter

router = strict_router("events")


@router.get("/history", summary="List what has happened")
@needs(Permission.PROJECT_READ)
async def list_history(
    store: StoreDep,
    caller: Calling,
    wanted: Annotated[HistoryFilter, Query()],
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[HappenedOut]:
    """Events, commands and takeovers, the latest first.

    A page looks through 5,000 of each, so it may be short or empty although more follow: the list
    is over when `next` is null. Takeovers of all partitions are for who may see the cluster. Events
    are kept for `keep_events_days`, commands for `keep_commands_days` and as long as their run, of
    takeovers the newest 10,000.
    """
    if wanted.instance_id is not None:  # a hidden run is answered as a missing one
        await caller.require(Permission.PROJECT_READ, Thing.INSTANCE, wanted.instance_id)
    takeovers = caller.may(Permission.CLUSTER_READ)
    name = filtered("history", wanted, takeovers)
    after = decode_cursor(name, cursor, int, int, int)
    place = None if after is None else (after[0], after[1], after[2])
    async with store.unit_of_work(read_only=True) as uow:
        found, next_ = await uow.history.page(
            wanted, caller.visible, place, limit, with_takeovers=takeovers
        )
    return Page(
        items=shown("event", found, HappenedOut.of, by_id),
        next=None if next_ is None else encode_cursor(name, *next_),
    )
