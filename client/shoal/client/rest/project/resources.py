"""Resources over REST: files of projects, in versions."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part
from shoal.client.rest.types import ResourceJson

_PIECE = 1 << 20  # bytes


class ResourceCalls:
    """The part of ``ShoalClient`` about files that tasks use."""

    _connection: Connection

    def resources(self, project: str, folder: str = "") -> Iterator[ResourceJson]:
        """Yield the newest versions of a project's files, or of those below a folder, by path."""
        path = f"/projects/{part(project)}/resources"
        query = {"folder": folder or None}
        return cast("Iterator[ResourceJson]", self._connection.pages(path, query))

    def resource(self, project: str, path: str, version: int | None = None) -> ResourceJson:
        """Return a version of a file, or the newest one, without its content."""
        query = {"version": version}
        return cast(ResourceJson, self._connection.get(_path("resources", project, path), query))

    def resource_versions(self, project: str, path: str) -> Iterator[ResourceJson]:
        """Yield the versions of a file, the newest first."""
        where = _path("resource-versions", project, path)
        return cast("Iterator[ResourceJson]", self._connection.pages(where, {}))

    def put_resource(
        self,
        project: str,
        path: str,
        content: bytes | Path,
        *,
        expected_version: int | None = None,
    ) -> ResourceJson:
        """Upload a file; the same content as the newest version's makes no new one.

        ``expected_version``: refuse unless this is the newest, 0: unless there is none.
        """
        answer = self._connection.put_in(
            project,
            _path("resource-contents", project, path),
            {"expected_version": expected_version},
            send=self._connection.upload,
            content=_FilePieces(content) if isinstance(content, Path) else content,
        )
        return cast(ResourceJson, answer)

    @contextmanager
    def resource_content(
        self, project: str, path: str, version: int | None = None
    ) -> Iterator[Iterator[bytes]]:
        """Open a version of a file; the pieces of its content are read within the block."""
        where = _path("resource-contents", project, path)
        with self._connection.stream(where, query={"version": version}) as response:
            yield response.iter_bytes(_PIECE)

    def delete_resource(self, project: str, path: str) -> int:
        """Delete a file, or with a slash at the end all below a folder; return how many."""
        answer = self._connection.json("DELETE", _path("resources", project, path))
        return int(answer["files"])


class _FilePieces:
    """A file's content, from its beginning each time that it is sent."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        with self._file.open("rb") as source:
            while piece := source.read(_PIECE):
                yield piece


def _path(what: str, project: str, path: str) -> str:
    return f"/projects/{part(project)}/{what}/{'/'.join(part(one) for one in path.split('/'))}"
