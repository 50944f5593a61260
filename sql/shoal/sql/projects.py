"""Projects: the name spaces of workflows."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, Select, func, select, update

from shoal.core.records import Project
from shoal.sql.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.tables import project, workflow

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
            {"name": name, "description": "", "parameters": {}, "created_at": at or _now()},
        )
        return await self.get(name)

    async def get(self, name: str) -> Project:
        """Return a project. Raises NotFound."""
        row = await self._connection.first(_projects().where(project.c.name == name))
        if row is None:
            raise NotFound("project", name)
        return _project(row)

    async def set_description(self, name: str, description: str) -> None:
        """Change a project's description. Raises NotFound."""
        result = await self._connection.execute(
            update(project).where(project.c.name == name).values(description=description)
        )
        if result.rowcount != 1:
            raise NotFound("project", name)

    async def list(self, after: str | None = None, limit: int = 50) -> _ProjectList:
        """Return projects by name, starting behind ``after``."""
        query = _projects().order_by(project.c.name).limit(limit)
        if after is not None:
            query = query.where(project.c.name > after)
        return [_project(row) for row in await self._connection.rows(query)]


def _projects() -> Select[Any]:
    count = (
        select(func.count())
        .where(workflow.c.project_id == project.c.id, workflow.c.deleted_at.is_(None))
        .scalar_subquery()
    )
    return select(project, count.label("workflows"))


def _project(row: Row[Any]) -> Project:
    return Project(row.id, row.name, row.description, row.created_at, row.workflows, row.parameters)


def _now() -> datetime:
    return datetime.now(UTC)
