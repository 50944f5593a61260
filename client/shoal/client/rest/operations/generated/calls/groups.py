"""What is sent for each operation about groups.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def change_group(
    name: str,
    body: types.GroupChange,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.GroupOut]:
    """Change a group.

    Changes what it is for.
    """
    return Call(
        "PATCH",
        f"/groups/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
        repeat=True,
    )


def create_group(body: types.GroupIn) -> Call[types.GroupOut]:
    """Make a group.

    A group without members; owners of projects give it roles.
    """
    return Call("POST", "/groups", body=body)


def delete_group(
    name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a group.

    Its members lose the roles that they had by it, within a second.
    """
    return Call(
        "DELETE",
        f"/groups/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_group_member(name: str, member: str) -> Call[None]:
    """Remove a member from a group.

    It loses the roles that it had by the group alone, within a second.
    """
    return Call("DELETE", f"/groups/{part(str(name))}/members/{part(str(member))}")


def get_group(name: str) -> Call[types.GroupOut]:
    """Show a group.

    One group with its members.
    """
    return Call("GET", f"/groups/{part(str(name))}")


def list_groups(*, limit: int | None = None, cursor: str | None = None) -> Call[types.GroupPage]:
    """List groups.

    Groups by name, with their members.
    """
    return Call("GET", "/groups", query={"limit": limit, "cursor": cursor})


def put_group_member(name: str, member: str) -> Call[types.GroupOut]:
    """Add a member to a group.

    A user or a service account; it has the roles of the group within a second.
    """
    return Call("PUT", f"/groups/{part(str(name))}/members/{part(str(member))}")
