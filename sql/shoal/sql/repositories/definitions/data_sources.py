"""Data sources of projects, by name. Of passwords only ciphertext comes here."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, delete, insert, select, tuple_, update

from shoal.core.data_sources.spec import DataSourceSpec, SourcePassword, StoredDataSource
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound, PasswordOfAnotherServer
from shoal.sql.repositories.definitions.projects import Projects
from shoal.sql.schema.tables import data_source, project
from shoal.sql.statements.rows import enough, readable, record_of, require_numbers

_SourceList = list[StoredDataSource]
_NameList = list[str]
_KIND = "data source"


class DataSources:
    """The ``data_source`` table."""

    def __init__(self, connection: Connection, projects: Projects) -> None:
        self._connection = connection
        self._projects = projects

    async def put(
        self,
        home: str,
        name: str,
        spec: DataSourceSpec,
        password: SourcePassword | None,
        at: datetime,
    ) -> tuple[StoredDataSource, bool]:
        """Make or change a data source; return it and whether it is new. The project is made too.

        ``password`` None keeps the one that is there. Raises PasswordOfAnotherServer if that would
        be sent to another server than before: who cannot read it must not redirect it.
        """
        owner = await self._projects.hold(home, at)
        row = await self._connection.first(_named(home, name))
        if row is None:
            first = {"project_id": owner.id, "name": name, "version": 1, "created_at": at}
            values = {**_values(spec, password or SourcePassword()), **first, "updated_at": at}
            await self._connection.execute(insert(data_source).values(values))
            return await self.get(home, name), True
        before = readable([row], _source, _KIND)[0]
        if password is None:
            if before.password and before.spec.server != spec.server:
                raise PasswordOfAnotherServer(home, name)
            password = before.password
        if (before.spec, before.password) != (spec, password):
            changed = {"version": before.version + 1, "updated_at": at}
            await self._connection.execute(
                update(data_source)
                .where(data_source.c.id == row.id)
                .values({**_values(spec, password), **changed})
            )
        return await self.get(home, name), False

    async def get(self, home: str, name: str) -> StoredDataSource:
        """Return a data source. Raises NotFound."""
        row = await self._connection.first(_named(home, name))
        if row is None:
            raise NotFound(_KIND, f"{home}/{name}")
        return readable([row], _source, _KIND)[0]

    async def list(
        self,
        home: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 50,
    ) -> _SourceList:
        """Return data sources by (project, name), starting behind ``after``."""
        query = _sources().order_by(project.c.name, data_source.c.name)
        if home is not None:
            query = query.where(project.c.name == home)
        if after is not None:
            query = query.where(tuple_(project.c.name, data_source.c.name) > after)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _source, _KIND, limit
        )

    async def named(self, wanted: Collection[tuple[str, str]]) -> _SourceList:
        """Return those of these data sources, (project, name), that there are.

        Raises UnreadableRow if one of them cannot be read.
        """
        query = _sources().where(tuple_(project.c.name, data_source.c.name).in_(sorted(wanted)))
        return readable(await self._connection.rows(query), _source, _KIND)

    async def names(self, home: str) -> _NameList:
        """Return the names of a project's data sources."""
        query = (
            select(data_source.c.name)
            .join_from(data_source, project)
            .where(project.c.name == home)
            .order_by(data_source.c.name)
        )
        return [row.name for row in await self._connection.rows(query)]

    async def delete(self, home: str, name: str) -> None:
        """Delete a data source, also one that cannot be read. Raises NotFound."""
        owner = select(project.c.id).where(project.c.name == home).scalar_subquery()
        found = await self._connection.execute(
            delete(data_source).where(data_source.c.project_id == owner, data_source.c.name == name)
        )
        if found.rowcount != 1:
            raise NotFound(_KIND, f"{home}/{name}")


def _sources() -> Select[Any]:
    return select(data_source, project.c.name.label("project")).join_from(data_source, project)


def _named(home: str, name: str) -> Select[Any]:
    return _sources().where(project.c.name == home, data_source.c.name == name)


def _values(spec: DataSourceSpec, password: SourcePassword) -> dict[str, Any]:
    return {
        "kind": spec.kind,
        "host": spec.host,
        "port": spec.port,
        "database": spec.database,
        "user_name": spec.user,
        "options": dict(spec.options),
        "shared_with": list(spec.shared_with),
        "password": password.ciphertext,
        "password_secret": password.secret,
    }


def _source(row: Row[Any]) -> StoredDataSource:
    require_numbers(row, "version")
    spec = DataSourceSpec.model_validate(
        {
            "kind": row.kind,
            "host": row.host,
            "port": row.port,
            "database": row.database,
            "user": row.user_name,
            "options": row.options,
            "shared_with": row.shared_with,
        }
    )
    password = SourcePassword(row.password, row.password_secret)
    return record_of(StoredDataSource, row, spec=spec, password=password)
