"""The cluster: members, partitions, queues; installed task types."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.plugins import usable_plugins
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.cluster.health import ANSWER_S, database_trouble, given_up
from shoal.api.operations.cluster.view import ClusterView
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.cluster import (
    BacklogOut,
    ClusterOut,
    DamagedZnodeOut,
    DatabaseOut,
    HistoryExportOut,
    MasterGroupOut,
    MasterOut,
    PartitionOut,
    QueueOut,
    SetAsideOut,
    TaskTypeOut,
    WorkerOut,
    ZooKeeperOut,
)
from shoal.api.services import ClusterDep, PastDep, StoreDep
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.api.web.store import Store
from shoal.coordination import BalancedJobs, GroupMetadata, Mismatch, quarantine, read_group
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.membership import MemberInfo
from shoal.coordination.cluster.owners import OwnerInfo
from shoal.core.access.permissions import Permission
from shoal.core.alerts.shares import ALERT_GROUP
from shoal.core.errors import ShoalError
from shoal.core.runs.quarantine import ItemConsumer, QuarantinedItem
from shoal.core.runs.states import TaskState
from shoal.insight.past.client import PastRuns
from shoal.runtime.plugins import load_task_type, task_type_names

router = strict_router("cluster")

log = structlog.get_logger()

_EXPORT_IS_BEHIND = timedelta(hours=2)  # masters export every quarter of an hour


@router.get("/cluster", summary="Show the cluster")
@needs(Permission.CLUSTER_READ)
async def get_cluster(store: StoreDep, cluster: ClusterDep, past: PastDep) -> ClusterOut:
    """Live members, the owner and epoch of each partition, the group of masters, the work."""
    # Alone, before all that is asked at once: it is to be their time, not that of the crowd.
    zookeeper_s = await _latency_s(cluster.queue.groups())
    database_s = await _latency_s(store.database.ping())
    owners, queues, group, work, damaged, alert_servers = await asyncio.gather(
        cluster.owners.all_owners(cluster.partitions),
        queues_of(cluster),
        group_of(cluster),
        work_of(store, cluster),
        quarantine.records(cluster.session),
        _alert_servers(store, cluster),
    )
    # Their ids in the group change with every session; as clients they go by their master ids.
    leader = group.leader.client_id if group.leader else None
    return ClusterOut(
        masters=masters_of(cluster, owners, leader),
        workers=workers_of(cluster),
        group=MasterGroupOut(
            state=group.state.value,
            generation=group.generation,
            leader=leader,
            members=sorted(member.client_id for member in group.members.values()),
        ),
        partitions=[
            partition_of(index, owners.get(index), work) for index in range(cluster.partitions)
        ],
        backlog=_backlog(queues, work),
        set_aside=[SetAsideOut(**vars(one)) for one in work.set_aside] if work else [],
        queues=queues,
        zookeeper=ZooKeeperOut(
            state=cluster.session.state.value,
            session_timeout_s=cluster.session.timeout_s,
            latency_s=zookeeper_s,
        ),
        database=DatabaseOut(kind=store.database.kind, latency_s=database_s),
        damaged_znodes=[
            DamagedZnodeOut(path=each.path, reason=each.reason, size=each.size, at=each.at)
            for each in damaged
        ],
        alert_servers=alert_servers,
        history=await _history(store, past),
    )


async def _alert_servers(store: Store, cluster: ClusterView) -> list[str] | None:
    """Return the members of their group; None: nothing is defined, or it is unknown."""
    try:
        async with (
            asyncio.timeout(ANSWER_S),
            store.unit_of_work(read_only=True) as uow,
        ):
            if not await uow.alert_jobs.changes():
                return None
        found = await read_group(cluster.session, BalancedJobs.group_name(ALERT_GROUP))
    except (ShoalError, TimeoutError) as error:
        log.warning("alert servers unknown", error=str(error))
        return None
    return sorted(member.client_id for member in found.members.values())


async def _history(store: Store, past: PastRuns) -> HistoryExportOut | None:
    """Return how the export of the history stands; None: there is none, or it is unknown."""
    if not past.is_on:
        return None
    try:
        async with (
            asyncio.timeout(ANSWER_S),
            store.unit_of_work(read_only=True) as uow,
        ):
            found = await uow.verified_history.get()
    except (ShoalError, TimeoutError) as error:
        log.warning("the export of the history is unknown", error=str(error))
        return None
    at, trouble, since = found.verified_at, found.trouble, found.trouble_since
    if trouble is None and at is not None and store.clock() - at > _EXPORT_IS_BEHIND:
        trouble, since = "no export has been completed since; is there a master?", at
    return HistoryExportOut(verified_at=at, trouble=trouble, since=since)


async def _latency_s(question: Awaitable[object]) -> float | None:
    """Return how long an answer takes; None: it does not come."""
    begun = time.monotonic()
    try:
        async with asyncio.timeout(ANSWER_S):
            await question
    except (ShoalError, TimeoutError):
        return None
    return time.monotonic() - begun


async def group_of(cluster: ClusterView) -> GroupMetadata:
    """Return the masters' group; an empty one while its state is damaged: they repair that."""
    try:
        return await read_group(cluster.session, layout.MASTERS_GROUP)
    except Mismatch as error:
        log.warning("group of the masters unreadable", error=str(error))
        return GroupMetadata(layout.MASTERS_GROUP)


@dataclass(frozen=True)
class PartitionWork:
    """What the database says there is to do; the first two by partition."""

    open_instances: Mapping[int, int]
    pending_commands: Mapping[int, int]
    held: Mapping[TaskState, int]
    set_aside: Sequence[QuarantinedItem]


async def work_of(store: Store, cluster: ClusterView) -> PartitionWork | None:
    """Return what there is to do; None while the database is away: the rest is still of use."""
    try:
        async with (
            asyncio.timeout(ANSWER_S),
            store.unit_of_work(read_only=True) as uow,
        ):
            return PartitionWork(
                await uow.instance_counts.open(range(cluster.partitions)),
                await uow.commands.backlog(),
                await uow.tasks.counts([TaskState.CLAIMED, TaskState.RUNNING]),
                await uow.quarantine.list(consumer=ItemConsumer.MASTERS),
            )
    except (ShoalError, TimeoutError) as error:
        log.warning("backlog unknown", error=str(error))
        return None


async def queues_of(cluster: ClusterView) -> list[QueueOut]:
    """Return how much waits for the workers of each group."""
    groups = await cluster.queue.groups()
    depths = await asyncio.gather(*(cluster.queue.depth(group) for group in groups))
    return [QueueOut(group=g, depth=d) for g, d in zip(groups, depths, strict=True)]


def masters_of(
    cluster: ClusterView, owners: Mapping[int, OwnerInfo], leader: str | None
) -> list[MasterOut]:
    """Return the live masters by id; ``leader``: the one that leads their group."""
    owned: defaultdict[str, list[int]] = defaultdict(list)
    for index, owner in sorted(owners.items()):
        owned[owner.owner_id].append(index)
    members = cluster.masters.current()
    return [
        MasterOut(
            **_announced(cluster, members[member]),
            partitions=owned[member],
            leads=member == leader,
            database=database_trouble(members, member),
            given_up=given_up(members[member]),
        )
        for member in sorted(members)
    ]


def workers_of(cluster: ClusterView) -> list[WorkerOut]:
    """Return the live workers by id."""
    members = cluster.workers.current()
    found = []
    for member in sorted(members):
        data = members[member].data
        unreachable = data.get("unreachable")
        found.append(
            WorkerOut(
                **_announced(cluster, members[member]),
                group=str(data.get("group", "")),
                slots=_count(data.get("slots")),
                running=_count(data.get("running")),
                paused=_text(data.get("paused")),
                logs_not_archived=_text(data.get("logs_not_archived")),
                unreachable=[str(a) for a in unreachable] if isinstance(unreachable, list) else [],
            )
        )
    return found


def _text(told: object) -> str | None:
    return told if isinstance(told, str) else None


def _announced(cluster: ClusterView, member: MemberInfo) -> dict[str, Any]:
    """What members of both kinds say of themselves. They may run another version than we do."""
    host = member.data.get("host")
    return {
        "id": member.id,
        "address": str(member.data.get("address", "")),
        "host": host if isinstance(host, str) else None,
        "started_at": _instant(member.data.get("started_at")),
        "clock_ahead_s": cluster.ahead_s(member),
    }


def _instant(value: Any) -> datetime | None:
    """Members announce RFC 3339."""
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (TypeError, ValueError):
        return None


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def partition_of(index: int, owner: OwnerInfo | None, work: PartitionWork | None) -> PartitionOut:
    """Return a partition as it is shown."""
    return PartitionOut(
        index=index,
        owner=owner.owner_id if owner else None,
        epoch=owner.epoch if owner else 0,
        open_instances=work.open_instances.get(index, 0) if work else None,
        pending_commands=work.pending_commands.get(index, 0) if work else None,
    )


def _backlog(queues: Sequence[QueueOut], work: PartitionWork | None) -> BacklogOut | None:
    if work is None:
        return None
    return BacklogOut(
        pending_commands=sum(work.pending_commands.values()),
        open_instances=sum(work.open_instances.values()),
        queued=sum(queue.depth for queue in queues),
        claimed=work.held[TaskState.CLAIMED],
        running=work.held[TaskState.RUNNING],
    )


@router.get("/task-types", summary="List task types")
@needs(Permission.SIGNED_IN)
async def list_task_types(limit: Limit = 50, cursor: Cursor = None) -> Page[TaskTypeOut]:
    """The task types that this process can check definitions of, and their parameters."""
    names, following = part_of("task-types", sorted(task_type_names()), str, limit, cursor)

    def shown(name: str) -> TaskTypeOut:
        return TaskTypeOut(name=name, params_schema=load_task_type(name).Params.model_json_schema())

    return Page(items=usable_plugins(names, shown), next=following)
