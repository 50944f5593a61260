"""What is sent for each operation about cluster.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def get_cluster() -> Call[types.ClusterOut]:
    """Show the cluster.

    Live members, the owner and epoch of each partition, the group of masters, the work.
    """
    return Call("GET", "/cluster")


def list_masters(*, limit: int | None = None, cursor: str | None = None) -> Call[types.MasterPage]:
    """List masters.

    Live masters with the partitions that each owns, by id.
    """
    return Call("GET", "/masters", query={"limit": limit, "cursor": cursor})


def list_partitions(
    *, owner: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.PartitionPage]:
    """List partitions.

    Partitions with owner, epoch and what there is to do in each, by number.
    """
    return Call("GET", "/partitions", query={"owner": owner, "limit": limit, "cursor": cursor})


def list_queue_entries(
    *, group: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.QueueEntryPage]:
    """List what waits for workers.

    Tasks of all projects, by worker group, in the order in which its workers claim them.

    Those of projects that the caller may not see count, and say no names. Near neighbours may
    overtake each other where several workers claim at once. A page may have fewer items than asked
    for although more follow: the list is over when `next` is null.
    """
    return Call("GET", "/queue-entries", query={"group": group, "limit": limit, "cursor": cursor})


def list_takeovers(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.TakeoverPage]:
    """List takeovers.

    Changes of partitions' owners, newest first; the newest 10,000 are kept.
    """
    return Call("GET", "/takeovers", query={"limit": limit, "cursor": cursor})


def list_task_types(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.TaskTypePage]:
    """List task types.

    The task types that this process can check definitions of, and their parameters.
    """
    return Call("GET", "/task-types", query={"limit": limit, "cursor": cursor})


def list_worker_groups(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.WorkerGroupPage]:
    """List worker groups.

    Groups of workers, with what waits for each: also those that have no worker at all.
    """
    return Call("GET", "/worker-groups", query={"limit": limit, "cursor": cursor})


def list_workers(
    *,
    group: str | None = None,
    paused: bool | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.WorkerPage]:
    """List workers.

    Live workers with their slots and how many are taken, by id.
    """
    return Call(
        "GET",
        "/workers",
        query={"group": group, "paused": paused, "limit": limit, "cursor": cursor},
    )
