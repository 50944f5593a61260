"""What is sent for each operation about resources.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, StreamCall, part, parts

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_resource(
    project: str, path: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[types.DeletedOut]:
    """Delete a resource.

    Deletes a file; with a slash at the end of the path, all files below the folder.

    A folder has no ETag: `If-Match: *` says that there is one.
    Runs that have started go on with it. Its versions can be downloaded by their numbers until
    masters remove them.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/resources/{parts(path)}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def download_resource(project: str, path: str, *, version: int | None = None) -> StreamCall:
    """Download a resource.

    The content of a version of a file.
    """
    return StreamCall(
        f"/projects/{part(str(project))}/resource-contents/{parts(path)}",
        query={"version": version},
    )


def get_resource(project: str, path: str, *, version: int | None = None) -> Call[types.ResourceOut]:
    """Show a resource.

    A version of a file, without its content. The ETag identifies the content.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/resources/{parts(path)}", query={"version": version}
    )


def list_resource_versions(
    project: str, path: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ResourcePage]:
    """List the versions of a resource.

    The versions of a file, the newest first. Versions of a deleted file are kept for a while.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/resource-versions/{parts(path)}",
        query={"limit": limit, "cursor": cursor},
    )


def list_resources(
    project: str, *, folder: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.ResourcePage]:
    """List resources.

    The newest versions of a project's files, by path.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/resources",
        query={"folder": folder, "limit": limit, "cursor": cursor},
    )


def upload_resource(
    project: str,
    path: str,
    content: bytes | Iterable[bytes],
    *,
    expected_version: int | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.ResourceOut]:
    """Upload a resource.

    The body is the file, byte for byte.

    The same content as that of the newest version makes no new one, whatever the condition. Runs
    that start from now on use it; those that have started go on with what they began with.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/resource-contents/{parts(path)}",
        query={"expected_version": expected_version},
        headers={"if-match": if_match, "if-none-match": if_none_match},
        content=content,
    )
