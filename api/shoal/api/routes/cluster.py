"""The cluster: members, partitions, queues; installed task types."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from shoal.api.route import strict_router
from shoal.api.schemas.cluster import (
    ClusterOut,
    DatabaseOut,
    MasterOut,
    PartitionOut,
    QueueOut,
    TaskTypeOut,
    WorkerOut,
    ZooKeeperOut,
)
from shoal.api.services import Services, Shoal
from shoal.coordination.membership import MemberInfo
from shoal.coordination.owners import OwnerInfo
from shoal.core.task_types import load_task_type, task_type_names

router = strict_router("cluster")


@router.get("/cluster", summary="Show the cluster")
async def cluster(shoal: Shoal) -> ClusterOut:
    """Live members, who owns which partition, what waits for the workers."""
    owners, queues = await asyncio.gather(shoal.owners.all_owners(shoal.partitions), _queues(shoal))
    return ClusterOut(
        masters=_masters(shoal, owners),
        workers=_workers(shoal),
        partitions=[_partition(index, owners.get(index)) for index in range(shoal.partitions)],
        queues=queues,
        zookeeper=ZooKeeperOut(
            state=shoal.session.state.value, session_timeout_s=shoal.session.timeout_s
        ),
        database=DatabaseOut(kind=shoal.database.kind),
    )


async def _queues(shoal: Services) -> list[QueueOut]:
    groups = await shoal.queue.groups()
    depths = await asyncio.gather(*(shoal.queue.depth(group) for group in groups))
    return [QueueOut(group=g, depth=d) for g, d in zip(groups, depths, strict=True)]


def _masters(shoal: Services, owners: Mapping[int, OwnerInfo]) -> list[MasterOut]:
    owned: defaultdict[str, list[int]] = defaultdict(list)
    for index, owner in sorted(owners.items()):
        owned[owner.owner_id].append(index)
    members = shoal.masters.current()
    return [
        MasterOut(**_announced(members[member]), partitions=owned[member])
        for member in sorted(members)
    ]


def _workers(shoal: Services) -> list[WorkerOut]:
    members = shoal.workers.current()
    found = []
    for member in sorted(members):
        data = members[member].data
        found.append(
            WorkerOut(
                **_announced(members[member]),
                group=str(data.get("group", "")),
                slots=_count(data.get("slots")),
                running=_count(data.get("running")),
            )
        )
    return found


def _announced(member: MemberInfo) -> dict[str, Any]:
    """What members of both kinds say of themselves. They may run another version than we do."""
    host = member.data.get("host")
    return {
        "id": member.id,
        "address": str(member.data.get("address", "")),
        "host": host if isinstance(host, str) else None,
        "started_at": _instant(member.data.get("started_at")),
    }


def _instant(value: Any) -> datetime | None:
    """Members announce RFC 3339."""
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (TypeError, ValueError):
        return None


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _partition(index: int, owner: OwnerInfo | None) -> PartitionOut:
    if owner is None:
        return PartitionOut(index=index, owner=None, epoch=0)
    return PartitionOut(index=index, owner=owner.owner_id, epoch=owner.epoch)


@router.get("/task-types", summary="List task types")
async def task_types() -> list[TaskTypeOut]:
    """The task types that this process can check definitions of, and their parameters."""
    return [
        TaskTypeOut(name=name, params_schema=load_task_type(name).Params.model_json_schema())
        for name in task_type_names()
    ]
