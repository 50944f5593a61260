"""What is sent for each operation about project parameters.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_parameter(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Remove a project's parameter.

    Tasks that start from now on no longer see it, except tasks of earlier runs.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/parameters/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_parameter(project: str, name: str) -> Call[types.ParameterOut]:
    """Show a project's parameter.

    One parameter of a project.
    """
    return Call("GET", f"/projects/{part(str(project))}/parameters/{part(str(name))}")


def list_parameters(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ParameterPage]:
    """List a project's parameters.

    The parameters of a project by name.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/parameters",
        query={"limit": limit, "cursor": cursor},
    )


def put_parameter(
    project: str,
    name: str,
    body: types.ParameterIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.ParameterOut]:
    """Set a project's parameter.

    Runs that have started keep the value they started with.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/parameters/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )
