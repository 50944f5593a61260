"""Workflows and their published versions."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Row,
    Select,
    and_,
    bindparam,
    insert,
    select,
    update,
)

from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.core.definition import long_json
from shoal.core.definition.model import HEAD_TEXTS, WorkflowSpec, digest_of
from shoal.core.runs.records import StoredWorkflow, WorkflowVersion
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import Archived, NotFound
from shoal.sql.repositories.access.restrictions import Restrictions
from shoal.sql.repositories.definitions.concurrency import ConcurrencyGroups
from shoal.sql.repositories.definitions.environments import Environments
from shoal.sql.repositories.definitions.projects import Projects
from shoal.sql.repositories.definitions.schedules import Schedules
from shoal.sql.repositories.events import Events, NewEvent
from shoal.sql.repositories.plans import MOST_TASKS_AT_ONCE, PlanCache
from shoal.sql.schema import tables
from shoal.sql.schema.tables import workflow, workflow_version
from shoal.sql.schema.types import JsonText
from shoal.sql.statements.rows import leave_out, readable, record_of, require_numbers
from shoal.sql.statements.value_sets import Among, numbers


@dataclass(frozen=True)
class PublishedVersion:
    """The newest version after publishing; ``created`` False: it was there already."""

    version: WorkflowVersion
    created: bool


@dataclass(frozen=True)
class Origin:
    """A workflow as a start needs it; ``parameters`` are its project's definitions."""

    version: int  # the newest one
    is_deleted: bool
    is_archived: bool
    project: str
    name: str
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class VersionInfo:
    """One line of a workflow's history."""

    version: int
    digest: str
    created_at: datetime
    published_by: str | None


class WorkflowRepository:
    """The ``workflow`` and ``workflow_version`` tables.

    A deleted workflow keeps its row and its versions, so that its instances stay readable and
    can run again; publishing it anew continues the version numbers.
    """

    def __init__(
        self,
        connection: Connection,
        plans: PlanCache,
        projects: Projects,
        schedules: Schedules,
        groups: ConcurrencyGroups,
        environments: Environments,
        restrictions: Restrictions,
        events: Events,
    ) -> None:
        self._connection = connection
        self._plans = plans
        self._projects = projects
        self._schedules = schedules
        self._groups = groups
        self._environments = environments
        self._restrictions = restrictions
        self._events = events

    async def publish(
        self,
        spec: WorkflowSpec,
        at: datetime,
        *,
        source: str | None = None,
        by: str | None = None,
    ) -> PublishedVersion:
        """Store a checked definition as newest version, unless it equals the newest one.

        Creates project and workflow as needed and replaces the workflow's schedules. Several
        publishers of one workflow wait for each other. ``source`` is the text that it was read
        from. Raises Archived, and InvalidDefinition for what ``problems`` finds.
        """
        if len(spec.tasks) > MOST_TASKS_AT_ONCE:
            text, digest = await asyncio.to_thread(_texts, spec)
        else:
            text, digest = _texts(spec)
        row = await self._locked(spec, at)
        if row.deleted_at is None and row.archived_at is not None:
            raise Archived(spec.project, spec.name)
        if row.deleted_at is None and row.digest == digest:
            return PublishedVersion(await self.version(row.id, row.version), created=False)
        if problems := await self.problems(spec):
            raise InvalidDefinition(problems)
        version = row.version + 1
        await self._connection.execute(
            insert(workflow_version).values(
                workflow_id=row.id,
                version=version,
                spec=text,
                digest=digest,
                created_at=at,
                source=source,
                published_by=by,
            )
        )
        self._connection.unsettled_versions.add((row.id, version))
        await self._connection.execute(
            update(workflow)
            .where(workflow.c.id == row.id)
            .values(
                **{name: getattr(spec, name) for name in HEAD_TEXTS},
                labels=spec.labels,
                version=version,
                digest=digest,
                tasks=len(spec.tasks),
                updated_at=at,
                archived_at=None,
                deleted_at=None,
            )
        )
        await self._schedules.replace(row.id, spec, at)
        data = {"workflow": spec.name, "version": version, "digest": digest}
        await self._events.add([NewEvent(at, "workflow.published", spec.project, data)])
        stored = WorkflowVersion(
            workflow_id=row.id,
            project=spec.project,
            name=spec.name,
            version=version,
            spec=spec,
            digest=digest,
            created_at=at,
            published_by=by,
            source=source,
        )
        return PublishedVersion(stored, created=True)

    async def problems(self, spec: WorkflowSpec) -> list[DefinitionProblem]:
        """Return what a checked definition names that is not there: none is deleted until the end.

        A calendar or a concurrency group that the project does not have, a worker group that is
        not for the project, an environment that does not exist for it or is not for the worker
        group of a task.
        """
        found: list[DefinitionProblem] = []
        for require in (
            self._groups.require,
            self._restrictions.require,
            self._environments.require,
            self._schedules.require,
        ):
            try:
                await require(spec)
            except InvalidDefinition as error:
                found += error.problems
        return found

    async def lock(self, project: str, name: str) -> StoredWorkflow:
        """Return a workflow, locked until the transaction ends. Raises NotFound.

        One that is not there can be made meanwhile, unless the caller holds its project.
        """
        query = _named(live_workflows(), project, name).with_for_update(of=workflow)
        row = await self._connection.first(query)
        if row is None:
            raise NotFound("workflow", f"{project}/{name}")
        return readable([row], workflow_of, "workflow", key="name")[0]

    async def _locked(self, spec: WorkflowSpec, at: datetime) -> Row[Any]:
        """Return the workflow's row, created if missing, locked until the transaction ends."""
        owner = await self._projects.ensure(spec.project, at)
        blank = {
            "project_id": owner.id,
            "name": spec.name,
            "description": "",
            "labels": {},
            "version": 0,
            "digest": "",
            "tasks": 0,
            "created_at": at,
            "updated_at": at,
        }
        await self._connection.insert_new(workflow, ["project_id", "name"], blank)
        query = select(workflow).where(
            workflow.c.project_id == owner.id, workflow.c.name == spec.name
        )
        row = await self._connection.first(query.with_for_update())
        assert row is not None, "a row just inserted or found is there"
        return row

    async def get(self, project: str, name: str) -> StoredWorkflow:
        """Return a workflow. Raises NotFound."""
        row = await self._connection.first(_named(live_workflows(), project, name))
        if row is None:
            raise NotFound("workflow", f"{project}/{name}")
        return readable([row], workflow_of, "workflow", key="name")[0]

    async def version(self, workflow_id: int, version: int | None = None) -> WorkflowVersion:
        """Return a version; None: the newest. Raises NotFound.

        A deleted workflow has no newest version, but each one can still be had by its number.
        """
        name = f"{workflow_id}" if version is None else f"{workflow_id} version {version}"
        query = _NEWEST_BY_ID if version is None else _NUMBERED_BY_ID
        return await self._version(query, {"id": workflow_id}, version, name)

    async def origins(self, workflow_ids: Collection[int]) -> dict[int, Origin]:
        """Return what instances of these workflows start from, by id; unknown ones are missing."""
        if not workflow_ids:
            return {}
        rows = await self._connection.fetch(_ORIGINS, {"ids": sorted(workflow_ids)})
        return {row.id: record_of(Origin, row) for row in rows}

    async def spec(self, workflow_id: int, version: int) -> WorkflowSpec:
        """Return the definition that a version is, from memory as a rule. Raises NotFound."""
        key = (workflow_id, version)
        return (await self._plans.get(self._connection, [key]))[key].plan.spec

    async def size(self, workflow_id: int, version: int) -> int:
        """Return how many tasks a version has, from memory as a rule. Raises NotFound."""
        return len((await self.spec(workflow_id, version)).tasks)

    async def version_by_name(
        self, project: str, name: str, version: int | None = None
    ) -> WorkflowVersion:
        """Return a version of a workflow that is not deleted; None: the newest. Raises NotFound."""
        label = f"{project}/{name}" + ("" if version is None else f" version {version}")
        query = _NEWEST_BY_NAME if version is None else _NUMBERED_BY_NAME
        return await self._version(query, {"project": project, "name": name}, version, label)

    async def _version(
        self, query: Select[Any], values: dict[str, Any], version: int | None, label: str
    ) -> WorkflowVersion:
        if version is not None:
            values["version"] = version
        rows = await self._connection.fetch(query, values)
        if not rows:
            raise NotFound("workflow", label)
        [row] = rows
        key = (row.workflow_id, row.version)
        readable([row], _version_info, "workflow version", key="version")
        spec = (await self._plans.get(self._connection, [key]))[key].plan.spec
        return WorkflowVersion(
            workflow_id=row.workflow_id,
            project=row.project,
            name=row.name,
            version=row.version,
            spec=spec,
            digest=row.digest,
            created_at=row.created_at,
            published_by=row.published_by,
            archived_at=row.archived_at,
        )

    async def source(self, workflow_id: int, version: int) -> str | None:
        """Return the text that a version was published from; None: it was from none."""
        v = workflow_version.c
        query = select(v.source).where(v.workflow_id == workflow_id, v.version == version)
        found: str | None = await self._connection.scalar(query)
        return found

    async def versions(self, project: str, name: str) -> list[VersionInfo]:
        """Return the history of a workflow, newest first. Raises NotFound."""
        query = _named(_versions(), project, name)
        rows = await self._connection.rows(query.order_by(workflow_version.c.version.desc()))
        if not rows:
            raise NotFound("workflow", f"{project}/{name}")
        return readable(rows, _version_info, "workflow version", leave_out, key="version")


def _texts(spec: WorkflowSpec) -> tuple[JsonText, str]:
    """Return a definition as it is stored, and its digest. On any thread."""
    canonical = spec.canonical()
    return JsonText(long_json.compact(canonical)), digest_of(canonical)


def live_workflows() -> Select[Any]:
    """Return the query of all workflows that are not deleted, each with its project's name."""
    return (
        select(workflow, tables.project.c.name.label("project"))
        .join_from(workflow, tables.project)
        .where(workflow.c.deleted_at.is_(None))
    )


def _versions() -> Select[Any]:
    v = workflow_version.c
    return (
        select(
            v.workflow_id,
            v.version,
            v.digest,
            v.created_at,
            v.published_by,
            workflow.c.name,
            workflow.c.archived_at,
            tables.project.c.name.label("project"),
        )
        .join_from(workflow_version, workflow)
        .join(tables.project)
    )


def _named(query: Select[Any], project: str, name: str) -> Select[Any]:
    return query.where(
        tables.project.c.name == project, workflow.c.name == name, workflow.c.deleted_at.is_(None)
    )


_ORIGINS = (
    select(
        workflow.c.id,
        workflow.c.name,
        workflow.c.version,
        workflow.c.deleted_at.is_not(None).label("is_deleted"),
        workflow.c.archived_at.is_not(None).label("is_archived"),
        tables.project.c.name.label("project"),
        tables.project.c.parameters,
    )
    .join_from(workflow, tables.project)
    .where(Among(workflow.c.id, numbers("ids")))
)
_BY_ID = _versions().where(workflow.c.id == bindparam("id"))
_BY_NAME = _versions().where(
    tables.project.c.name == bindparam("project"),
    workflow.c.name == bindparam("name"),
    workflow.c.deleted_at.is_(None),
)
_IS_NEWEST = and_(workflow_version.c.version == workflow.c.version, workflow.c.deleted_at.is_(None))
_IS_NUMBERED = workflow_version.c.version == bindparam("version")
_NEWEST_BY_ID, _NUMBERED_BY_ID = _BY_ID.where(_IS_NEWEST), _BY_ID.where(_IS_NUMBERED)
_NEWEST_BY_NAME, _NUMBERED_BY_NAME = _BY_NAME.where(_IS_NEWEST), _BY_NAME.where(_IS_NUMBERED)


def _version_info(row: Row[Any]) -> VersionInfo:
    return VersionInfo(row.version, row.digest, row.created_at, row.published_by)


def workflow_of(row: Row[Any]) -> StoredWorkflow:
    """Return the workflow that a row of ``live_workflows`` holds."""
    require_numbers(row, "version", "tasks")
    return record_of(StoredWorkflow, row, texts={name: getattr(row, name) for name in HEAD_TEXTS})
