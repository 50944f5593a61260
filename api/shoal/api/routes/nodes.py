"""Masters, workers and their groups, partitions and takeovers: what a large cluster has many of."""

from collections.abc import Callable, Iterable
from typing import Annotated, TypeVar

from fastapi import Query

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.cluster import (
    group_of,
    masters_of,
    partition_of,
    queues_of,
    work_of,
    workers_of,
)
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.cluster import (
    MasterOut,
    PartitionOut,
    TakeoverOut,
    WorkerGroupOut,
    WorkerOut,
)
from shoal.api.services import ClusterDep, StoreDep
from shoal.api.web.paging import Cursor, Limit, before_id, decode_cursor, encode_cursor, page
from shoal.core.access.permissions import Permission

router = strict_router("cluster")

T = TypeVar("T")


def _page(
    kind: str, items: Iterable[T], name: Callable[[T], str], limit: int, cursor: str | None
) -> Page[T]:
    """Return a page of what is in memory, by name."""
    position = decode_cursor(kind, cursor, str)
    rest = sorted((o for o in items if position is None or name(o) > position[0]), key=name)
    shown, more = page(rest[: limit + 1], limit)
    return Page(items=shown, next=encode_cursor(kind, name(shown[-1])) if more else None)


@router.get("/masters", summary="List masters")
@needs(Permission.CLUSTER_READ)
async def list_masters(
    cluster: ClusterDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[MasterOut]:
    """Live masters with the partitions that each owns, by id."""
    owners, group = await cluster.owners.all_owners(cluster.partitions), await group_of(cluster)
    leader = group.leader.client_id if group.leader else None
    masters = masters_of(cluster, owners, leader)
    return _page("masters", masters, lambda one: one.id, limit, cursor)


@router.get("/workers", summary="List workers")
@needs(Permission.CLUSTER_READ)
async def list_workers(
    cluster: ClusterDep,
    group: Annotated[str | None, Query(description="Only for this group.")] = None,
    paused: Annotated[
        bool | None, Query(description="Only those that take no tasks, or only the others.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[WorkerOut]:
    """Live workers with their slots and how many are taken, by id."""
    found = [
        one
        for one in workers_of(cluster)
        if group in (None, one.group) and paused in (None, one.paused is not None)
    ]
    return _page("workers", found, lambda one: one.id, limit, cursor)


@router.get("/worker-groups", summary="List worker groups")
@needs(Permission.CLUSTER_READ)
async def list_worker_groups(
    cluster: ClusterDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[WorkerGroupOut]:
    """Groups of workers, with what waits for each: also those that have no worker at all."""
    queued = {one.group: one.depth for one in await queues_of(cluster)}
    workers = workers_of(cluster)
    found = []
    for group in queued.keys() | {one.group for one in workers}:
        some = [one for one in workers if one.group == group]
        found.append(
            WorkerGroupOut(
                group=group,
                queued=queued.get(group, 0),
                workers=len(some),
                paused=sum(one.paused is not None for one in some),
                slots=sum(one.slots for one in some),
                running=sum(one.running for one in some),
            )
        )
    return _page("worker-groups", found, lambda one: one.group, limit, cursor)


@router.get("/partitions", summary="List partitions")
@needs(Permission.CLUSTER_READ)
async def list_partitions(
    store: StoreDep,
    cluster: ClusterDep,
    owner: Annotated[
        str | None, Query(description="Only of this master; empty: without a master.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[PartitionOut]:
    """Partitions with owner, epoch and what there is to do in each, by number."""
    position = decode_cursor("partitions", cursor, int)
    first = 0 if position is None else position[0] + 1
    owners, work = (
        await cluster.owners.all_owners(cluster.partitions),
        await work_of(store, cluster),
    )
    found = [
        partition_of(index, owners.get(index), work)
        for index in range(first, cluster.partitions)
        if owner is None or owner == (owners[index].owner_id if index in owners else "")
    ]
    shown, more = page(found[: limit + 1], limit)
    return Page(items=shown, next=encode_cursor("partitions", shown[-1].index) if more else None)


@router.get("/takeovers", summary="List takeovers")
@needs(Permission.CLUSTER_READ)
async def list_takeovers(
    store: StoreDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[TakeoverOut]:
    """Changes of partitions' owners, newest first; the newest 10,000 are kept."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.partitions.takeovers(before_id("takeovers", cursor), limit + 1)
    shown, more = page([TakeoverOut.model_validate(one) for one in found], limit)
    return Page(items=shown, next=encode_cursor("takeovers", shown[-1].id) if more else None)
