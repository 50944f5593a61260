"""Workflows and their published versions."""

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    case,
    func,
    insert,
    or_,
    select,
    tuple_,
    type_coerce,
    update,
)

from shoal.core.access.authorization import Visible
from shoal.core.checks.workflow import InvalidDefinition, Problem
from shoal.core.definition import long_json
from shoal.core.definition.model import WorkflowSpec, digest_of
from shoal.core.runs.filters import MOST_RANKED
from shoal.core.runs.records import Place, Workflow, WorkflowOrder, WorkflowVersion
from shoal.core.runs.states import WorkflowState
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import Archived, NotFound, TooManyToSort
from shoal.sql.repositories.access.restrictions import Restrictions
from shoal.sql.repositories.definitions.concurrency import ConcurrencyGroups
from shoal.sql.repositories.definitions.environments import Environments
from shoal.sql.repositories.definitions.projects import Projects
from shoal.sql.repositories.definitions.schedules import Schedules
from shoal.sql.repositories.events import Events, NewEvent
from shoal.sql.repositories.overview.recent_runs import last_logical_time, last_state, next_fire
from shoal.sql.repositories.plans import MOST_TASKS_AT_ONCE, PlanCache
from shoal.sql.repositories.search.ranking import Position, page_of_ranked
from shoal.sql.schema import tables
from shoal.sql.schema.tables import workflow, workflow_version
from shoal.sql.schema.types import JsonText, Unreadable
from shoal.sql.statements.rows import enough, leave_out, readable, require_numbers
from shoal.sql.statements.value_sets import Among, numbers


@dataclass(frozen=True)
class Published:
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


_WorkflowList = list[Workflow]


class Workflows:
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
    ) -> Published:
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
            return Published(await self.version(row.id, row.version), created=False)
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
                description=spec.description,
                owner=spec.owner,
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
            row.id, spec.project, spec.name, version, spec, digest, at, by, source
        )
        return Published(stored, created=True)

    async def problems(self, spec: WorkflowSpec) -> list[Problem]:
        """Return what a checked definition names that is not there: none is deleted until the end.

        A calendar or a concurrency group that the project does not have, a worker group that is
        not for the project, an environment that does not exist for it or is not for the worker
        group of a task.
        """
        found: list[Problem] = []
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

    async def lock(self, project: str, name: str) -> Workflow:
        """Return a workflow that nobody else changes until the transaction ends. Raises NotFound.

        One that is not there can be made meanwhile, unless the caller holds its project.
        """
        query = _named(_workflows(), project, name).with_for_update(of=workflow)
        row = await self._connection.first(query)
        if row is None:
            raise NotFound("workflow", f"{project}/{name}")
        return readable([row], _workflow, "workflow", key="name")[0]

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

    async def get(self, project: str, name: str) -> Workflow:
        """Return a workflow. Raises NotFound."""
        row = await self._connection.first(_named(_workflows(), project, name))
        if row is None:
            raise NotFound("workflow", f"{project}/{name}")
        return readable([row], _workflow, "workflow", key="name")[0]

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
        return {
            row.id: Origin(
                row.version,
                row.is_deleted,
                row.is_archived,
                row.project,
                row.name,
                row.parameters,
            )
            for row in rows
        }

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
            row.workflow_id,
            row.project,
            row.name,
            row.version,
            spec,
            row.digest,
            row.created_at,
            row.published_by,
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

    async def list(
        self,
        project: str | None = None,
        search: str | None = None,
        after: Place | None = None,
        limit: int = 50,
        visible: Visible = None,
        *,
        labels: Iterable[tuple[str, str | None]] = (),
        archived: bool | None = None,
        states: Collection[WorkflowState] = (),
        owner: str | None = None,
        order: WorkflowOrder = WorkflowOrder.NAME,
    ) -> _WorkflowList:
        """Return workflows in an order, starting behind ``after``, as ``place_of`` returns it.

        ``search``: text that the name or the description must contain, in any case. ``labels``:
        each a key with a value, None for any. ``archived`` None: whether or not they are.
        ``states``: of the last run. ``owner``: to the letter; empty: of those that have none.
        """
        query = _filtered(_workflows(), project, search, visible, labels, archived, states, owner)
        if order is WorkflowOrder.NAME:
            query = query.order_by(tables.project.c.name, workflow.c.name)
            place = tuple_(tables.project.c.name, workflow.c.name)
            query = query if after is None else query.where(place > after)
        else:
            query = query.order_by(workflow.c.updated_at.desc(), workflow.c.id.desc())
            query = query if after is None else query.where(_is_older(*after))
        return await enough(
            lambda wanted: self._connection.rows(query.limit(wanted)),
            _workflow,
            "workflow",
            limit,
            key="name",
        )

    async def ranked(
        self,
        order: WorkflowOrder,
        after: Position | None,
        limit: int,
        project: str | None = None,
        search: str | None = None,
        visible: Visible = None,
        *,
        labels: Iterable[tuple[str, str | None]] = (),
        archived: bool | None = None,
        states: Collection[WorkflowState] = (),
        owner: str | None = None,
    ) -> tuple[_WorkflowList, Position | None]:
        """Return workflows in an order that no index has, and where to go on; None: nowhere.

        The filters are those of ``list``. Raises TooManyToSort.
        """
        home, name = tables.project.c.name, workflow.c.name
        rank: ColumnElement[Any]
        match order:
            case WorkflowOrder.LAST_RUN:
                rank = last_logical_time()
            case WorkflowOrder.NEXT_FIRE:
                rank = next_fire()
            case _:
                has_failed = func.coalesce(last_state() == WorkflowState.FAILED, False)
                rank = case((has_failed, "0 "), else_="1 ") + home + "/" + name
        query = (
            select(workflow.c.id, rank.label("rank"))
            .join_from(workflow, tables.project)
            .where(workflow.c.deleted_at.is_(None))
        )
        query = _filtered(query, project, search, visible, labels, archived, states, owner)
        rows = await self._connection.rows(query.limit(MOST_RANKED + 1))
        if len(rows) > MOST_RANKED:
            raise TooManyToSort(order, MOST_RANKED)
        ranks = [(None if isinstance(row.rank, Unreadable) else row.rank, row.id) for row in rows]
        found = page_of_ranked(ranks, order is not WorkflowOrder.LAST_RUN, after, limit)
        with_ids = _workflows().where(workflow.c.id.in_(found.ids))
        known = readable(
            await self._connection.rows(with_ids), _workflow, "workflow", leave_out, key="name"
        )
        by_id = {one.id: one for one in known}
        return [by_id[one] for one in found.ids if one in by_id], found.next


def _filtered(
    query: Select[Any],
    project: str | None,
    search: str | None,
    visible: Visible,
    labels: Iterable[tuple[str, str | None]],
    archived: bool | None,
    states: Collection[WorkflowState],
    owner: str | None,
) -> Select[Any]:
    """Limit a query of workflows and their projects; see ``Workflows.list``."""
    if project is not None:
        query = query.where(tables.project.c.name == project)
    if visible is not None:
        query = query.where(workflow.c.project_id.in_(sorted(visible)))
    if search:
        wanted = search.lower()
        query = query.where(
            or_(
                func.lower(workflow.c.name).contains(wanted, autoescape=True),
                func.lower(workflow.c.description).contains(wanted, autoescape=True),
            )
        )
    query = query.where(*(_has_label(key, value) for key, value in labels))
    if archived is not None:
        is_archived = workflow.c.archived_at.is_not(None)
        query = query.where(is_archived if archived else ~is_archived)
    if owner is not None:
        query = query.where(workflow.c.owner == owner)
    if states:
        query = query.where(last_state().in_(sorted(states)))
    return query


def _has_label(key: str, value: str | None) -> ColumnElement[bool]:
    """Say that the labels of a row have a key, with a value or any.

    Within JSON a quotation mark that is not escaped begins or ends a text, and a key holds nothing
    that is between two texts: so what is looked for is found where it is meant.
    """
    wanted = (
        json.dumps(key) + ":" + ("" if value is None else json.dumps(value, ensure_ascii=False))
    )
    stored = type_coerce(workflow.c.labels, Text)
    # LIKE would not tell capital letters from others on SQLite.
    return func.replace(stored, wanted, "") != stored


def _is_older(at: datetime, row_id: int) -> ColumnElement[bool]:
    """Say that a row is behind another one in the order of the latest change."""
    c = workflow.c
    return or_(c.updated_at < at, and_(c.updated_at == at, c.id < row_id))


def _texts(spec: WorkflowSpec) -> tuple[JsonText, str]:
    """Return a definition as it is stored, and its digest. On any thread."""
    canonical = spec.canonical()
    return JsonText(long_json.compact(canonical)), digest_of(canonical)


def _workflows() -> Select[Any]:
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


def _workflow(row: Row[Any]) -> Workflow:
    require_numbers(row, "version", "tasks")
    return Workflow(
        row.id,
        row.project,
        row.name,
        row.description,
        row.version,
        row.digest,
        row.tasks,
        row.created_at,
        row.updated_at,
        row.labels,
        row.archived_at,
        row.owner,
    )
