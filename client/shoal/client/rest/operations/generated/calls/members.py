"""What is sent for each operation about members.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_member(
    project: str,
    kind: types.HolderKind,
    name: str,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[None]:
    """Take a role away.

    It counts within a second. Runs that were started go on.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/members/{part(str(kind))}/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_member(project: str, kind: types.HolderKind, name: str) -> Call[types.MemberOut]:
    """Show a role.

    The role that a member was given in a project, without roles through groups.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/members/{part(str(kind))}/{part(str(name))}"
    )


def list_members(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.MemberPage]:
    """List the members of a project.

    Users, service accounts and groups with their roles; administrators are not among them.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/members", query={"limit": limit, "cursor": cursor}
    )


def put_member(
    project: str,
    kind: types.HolderKind,
    name: str,
    body: types.MemberIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.MemberOut]:
    """Give a role.

    It counts within a second, instead of the role that it had.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/members/{part(str(kind))}/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )
