"""What is sent for each operation about grants.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_grant(
    project: str, taker: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Take a grant back.

    Nothing new is started; active runs continue. Waiting tasks no longer see runs here.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/grants/{part(str(taker))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_resource_grant(
    project: str, taker: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Stop sharing with another project.

    Tasks that start from now on get none of the files; those that run go on.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/resource-grants/{part(str(taker))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_grant(project: str, taker: str) -> Call[types.GrantOut]:
    """Show a grant.

    What the tasks of one other project may do with this one.
    """
    return Call("GET", f"/projects/{part(str(project))}/grants/{part(str(taker))}")


def get_resource_grant(project: str, taker: str) -> Call[types.ResourceGrantOut]:
    """Show shared files.

    Which files of this project the tasks of one other project may use.
    """
    return Call("GET", f"/projects/{part(str(project))}/resource-grants/{part(str(taker))}")


def list_grants(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.GrantPage]:
    """List grants.

    What the tasks of other projects may do with this one.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/grants", query={"limit": limit, "cursor": cursor}
    )


def list_resource_grants(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ResourceGrantPage]:
    """List shared files.

    Which files of this project the tasks of other projects may use.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/resource-grants",
        query={"limit": limit, "cursor": cursor},
    )


def put_grant(
    project: str,
    taker: str,
    body: types.GrantIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.GrantOut]:
    """Let another project do something.

    All editors of that project can use it then: their workflows run what they may.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/grants/{part(str(taker))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_resource_grant(
    project: str,
    taker: str,
    body: types.ResourceGrantIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.ResourceGrantOut]:
    """Share files with another project.

    Replaces what is shared. Tasks of that project name a file as PROJECT:PATH.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/resource-grants/{part(str(taker))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )
