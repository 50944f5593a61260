"""What is sent for each operation about environments.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_environment(
    name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete an environment.

    Refused while the newest version of a workflow names it; the problem lists them.

    Tasks of older versions that are still run, and name it, fail from now on.
    """
    return Call(
        "DELETE",
        f"/environments/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_environment(name: str) -> Call[types.EnvironmentDetail]:
    """Show an environment.

    One environment, and the workflows that name it, as far as the caller may see them.
    """
    return Call("GET", f"/environments/{part(str(name))}")


def list_environments(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.EnvironmentPage]:
    """List environments.

    Environments by name: those that a project which the caller may read may use.
    """
    return Call("GET", "/environments", query={"limit": limit, "cursor": cursor})


def put_environment(
    name: str,
    body: types.EnvironmentIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.EnvironmentOut]:
    """Make or change an environment.

    Replaces everything. Tasks that start from now on have it as it is then.

    A worker group that is taken away fails the tasks that are for it, when they start.
    """
    return Call(
        "PUT",
        f"/environments/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )
