"""What is sent for each operation about concurrency groups.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_concurrency_group(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a concurrency group.

    Refused while the newest version of a workflow names it, or a task has or awaits a slot.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/concurrency-groups/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_concurrency_group(project: str, name: str) -> Call[types.ConcurrencyGroupDetail]:
    """Show a concurrency group.

    One group with the attempts that have its slots and those that wait for one.
    """
    return Call("GET", f"/projects/{part(str(project))}/concurrency-groups/{part(str(name))}")


def list_concurrency_groups(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ConcurrencyGroupPage]:
    """List concurrency groups.

    The concurrency groups of a project by name.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/concurrency-groups",
        query={"limit": limit, "cursor": cursor},
    )


def put_concurrency_group(
    project: str,
    name: str,
    body: types.ConcurrencyGroupIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.ConcurrencyGroupOut]:
    """Make or change a concurrency group.

    Sets the number of slots, at once.

    Fewer slots end nothing: as tasks end, no others start until few enough are left.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/concurrency-groups/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )
