"""Environments of the cluster, by name, and the workflows that name them."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Text, delete, insert, select, type_coerce, update

from shoal.core.access.authorization import Visible
from shoal.core.access.grants import Restricted
from shoal.core.checks.parameters import Path
from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.core.definition.environments import (
    NO_ENVIRONMENT,
    EnvironmentSpec,
    StoredEnvironment,
    allows,
)
from shoal.core.definition.model import WorkflowSpec
from shoal.core.hints import MOST_MISTAKES, Hints
from shoal.runtime.plugins import environment_named
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import EnvironmentInUse, NotFound
from shoal.sql.repositories.access.restrictions import Restrictions
from shoal.sql.schema.access import restriction
from shoal.sql.schema.tables import environment, project, workflow, workflow_version
from shoal.sql.statements.rows import enough, readable, require_numbers

_EnvironmentList = list[StoredEnvironment]
_NameList = list[str]
_KIND = "environment"


class Environments:
    """The ``environment`` table."""

    def __init__(self, connection: Connection, restrictions: Restrictions) -> None:
        self._connection = connection
        self._restrictions = restrictions

    async def put(
        self, name: str, spec: EnvironmentSpec, at: datetime
    ) -> tuple[StoredEnvironment, bool]:
        """Make or change an environment; return it and whether it is new."""
        values = spec.model_dump(mode="json")
        first = {"name": name, **values, "version": 1, "created_at": at, "updated_at": at}
        if await self._connection.insert_new(environment, ["name"], first):
            return await self.get(name), True
        query = select(environment).where(environment.c.name == name)
        row = await self._connection.first(query.with_for_update(key_share=True))
        if row is None:  # it has been deleted in this moment
            await self._connection.execute(insert(environment).values(first))
            return await self.get(name), True
        before = readable([row], _environment, _KIND, key="name")[0]
        if before.spec != spec:
            changed = {**values, "version": before.version + 1, "updated_at": at}
            await self._connection.execute(
                update(environment).where(environment.c.id == row.id).values(changed)
            )
        return await self.get(name), False

    async def hold(self, name: str) -> StoredEnvironment:
        """Return an environment, unchanged by others until the commit. Raises NotFound."""
        query = select(environment.c.id).where(environment.c.name == name)
        await self._connection.execute(query.with_for_update(key_share=True))
        return await self.get(name)

    async def get(self, name: str) -> StoredEnvironment:
        """Return an environment. Raises NotFound."""
        row = await self._connection.first(select(environment).where(environment.c.name == name))
        if row is None:
            raise NotFound(_KIND, name)
        return readable([row], _environment, _KIND, key="name")[0]

    async def get_for(self, home: str, name: str) -> StoredEnvironment:
        """Return an environment as a project has it. Raises NotFound, also if it may not use it."""
        query = (
            select(environment, restriction.c.name.label("restricted"), restriction.c.projects)
            .outerjoin_from(
                environment,
                restriction,
                (restriction.c.name == environment.c.name)
                & (restriction.c.kind == str(Restricted.ENVIRONMENT)),
            )
            .where(environment.c.name == name)
        )
        row = await self._connection.first(query)
        if row is not None and (row.restricted is None or home in _named_in(row.projects)):
            return readable([row], _environment, _KIND, key="name")[0]
        raise NotFound(_KIND, name)

    async def get_visible(self, name: str, visible: Visible) -> StoredEnvironment:
        """Return an environment that one of these projects may use. Raises NotFound."""
        if name in await self._restrictions.hidden(Restricted.ENVIRONMENT, visible):
            raise NotFound(_KIND, name)
        return await self.get(name)

    async def list(
        self, after: str | None = None, limit: int = 50, visible: Visible = None
    ) -> _EnvironmentList:
        """Return environments by name, starting behind ``after``.

        Only those that one of the ``visible`` projects may use.
        """
        query = select(environment).order_by(environment.c.name)
        if hidden := await self._restrictions.hidden(Restricted.ENVIRONMENT, visible):
            query = query.where(environment.c.name.not_in(sorted(hidden)))
        if after is not None:
            query = query.where(environment.c.name > after)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)),
            _environment,
            _KIND,
            limit,
            "name",
        )

    async def names_for(self, home: str) -> _NameList:
        """Return the names of the environments that a project may use."""
        query = select(environment.c.name).order_by(environment.c.name)
        names = [row.name for row in await self._connection.rows(query)]
        restricted = await self._restrictions.all_of(Restricted.ENVIRONMENT)
        return [name for name in names if home in restricted.get(name, {home})]

    async def delete(self, name: str) -> None:
        """Delete an environment, also one that cannot be read.

        Raises NotFound, and EnvironmentInUse while the newest version of a workflow names it.
        """
        query = select(environment.c.id).where(environment.c.name == name)
        row = await self._connection.first(query.with_for_update())
        if row is None:
            raise NotFound(_KIND, name)
        if users := await self.users_of(name):
            raise EnvironmentInUse(name, users)
        await self._connection.execute(delete(environment).where(environment.c.id == row.id))

    async def users_of(self, name: str, visible: Visible = None) -> _NameList:
        """Return the workflows, PROJECT/NAME, whose newest version names the environment.

        Only those of ``visible`` projects.
        """
        wanted = f'"environment":"{name}"'
        query = (
            select(project.c.name.label("project"), workflow.c.name, workflow_version.c.spec)
            .join_from(workflow, project)
            .join(workflow_version, workflow_version.c.workflow_id == workflow.c.id)
            .where(
                workflow.c.deleted_at.is_(None),
                workflow_version.c.version == workflow.c.version,
                # Reads all definitions, but parses few.
                type_coerce(workflow_version.c.spec, Text).contains(wanted, autoescape=True),
            )
            .order_by(project.c.name, workflow.c.name)
        )
        if visible is not None:
            query = query.where(project.c.id.in_(sorted(visible)))
        rows = await self._connection.rows(query)
        return [f"{row.project}/{row.name}" for row in rows if _names(row.spec, name)]

    async def require(self, spec: WorkflowSpec) -> None:
        """Raise InvalidDefinition unless a definition's environments exist and fit its tasks.

        One that its project may not use is as one that there is not. None of them is deleted until
        the transaction ends.
        """
        given = {spec.environment, *(task.environment for task in spec.tasks)}
        names = {name for name in given if name is not None and name != NO_ENVIRONMENT}
        if not names:
            return
        closed = await self._restrictions.closed(Restricted.ENVIRONMENT, names, spec.project)
        found = await self._held(names - closed)
        known = await self.names_for(spec.project) if names - found.keys() else []
        problems = [*_unknown(spec, found, known), *_unfit(spec, found)]
        if problems:
            raise InvalidDefinition(problems[:MOST_MISTAKES])

    async def _held(self, names: Collection[str]) -> dict[str, Collection[str]]:
        """Return for which worker groups each of these environments is."""
        query = (
            select(environment.c.name, environment.c.worker_groups)
            .where(environment.c.name.in_(sorted(names)))
            .order_by(environment.c.id)
            # It can be changed meanwhile; only the row cannot go.
            .with_for_update(read=True, key_share=True)
        )
        rows = await self._connection.rows(query)
        return dict(readable(rows, _groups_of, _KIND, key="name"))


def _unknown(
    spec: WorkflowSpec, found: Collection[str], known: Collection[str]
) -> Iterator[DefinitionProblem]:
    hints = Hints()
    given: list[tuple[Path, str | None]] = [(("environment",), spec.environment)]
    given += [(("tasks", n, "environment"), task.environment) for n, task in enumerate(spec.tasks)]
    for path, name in given:
        if name is not None and name != NO_ENVIRONMENT and name not in found:
            hint = hints.of(name, known) or ";"
            text = f"there is no environment {name!r}{hint} make it with "
            yield DefinitionProblem(path, f"{text}`shoal environment set {name}`")


def _unfit(spec: WorkflowSpec, found: Mapping[str, Collection[str]]) -> Iterator[DefinitionProblem]:
    for index, task in enumerate(spec.tasks):
        name = environment_named(spec, task)
        if name is None or name not in found:
            continue
        if not allows(groups := found[name], task.worker_group):
            own = task.environment is not None
            whose = "the environment" if own else "the workflow's environment"
            yield DefinitionProblem(
                ("tasks", index, "environment" if own else "worker_group"),
                f"{whose} {name!r} is for the worker groups {', '.join(groups)}, the task is for "
                f"{task.worker_group!r}; name another one, or `environment: {NO_ENVIRONMENT}`",
            )


def _names(definition: Mapping[str, Any], name: str) -> bool:
    tasks = definition["tasks"]
    return name in (definition.get("environment"), *(task.get("environment") for task in tasks))


def _named_in(projects: Any) -> Collection[str]:
    return projects if isinstance(projects, list) else ()  # one that cannot be read allows nothing


def _groups_of(row: Row[Any]) -> tuple[str, Collection[str]]:
    return row.name, tuple(row.worker_groups)


def _environment(row: Row[Any]) -> StoredEnvironment:
    require_numbers(row, "version")
    fields = {name: getattr(row, name) for name in EnvironmentSpec.model_fields}
    spec = EnvironmentSpec.model_validate(fields)
    return StoredEnvironment(row.name, spec, row.version, row.created_at, row.updated_at)
