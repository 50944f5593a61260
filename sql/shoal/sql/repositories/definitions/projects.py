"""Projects: the name spaces of workflows."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, Select, func, select, update

from shoal.core.access.authorization import Visible
from shoal.core.runs.records import Project
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.schema.tables import project, workflow
from shoal.sql.statements.json_columns import check_texts
from shoal.sql.statements.rows import enough, readable

_ProjectList = list[Project]


class Projects:
    """The ``project`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def ensure(self, name: str, at: datetime | None = None) -> Project:
        """Return the project, created if it is missing (as of ``at``, default now)."""
        await self._connection.insert_new(
            project,
            ["name"],
            {
                "name": name,
                "description": "",
                "parameters": {},
                "created_at": at or datetime.now(UTC),
            },
        )
        return await self.get(name)

    async def hold(self, name: str, at: datetime) -> Project:
        """Do the same, and have others that hold it wait for the end of this transaction.

        Two changes of what a project has, the first of its name perhaps, come one after the other.
        """
        found = await self.ensure(name, at)
        await self._connection.execute(
            select(project.c.id).where(project.c.id == found.id).with_for_update(key_share=True)
        )
        return found

    async def require(self, name: str) -> Project:
        """Return a project, as held as by ``hold``. Raises NotFound: it is not made."""
        query = select(project.c.id).where(project.c.name == name)
        await self._connection.execute(query.with_for_update(key_share=True))
        return await self.get(name)

    async def get(self, name: str) -> Project:
        """Return a project. Raises NotFound."""
        row = await self._connection.first(_projects().where(project.c.name == name))
        if row is None:
            raise NotFound("project", name)
        return readable([row], _project, "project")[0]

    async def set_description(self, name: str, description: str) -> None:
        """Change a project's description. Raises NotFound."""
        result = await self._connection.execute(
            update(project).where(project.c.name == name).values(description=description)
        )
        if result.rowcount != 1:
            raise NotFound("project", name)

    async def parameters(self, name: str) -> Mapping[str, str]:
        """Return the definitions of a project's parameters. Raises NotFound."""
        row = await self._connection.first(
            select(project.c.name, project.c.parameters).where(project.c.name == name)
        )
        if row is None:
            raise NotFound("project", name)
        return readable([row], _parameters, "project", key="name")[0]

    async def change_parameter(self, name: str, parameter: str, value: str | None) -> bool:
        """Set one parameter of a project, or remove it (None). Runs keep what they started with.

        Returns whether it was there before. Raises NotFound for an unknown project.
        """
        # The row is locked, so that two changes of different parameters are both kept.
        query = select(project.c.name, project.c.parameters).where(project.c.name == name)
        query = query.with_for_update()
        row = await self._connection.first(query)
        if row is None:
            raise NotFound("project", name)
        found = dict(readable([row], _parameters, "project", key="name")[0])
        known = found.pop(parameter, None) is not None
        if value is not None:
            found[parameter] = value
        await self._connection.execute(
            update(project).where(project.c.name == name).values(parameters=found)
        )
        return known

    async def names(self, ids: Collection[int]) -> frozenset[str]:
        """Return the names of projects; unknown ids are left out."""
        return frozenset((await self.named(ids)).values())

    async def named(self, ids: Collection[int]) -> dict[int, str]:
        """Return the names of projects by id; unknown ids are left out."""
        query = select(project.c.id, project.c.name).where(project.c.id.in_(sorted(ids)))
        return {row.id: row.name for row in await self._connection.rows(query)}

    async def list(
        self, after: str | None = None, limit: int = 50, visible: Visible = None
    ) -> _ProjectList:
        """Return projects by name, starting behind ``after``."""
        query = _projects().order_by(project.c.name)
        if after is not None:
            query = query.where(project.c.name > after)
        if visible is not None:
            query = query.where(project.c.id.in_(sorted(visible)))
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _project, "project", limit
        )


def _projects() -> Select[Any]:
    count = (
        select(func.count())
        .where(workflow.c.project_id == project.c.id, workflow.c.deleted_at.is_(None))
        .scalar_subquery()
    )
    return select(project, count.label("workflows"))


def _parameters(row: Row[Any]) -> Mapping[str, str]:
    check_texts(row.parameters)
    found: Mapping[str, str] = row.parameters
    return found


def _project(row: Row[Any]) -> Project:
    check_texts(row.parameters)
    return Project(row.id, row.name, row.description, row.created_at, row.workflows, row.parameters)
