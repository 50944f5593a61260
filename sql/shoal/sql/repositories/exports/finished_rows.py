"""Read rows that have ended in bulk, as plain values: some microseconds each.

Times are microseconds since 1970 (UTC), JSON is its text: readers turn whole
columns at once into what they need. The names of the columns are those of the exported tables.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select

from shoal.sql.driver.connection import Connection
from shoal.sql.repositories.exports import queries
from shoal.sql.schema.tables import command, event, takeover, workflow_instance


@dataclass(frozen=True)
class ExportedRows:
    """Rows of one exported table, each with a value for every name."""

    names: Sequence[str]
    values: Sequence[Sequence[Any]]

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return the values by columns."""
        turned = zip(*self.values, strict=True) if self.values else ((),) * len(self.names)
        return dict(zip(self.names, turned, strict=True))


@dataclass(frozen=True)
class Ends:
    """The highest ids that there are, and the lowest one of an event; 0: no row."""

    first_event: int
    event: int
    instance: int
    command: int
    takeover: int


@dataclass(frozen=True)
class ChangedRows:
    """What events say has changed: the last event of each attempt and of each instance."""

    attempts: Mapping[int, int]
    instances: Mapping[int, int]


class FinishedRows:
    """Attempts, instances, plans, commands and takeovers that will no longer change.

    But for what is forced, or run again, later: that has an event, and is read once more.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def ends(self) -> Ends:
        """Return the ids."""
        tables = (event, workflow_instance, command, takeover)
        found = [
            await self._connection.scalar(select(func.coalesce(func.max(table.c.id), 0)))
            for table in tables
        ]
        first = await self._connection.scalar(select(func.coalesce(func.min(event.c.id), 0)))
        return Ends(first, *found)

    async def running_since(self) -> tuple[int, int]:
        """Return the oldest transaction that has not ended, and the one that comes next.

        Once the oldest is no longer below that next one, all ids that were given out by now
        are seen, or never will be. On SQLite that is so at once.
        """
        if self._connection.dialect == "sqlite":
            return 0, 0
        row = await self._connection.first(queries.RUNNING)
        assert row is not None, "a SELECT of functions has a row"
        return row.oldest, row.oldest + row.younger

    async def changed(self, after: int, until: int) -> ChangedRows:
        """Return what events in (``after``, ``until``] are about."""
        values = {"after": after, "until": until}
        attempts = await self._connection.fetch(queries.CHANGED_ATTEMPTS, values)
        instances = await self._connection.fetch(queries.CHANGED_INSTANCES, values)
        return ChangedRows(
            {row.id: row.event_id for row in attempts}, {row.id: row.event_id for row in instances}
        )

    async def attempts_of(self, ids: Iterable[int]) -> ExportedRows:
        """Return those of these attempts that have ended; ``event_id`` is 0."""
        return await self._rows(queries.ATTEMPTS_OF, {"ids": list(ids)})

    async def instances_of(self, ids: Iterable[int]) -> ExportedRows:
        """Return those of these instances that have ended; ``event_id`` is 0."""
        return await self._rows(queries.INSTANCES_OF, {"ids": list(ids)})

    async def attempts_between(self, after: int, until: int) -> ExportedRows:
        """Return the attempts of instances in (``after``, ``until``] that have ended."""
        return await self._rows(queries.ATTEMPTS_BETWEEN, {"after": after, "until": until})

    async def instances_between(self, after: int, until: int) -> ExportedRows:
        """Return the instances in (``after``, ``until``] that have ended."""
        return await self._rows(queries.INSTANCES_BETWEEN, {"after": after, "until": until})

    async def labels_of(self, ids: Iterable[int]) -> dict[int, dict[str, str]]:
        """Return the labels of instances that have some."""
        rows = await self._connection.fetch(queries.LABELS, {"ids": list(ids)})
        found: dict[int, dict[str, str]] = {}
        for row in rows:
            found.setdefault(row.id, {})[row.key] = row.value
        return found

    async def workflow_id(self, project: str, name: str) -> int | None:
        """Return the id of a workflow; None: there is none of that name."""
        found: int | None = await self._connection.scalar(
            queries.WORKFLOW_ID, {"project": project, "name": name}
        )
        return found

    async def plans_of(self, workflow_id: int, after: int, until: int) -> ExportedRows:
        """Return the versions in (``after``, ``until``] of a workflow; ``spec`` is JSON's text."""
        values = {"workflow": workflow_id, "after": after, "until": until}
        return await self._rows(queries.PLANS, values)

    async def commands_between(self, after: int, until: int) -> ExportedRows:
        """Return the commands in (``after``, ``until``], handled or not."""
        return await self._rows(queries.COMMANDS_BETWEEN, {"after": after, "until": until})

    async def commands_of(self, ids: Iterable[int]) -> ExportedRows:
        """Return these commands, handled or not."""
        return await self._rows(queries.COMMANDS_OF, {"ids": list(ids)})

    async def takeovers_between(self, after: int, until: int) -> ExportedRows:
        """Return the takeovers in (``after``, ``until``]."""
        return await self._rows(queries.TAKEOVERS, {"after": after, "until": until})

    async def _rows(self, query: Select[Any], values: Mapping[str, Any]) -> ExportedRows:
        found = await self._connection.fetch(query, values)
        return ExportedRows([one.name for one in query.selected_columns], found)
