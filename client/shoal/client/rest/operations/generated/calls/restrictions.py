"""What is sent for each operation about restrictions.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_restriction(
    what: types.Restricted,
    name: str,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[None]:
    """Open a worker group or an environment to all projects.

    Every project may use it then.
    """
    return Call(
        "DELETE",
        f"/restrictions/{part(str(what))}/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_restriction(what: types.Restricted, name: str) -> Call[types.RestrictionOut]:
    """Show a restriction.

    Which projects may use it; 404: all may.
    """
    return Call("GET", f"/restrictions/{part(str(what))}/{part(str(name))}")


def list_restrictions(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.RestrictionPage]:
    """List restrictions.

    Worker groups and environments that some projects alone may use.
    """
    return Call("GET", "/restrictions", query={"limit": limit, "cursor": cursor})


def put_restriction(
    what: types.Restricted,
    name: str,
    body: types.RestrictionIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.RestrictionOut]:
    """Keep a worker group or an environment for some projects.

    Replaces the projects that may use it; an empty list: none may.

    What runs goes on. Tasks of other projects that start later than a second from now fail.
    """
    return Call(
        "PUT",
        f"/restrictions/{part(str(what))}/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )
