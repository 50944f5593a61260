"""What is sent for each operation about health.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def discard_quarantined_item(body: types.QuarantinedRef) -> Call[None]:
    """Discard a quarantined item.

    Forget an item. An alert that is discarded sends no further reminders.

    Items of masters are what keeps a run, schedule or command from its work, and cannot be
    discarded.
    """
    return Call("POST", "/quarantine-discards", body=body)


def get_health() -> Call[types.Health]:
    """State of the cluster.

    The state of the cluster. The HTTP status is always 200; details need access to it.
    """
    return Call("GET", "/health")


def get_liveness() -> Call[types.Live]:
    """Is the process there?.

    Answers as long as the process does; for supervisors. Needs no token.
    """
    return Call("GET", "/health/live")


def get_readiness() -> Call[types.Health]:
    """Can requests be served?.

    As /health, with the HTTP status 503 while commands would be accepted in vain.

    That is while the database or ZooKeeper is away, while the database is read-only or full, while
    they are bound to different clusters, or while the database refuses the writes of the owners of
    all partitions.
    """
    return Call("GET", "/health/ready")


def list_quarantined_items(
    *,
    consumer: types.ItemConsumer | None = None,
    kind: types.ItemKind | None = None,
    project: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.QuarantinedPage]:
    """List quarantined items.

    What is quarantined, with the reasons; the item that failed last comes first.
    """
    return Call(
        "GET",
        "/quarantine",
        query={
            "consumer": consumer,
            "kind": kind,
            "project": project,
            "limit": limit,
            "cursor": cursor,
        },
    )


def retry_quarantined_item(body: types.QuarantinedRef) -> Call[types.QuarantinedOut]:
    """Try a quarantined item again.

    Request a retry. The item leaves the list when it works, or stays with the new reason.

    A skipped event becomes the alerts that it would have become then. A message is sent again. A
    row of the history is exported with the next export, and a roll-up loaded with the next loading.
    """
    return Call("POST", "/quarantine-retries", body=body)
