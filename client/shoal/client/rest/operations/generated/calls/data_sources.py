"""What is sent for each operation about data sources.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_data_source(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a data source.

    Tasks that name it fail from now on, with the reason.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/data-sources/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_data_source(project: str, name: str) -> Call[types.DataSourceOut]:
    """Show a data source.

    One data source, without its password.
    """
    return Call("GET", f"/projects/{part(str(project))}/data-sources/{part(str(name))}")


def list_data_source_kinds(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.DataSourceKindPage]:
    """List kinds of data sources.

    What each kind takes, with the JSON Schema of its options.
    """
    return Call("GET", "/data-source-kinds", query={"limit": limit, "cursor": cursor})


def list_data_sources(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.DataSourcePage]:
    """List data sources.

    The data sources of a project by name, without those that others share with it.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/data-sources",
        query={"limit": limit, "cursor": cursor},
    )


def put_data_source(
    project: str,
    name: str,
    body: types.DataSourceIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.DataSourceOut]:
    """Make or change a data source.

    Replaces everything but a password that the request leaves out.

    Tasks that start from now on use it as it is then. A password is kept for the same kind, host
    and port alone: 409 asks for it otherwise.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/data-sources/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def test_data_source(project: str, name: str, body: types.ProbeIn) -> Call[types.ProbeOut]:
    """Try a data source.

    Has a worker sign in and ask which server it is. Takes up to 30 s; nothing is changed.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/data-sources/{part(str(name))}/test",
        body=body,
        repeat=True,
    )
