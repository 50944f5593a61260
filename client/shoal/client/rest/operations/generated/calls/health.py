"""What is sent for each operation about health.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


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
