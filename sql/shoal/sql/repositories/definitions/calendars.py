"""Calendars: days of a project on which schedules do not fire."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Row, Select, delete, insert, select, tuple_, update

from shoal.sql.driver.connection import Connection
from shoal.sql.errors import CalendarInUse, NotFound
from shoal.sql.repositories.definitions.projects import Projects
from shoal.sql.schema.tables import calendar, project, schedule, workflow
from shoal.sql.statements.rows import OnUnreadable, enough, readable, refuse


@dataclass(frozen=True)
class Calendar:
    """A list of days, ascending."""

    project: str
    name: str
    description: str
    days: tuple[date, ...]
    updated_at: datetime


_CalendarList = list[Calendar]


class Calendars:
    """The ``calendar`` table."""

    def __init__(self, connection: Connection, projects: Projects) -> None:
        self._connection = connection
        self._projects = projects

    async def put(
        self, home: str, name: str, days: Collection[date], description: str, at: datetime
    ) -> tuple[Calendar, bool]:
        """Make or change a calendar; return it and whether it is new. The project is made too.

        Schedules that use it are not touched: each reads it when it fires next.
        """
        owner = await self._projects.hold(home, at)
        values = {
            "description": description,
            "days": [day.isoformat() for day in sorted(set(days))],
            "updated_at": at,
        }
        changed = await self._connection.execute(
            update(calendar)
            .where(calendar.c.project_id == owner.id, calendar.c.name == name)
            .values(values)
        )
        if changed.rowcount == 0:
            await self._connection.execute(
                insert(calendar).values(project_id=owner.id, name=name, **values)
            )
        return await self.get(home, name), changed.rowcount == 0

    async def get(self, home: str, name: str) -> Calendar:
        """Return a calendar. Raises NotFound."""
        query = _calendars().where(project.c.name == home, calendar.c.name == name)
        row = await self._connection.first(query)
        if row is None:
            raise NotFound("calendar", f"{home}/{name}")
        return readable([row], _calendar, "calendar")[0]

    async def list(
        self,
        home: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 50,
    ) -> _CalendarList:
        """Return calendars by (project, name), starting behind ``after``."""
        query = _calendars().order_by(project.c.name, calendar.c.name)
        if home is not None:
            query = query.where(project.c.name == home)
        if after is not None:
            query = query.where(tuple_(project.c.name, calendar.c.name) > after)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _calendar, "calendar", limit
        )

    async def delete(self, home: str, name: str) -> None:
        """Delete a calendar. Raises NotFound, and CalendarInUse while a schedule names it."""
        query = _calendars().where(project.c.name == home, calendar.c.name == name)
        row = await self._connection.first(query.with_for_update(of=calendar))
        if row is None:
            raise NotFound("calendar", f"{home}/{name}")
        users = (
            select(workflow.c.name)
            .join_from(schedule, workflow)
            .where(workflow.c.project_id == row.project_id, schedule.c.calendar == name)
            .distinct()
            .order_by(workflow.c.name)
        )
        if found := [user.name for user in await self._connection.rows(users)]:
            raise CalendarInUse(home, name, found)
        await self._connection.execute(delete(calendar).where(calendar.c.id == row.id))

    async def held(self, home: str, names: Collection[str]) -> Mapping[str, frozenset[date]]:
        """Return the days of a project's calendars by name; none is deleted until the commit."""
        if not names:
            return {}
        query = _calendars().where(project.c.name == home, calendar.c.name.in_(sorted(names)))
        rows = await self._connection.rows(
            query.order_by(calendar.c.id).with_for_update(read=True, of=calendar)
        )
        return {one.name: frozenset(one.days) for one in readable(rows, _calendar, "calendar")}

    async def days(
        self, wanted: Collection[tuple[str, str]], on_unreadable: OnUnreadable = refuse
    ) -> Mapping[tuple[str, str], frozenset[date]]:
        """Return the days of calendars by (project, name)."""
        if not wanted:
            return {}
        query = _calendars().where(tuple_(project.c.name, calendar.c.name).in_(sorted(wanted)))
        rows = await self._connection.rows(query)
        found = readable(rows, _calendar, "calendar", on_unreadable)
        return {(one.project, one.name): frozenset(one.days) for one in found}


def _calendars() -> Select[Any]:
    return select(calendar, project.c.name.label("project")).join_from(calendar, project)


def _calendar(row: Row[Any]) -> Calendar:
    return Calendar(
        row.project,
        row.name,
        row.description,
        tuple(date.fromisoformat(day) for day in row.days),
        row.updated_at,
    )
