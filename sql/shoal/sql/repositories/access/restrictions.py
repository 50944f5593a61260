"""Restrictions of worker groups and environments to projects, as they are stored."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, select, tuple_, update

from shoal.core.access.authorization import Visible
from shoal.core.access.grants import Restricted, no_such_group
from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.core.definition.kinds import is_logic
from shoal.core.definition.model import WorkflowSpec
from shoal.core.hints import MOST_MISTAKES
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.schema.access import restriction
from shoal.sql.schema.tables import project
from shoal.sql.statements.rows import enough, leave_out, readable

_KIND = "restriction"
_C = restriction.c


@dataclass(frozen=True)
class StoredRestriction:
    """The projects, by name, that may use a worker group or an environment; none: no project."""

    kind: Restricted
    name: str
    projects: tuple[str, ...]
    created_at: datetime
    updated_at: datetime


_RestrictionList = list[StoredRestriction]


class Restrictions:
    """The ``restriction`` table. A row that cannot be read allows nothing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def put(
        self, kind: Restricted, name: str, projects: Collection[str], at: datetime
    ) -> tuple[StoredRestriction, bool]:
        """Restrict a name to these projects; return what is stored, and whether it is new."""
        values = {"projects": sorted(set(projects)), "updated_at": at}
        row = {"kind": str(kind), "name": name, "created_at": at, **values}
        is_new = bool(await self._connection.insert_new(restriction, ["kind", "name"], row))
        if not is_new:
            await self._connection.execute(
                update(restriction).where(_C.kind == str(kind), _C.name == name).values(values)
            )
        return await self.get(kind, name), is_new

    async def remove(self, kind: Restricted, name: str) -> None:
        """Open it to all projects. Raises NotFound."""
        found = await self._connection.execute(
            delete(restriction).where(_C.kind == str(kind), _C.name == name)
        )
        if found.rowcount != 1:
            raise NotFound(_KIND, f"of {kind} {name}")

    async def get(self, kind: Restricted, name: str) -> StoredRestriction:
        """Return the restriction of a name. Raises NotFound."""
        row = await self._connection.first(
            select(restriction).where(_C.kind == str(kind), _C.name == name)
        )
        if row is None:
            raise NotFound(_KIND, f"of {kind} {name}")
        return readable([row], _restriction, _KIND, key="name")[0]

    async def hold(self, kind: Restricted, name: str) -> StoredRestriction:
        """Return it, unchanged by others until the commit. Raises NotFound."""
        query = select(_C.name).where(_C.kind == str(kind), _C.name == name)
        await self._connection.execute(query.with_for_update(key_share=True))
        return await self.get(kind, name)

    async def list(self, after: tuple[str, str] | None = None, limit: int = 50) -> _RestrictionList:
        """Return restrictions by kind and name, starting behind ``after``."""
        query = select(restriction).order_by(_C.kind, _C.name)
        if after is not None:
            query = query.where(tuple_(_C.kind, _C.name) > tuple_(*after))
        return await enough(
            lambda most: self._connection.rows(query.limit(most)),
            _restriction,
            _KIND,
            limit,
            "name",
        )

    async def all_of(self, kind: Restricted) -> Mapping[str, frozenset[str]]:
        """Return the projects that may use each name which is restricted."""
        rows = await self._connection.rows(
            select(_C.name, _C.projects).where(_C.kind == str(kind)).order_by(_C.name)
        )
        found = dict(readable(rows, _projects, _KIND, leave_out, key="name"))
        return {row.name: found.get(row.name, frozenset()) for row in rows}

    async def closed(self, kind: Restricted, names: Collection[str], home: str) -> frozenset[str]:
        """Return those of ``names`` that a project may not use."""
        rows = await self._connection.rows(
            select(_C.name, _C.projects).where(
                _C.kind == str(kind), _C.name.in_(sorted(set(names)))
            )
        )
        found = dict(readable(rows, _projects, _KIND, leave_out, key="name"))
        return frozenset(row.name for row in rows if home not in found.get(row.name, ()))

    async def hidden(self, kind: Restricted, visible: Visible) -> frozenset[str]:
        """Return the names that none of these projects may use; of None, who sees all: nothing."""
        if visible is None:
            return frozenset()
        restricted = await self.all_of(kind)
        rows = await self._connection.rows(
            select(project.c.name).where(project.c.id.in_(sorted(visible)))
        )
        seen = {row.name for row in rows}
        return frozenset(name for name, projects in restricted.items() if not projects & seen)

    async def require(self, spec: WorkflowSpec) -> None:
        """Raise InvalidDefinition for each task whose worker group is not for its project."""
        tasks = [(n, one) for n, one in enumerate(spec.tasks) if not is_logic(one.type)]
        groups = {task.worker_group for _, task in tasks}
        closed = await self.closed(Restricted.WORKER_GROUP, groups, spec.project) if groups else ()
        problems = [
            DefinitionProblem(
                ("tasks", n, "worker_group"), no_such_group(spec.project, task.worker_group)
            )
            for n, task in tasks
            if task.worker_group in closed
        ]
        if problems:
            raise InvalidDefinition(problems[:MOST_MISTAKES])


def _projects(row: Row[Any]) -> tuple[str, frozenset[str]]:
    return row.name, frozenset(row.projects)


def _restriction(row: Row[Any]) -> StoredRestriction:
    return StoredRestriction(
        Restricted(row.kind), row.name, tuple(row.projects), row.created_at, row.updated_at
    )
