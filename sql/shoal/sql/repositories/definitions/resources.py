"""Resources of projects: which versions there are, and what each is called in the storage.

An upload is a row first, so that its object is never forgotten. When the object is there, the row
gets its version, and the one before it ends, in one transaction. A version counts from its
``created_at`` until its ``ended_at``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    CompoundSelect,
    Row,
    Select,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    union,
    update,
)

from shoal.core.access.grants import EVERY_PROJECT
from shoal.core.definition.resources import path_problem
from shoal.core.runs.commands import CommandState
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound, PathTaken, ProjectFull, ResourceChanged, UploadExpired
from shoal.sql.repositories.definitions.projects import Projects
from shoal.sql.schema.access import resource_grant
from shoal.sql.schema.tables import (
    HAS_NOT_ENDED,
    IS_CURRENT,
    IS_OF_RUN,
    IS_RESTART,
    IS_UPLOAD,
    command,
    project,
    resource,
    workflow_instance,
)
from shoal.sql.statements.rows import enough, leave_out, readable, record_of, require_numbers

_KIND = "resource"
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class StoredResource:
    """One version of a file. ``ended_at``: since then it has been replaced or deleted.

    ``instance_id``: the run that has made it; None: a person has.
    """

    project: str
    path: str
    version: int
    sha256: str
    size: int  # bytes
    object: str
    created_at: datetime
    ended_at: datetime | None
    instance_id: int | None = None


@dataclass(frozen=True)
class PendingUpload:
    """A file on its way into the storage."""

    id: int
    project: str
    path: str
    object: str


@dataclass(frozen=True)
class Unneeded:
    """A row that may go, after its object in the storage."""

    id: int
    object: str


_ResourceList = list[StoredResource]
_UnneededList = list[Unneeded]
_UploadList = list[PendingUpload]
_NameList = list[str]


class Resources:
    """The ``resource`` table."""

    def __init__(self, connection: Connection, projects: Projects) -> None:
        self._connection = connection
        self._projects = projects

    # -- changes ------------------------------------------------------------------------------

    async def begin(self, home: str, path: str, name: str, at: datetime) -> PendingUpload:
        """Note an upload whose object will be ``name``. The project is made too."""
        owner = await self._projects.ensure(home, at)
        await self._connection.execute(
            insert(resource).values(project_id=owner.id, path=path, object=name, started_at=at)
        )
        row = await self._connection.first(select(resource.c.id).where(resource.c.object == name))
        assert row is not None
        return PendingUpload(row.id, home, path, name)

    async def reserve(
        self, home: str, objects: Mapping[str, str], instance_id: int, at: datetime
    ) -> None:
        """Note the uploads that an attempt of a run may make: paths by the names of their objects.

        Those that are noted already stay as they are, so it can be repeated. They are kept for as
        long as the run is open.
        """
        owner = await self._projects.ensure(home, at)
        fields = {"project_id": owner.id, "started_at": at, "instance_id": instance_id}
        rows = [{**fields, "path": path, "object": name} for name, path in objects.items()]
        await self._connection.insert_new(resource, ["object"], rows)

    async def reserved(self, home: str, objects: Collection[str], instance_id: int) -> _UploadList:
        """Return those of these uploads of a run that are noted, and are not versions yet."""
        query = select(resource).join_from(resource, project)
        query = query.where(
            project.c.name == home,
            resource.c.object.in_(sorted(objects)),
            resource.c.instance_id == instance_id,
            IS_UPLOAD,
        )
        rows = await self._connection.rows(query.order_by(resource.c.id))
        return [PendingUpload(row.id, home, row.path, row.object) for row in rows]

    async def complete(
        self,
        upload: PendingUpload,
        sha256: str,
        size: int,
        at: datetime,
        *,
        most: int,
        expected: int | None = None,
    ) -> tuple[StoredResource, bool]:
        """Make an upload the newest version of its file; return it and whether it differs.

        With the same content as the newest one it stays an upload, which the caller forgets.
        ``most``: bytes of all versions of the project. ``expected``: the version that must be the
        newest, 0: none. Raises ResourceRefused.
        """
        owner = await self._projects.hold(upload.project, at)
        row = await self._connection.first(_named(upload.project, upload.path).where(IS_CURRENT))
        before = None if row is None else readable([row], _resource, _KIND)[0]
        found = 0 if before is None else before.version
        if before is not None and (before.sha256, before.size) == (sha256, size):
            return before, False  # perhaps by the same request, whose answer was lost
        if expected is not None and expected != found:
            raise ResourceChanged(upload.project, upload.path, expected, found)
        await self._require_free(upload)
        taken = await self.bytes_taken(upload.project) + size
        if taken > most:
            raise ProjectFull(upload.project, taken, most)
        if before is not None:
            at = max(at, before.created_at + _TICK)  # by another clock
        await self._end(owner.id, [resource.c.path == upload.path], at)
        changed = await self._connection.execute(
            update(resource)
            .where(resource.c.id == upload.id, IS_UPLOAD)
            .values(
                version=await self._last_version(owner.id, upload.path) + 1,
                sha256=sha256,
                size=size,
                created_at=at,
            )
        )
        if changed.rowcount != 1:
            raise UploadExpired(upload.project, upload.path)
        return await self.get(upload.project, upload.path), True

    async def delete(self, home: str, path: str, at: datetime, *, is_folder: bool = False) -> int:
        """Delete a file, or all files below a folder; return how many. Raises NotFound.

        Runs that have started go on with them.
        """
        owner = await self._projects.hold(home, at)
        ended = await self._end(
            owner.id, [_below(path) if is_folder else resource.c.path == path], at
        )
        if not ended:
            raise NotFound(_KIND, f"{home}/{path}{'/' if is_folder else ''}")
        return ended

    async def forget(self, rows: Collection[int]) -> None:
        """Delete rows whose objects are gone."""
        await self._connection.execute(delete(resource).where(resource.c.id.in_(sorted(rows))))

    async def _end(self, owner: int, which: list[ColumnElement[bool]], at: datetime) -> int:
        result = await self._connection.execute(
            update(resource)
            .where(resource.c.project_id == owner, IS_CURRENT, *which)
            .values(ended_at=at)
        )
        return result.rowcount

    async def _last_version(self, owner: int, path: str) -> int:
        row = await self._connection.first(
            select(func.max(resource.c.version).label("last")).where(
                resource.c.project_id == owner, resource.c.path == path
            )
        )
        return 0 if row is None or row.last is None else int(row.last)

    async def _require_free(self, upload: PendingUpload) -> None:
        """Raise PathTaken if the path is a folder, or lies below a file."""
        parts = upload.path.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts))]
        row = await self._connection.first(
            select(resource.c.path)
            .join_from(resource, project)
            .where(
                project.c.name == upload.project,
                IS_CURRENT,
                or_(resource.c.path.in_(above), _below(upload.path)),
            )
            .limit(1)
        )
        if row is not None:
            raise PathTaken(upload.project, upload.path, row.path)

    # -- questions ----------------------------------------------------------------------------

    async def get(self, home: str, path: str, version: int | None = None) -> StoredResource:
        """Return a version of a file, or the newest one. Raises NotFound.

        The versions of a deleted file can be had by their numbers for a while.
        """
        which = IS_CURRENT if version is None else resource.c.version == version
        row = await self._connection.first(_named(home, path).where(which))
        if row is None:
            wanted = f"{home}/{path}" if version is None else f"{home}/{path}@{version}"
            raise NotFound(_KIND, wanted)
        return readable([row], _resource, _KIND)[0]

    async def list(
        self, home: str, folder: str = "", after: str | None = None, limit: int = 50
    ) -> _ResourceList:
        """Return the newest versions of a project's files by path, starting behind ``after``."""
        query = _resources().where(project.c.name == home, IS_CURRENT).order_by(resource.c.path)
        if folder:
            query = query.where(_below(folder))
        if after is not None:
            query = query.where(resource.c.path > after)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _resource, _KIND, limit
        )

    async def versions(
        self, home: str, path: str, below: int | None = None, limit: int = 50
    ) -> _ResourceList:
        """Return the versions of a file, the newest first, starting behind ``below``."""
        query = _named(home, path).where(resource.c.version.is_not(None))
        query = query.order_by(resource.c.version.desc())
        if below is not None:
            query = query.where(resource.c.version < below)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _resource, _KIND, limit
        )

    async def names(self, home: str, limit: int = 2_000) -> _NameList:
        """Return the paths of a project's files, for hints."""
        query = select(resource.c.path).join_from(resource, project)
        query = query.where(project.c.name == home, IS_CURRENT).order_by(resource.c.path)
        return [row.path for row in await self._connection.rows(query.limit(limit))]

    async def bytes_taken(self, home: str) -> int:
        """Return how many bytes all versions of a project's files have."""
        row = await self._connection.first(
            select(func.sum(resource.c.size).label("size"))
            .join_from(resource, project)
            .where(project.c.name == home, resource.c.version.is_not(None))
        )
        return 0 if row is None or row.size is None else int(row.size)

    async def files_at(self, home: str, paths: Collection[str], at: datetime) -> _ResourceList:
        """Return the versions that these files had at that time. Raises UnreadableRow."""
        query = _resources().where(
            project.c.name == home, resource.c.path.in_(sorted(paths)), _counts_at(at)
        )
        return readable(await self._connection.rows(query), _resource, _KIND)

    async def folder_at(self, home: str, folder: str, at: datetime, limit: int) -> _ResourceList:
        """Return the versions that the files below a folder had at that time, by path.

        Raises UnreadableRow.
        """
        query = _resources().where(project.c.name == home, _below(folder), _counts_at(at))
        rows = await self._connection.rows(query.order_by(resource.c.path).limit(limit))
        return readable(rows, _resource, _KIND)

    async def made_by(self, instance_id: int, since: datetime, limit: int) -> _ResourceList:
        """Return the versions that tasks of a run have made since that time, the newest first.

        Raises UnreadableRow.
        """
        query = _resources().where(
            resource.c.instance_id == instance_id,
            resource.c.version.is_not(None),
            resource.c.created_at > since,
        )
        query = query.order_by(resource.c.created_at.desc(), resource.c.id.desc())
        return readable(await self._connection.rows(query.limit(limit)), _resource, _KIND)

    async def pinned(self, home: str, wanted: Collection[tuple[str, int]]) -> _ResourceList:
        """Return those of these versions, (path, number), that there are. Raises UnreadableRow."""
        query = _resources().where(
            project.c.name == home,
            tuple_(resource.c.path, resource.c.version).in_(sorted(wanted)),
        )
        return readable(await self._connection.rows(query), _resource, _KIND)

    async def last_restart(self, instance_id: int) -> datetime | None:
        """Return when an instance was last resumed or had tasks rerun by a request; None: never."""
        row = await self._connection.first(_last_restart(instance_id))
        found: datetime | None = None if row is None else row.at
        return found

    # -- what is no longer needed ------------------------------------------------------------

    async def unneeded(
        self,
        *,
        uploads: datetime,
        ended: datetime | None,
        newest: int,
        limit: int,
        after: int = 0,
    ) -> _UnneededList:
        """Return uploads that began before ``uploads``, and versions that ended before ``ended``.

        By their ids, starting behind ``after``. Of a file that there is, the ``newest`` versions
        stay. ``ended`` None: every version stays.
        An upload of a run stays until the run has been over since ``uploads``. A version stays
        while an unfinished run can use it, however long its tasks wait: a run of the version's
        project, or of a project that it shares files with, uses the versions of the time at which
        the run was created or last restarted, and versions that the run has made since.
        """
        may_be_under_way = (
            exists()
            .where(
                workflow_instance.c.id == resource.c.instance_id,
                or_(
                    workflow_instance.c.finished_at.is_(None),
                    workflow_instance.c.finished_at >= uploads,
                ),
            )
            .correlate(resource)
        )
        which = and_(IS_UPLOAD, resource.c.started_at < uploads, ~may_be_under_way)
        if ended is not None:
            current = resource.alias("current")
            kept = (
                exists()
                .where(
                    current.c.project_id == resource.c.project_id,
                    current.c.path == resource.c.path,
                    current.c.version.is_not(None),
                    current.c.ended_at.is_(None),
                    current.c.version < resource.c.version + newest,
                )
                .correlate(resource)
            )
            runs = _unfinished(ended)
            uses = _used_by(runs, ended)
            may_be_used = (
                exists()
                .where(
                    uses.c.project_id == resource.c.project_id,
                    resource.c.created_at <= uses.c.at,
                    uses.c.at < resource.c.ended_at,
                )
                .correlate(resource)
            )
            made_since = and_(
                IS_OF_RUN,  # most are not, and need no search
                exists()
                .where(runs.c.id == resource.c.instance_id, runs.c.at < resource.c.created_at)
                .correlate(resource),
            )
            is_old = and_(resource.c.ended_at < ended, ~kept, ~may_be_used, ~made_since)
            which = or_(which, is_old)
        query = select(resource.c.id, resource.c.object).where(which, resource.c.id > after)
        rows = await self._connection.rows(query.order_by(resource.c.id).limit(limit))
        return readable(rows, lambda row: Unneeded(row.id, row.object), _KIND, leave_out)


def _resources() -> Select[Any]:
    return select(resource, project.c.name.label("project")).join_from(resource, project)


def _named(home: str, path: str) -> Select[Any]:
    return _resources().where(project.c.name == home, resource.c.path == path)


def _below(folder: str) -> ColumnElement[bool]:
    # Not LIKE: SQLite's does not tell capital letters from small ones.
    start = f"{folder}/"
    return func.substr(resource.c.path, 1, len(start)) == start


def _last_restart(instance_id: int | ColumnElement[int]) -> Select[Any]:
    return select(func.max(command.c.created_at).label("at")).where(
        command.c.instance_id == instance_id,
        IS_RESTART,
        command.c.state == CommandState.DONE,
    )


def _unfinished(before: datetime) -> CTE:
    """Unfinished runs created before that time; ``at``: the time whose versions the run uses."""
    run = workflow_instance.c
    restart = _last_restart(run.id).correlate(workflow_instance).scalar_subquery()
    query = select(run.id, run.project_id, func.coalesce(restart, run.created_at).label("at"))
    return _read_once(query.where(HAS_NOT_ENDED, run.created_at < before), "unfinished")


def _used_by(runs: CTE, before: datetime) -> CTE:
    """For each project: the times before ``before`` whose versions these runs can use."""
    own = select(runs.c.project_id, runs.c.at).where(runs.c.at < before)
    shares = resource_grant.c.taker.in_([project.c.name, EVERY_PROJECT])
    shared = (
        select(resource_grant.c.project_id, runs.c.at)
        .join_from(runs, project, project.c.id == runs.c.project_id)
        .join(resource_grant, shares)
        .where(runs.c.at < before)
    )
    return _read_once(union(own, shared), "used")


def _read_once(query: Select[Any] | CompoundSelect[Any], name: str) -> CTE:
    # PostgreSQL would run the query for each version that refers to it.
    return query.cte(name).prefix_with("MATERIALIZED", dialect="postgresql")


def _counts_at(at: datetime) -> ColumnElement[bool]:
    return and_(
        resource.c.version.is_not(None),
        resource.c.created_at <= at,
        or_(resource.c.ended_at.is_(None), resource.c.ended_at > at),
    )


def _resource(row: Row[Any]) -> StoredResource:
    require_numbers(row, "version", "size", *(["instance_id"] if row.instance_id else []))
    if problem := path_problem(row.path):
        raise ValueError(problem)
    if row.version < 1 or row.size < 0:
        raise ValueError("its version or its size is out of range")
    if not isinstance(row.sha256, str) or len(row.sha256) != 64 or row.created_at is None:
        raise ValueError("it has no checksum, or no time")
    return record_of(StoredResource, row)
