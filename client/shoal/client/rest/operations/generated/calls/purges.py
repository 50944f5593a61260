"""What is sent for each operation about purges.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def create_purge(body: types.PurgeIn) -> Call[types.PurgeOut]:
    """Let history go.

    Stores the request durably; each master sees to its own partitions within seconds.

    What is not finished, or needed by something that is not, stays, and so do the newest
    instances of each workflow (`keep_newest_instances`), whatever is asked for.
    """
    return Call("POST", "/purges", body=body)


def get_purge(purge_id: int) -> Call[types.PurgeOut]:
    """Show a purge.

    How far the masters have come.
    """
    return Call("GET", f"/purges/{part(str(purge_id))}")


def get_stores() -> Call[types.StoresOut]:
    """Show how large the history is.

    Rows and bytes of each table, as the database estimates them without counting.
    """
    return Call("GET", "/stores")


def list_purges(*, limit: int | None = None, cursor: str | None = None) -> Call[types.PurgePage]:
    """List purges.

    Purges, newest first. They are forgotten after 30 days.
    """
    return Call("GET", "/purges", query={"limit": limit, "cursor": cursor})
