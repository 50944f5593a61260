"""What is sent for each operation about projects.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def get_project(project: str) -> Call[types.ProjectOut]:
    """Show a project.

    One project.
    """
    return Call("GET", f"/projects/{part(str(project))}")


def list_projects(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ProjectPage]:
    """List projects.

    Projects by name.
    """
    return Call("GET", "/projects", query={"limit": limit, "cursor": cursor})


def put_project(
    project: str,
    body: types.ProjectIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.ProjectOut]:
    """Create or change a project.

    Sets the description; the project is created if it is missing. Nothing else creates one.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )
