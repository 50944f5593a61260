"""How large the database and its tables are, by what it knows without counting."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select, text

from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import (
    backfill,
    command,
    event,
    metadata,
    task_instance,
    workflow_instance,
)

# Rows that have gone are still among those that PostgreSQL estimates, until it has cleaned up.
_TABLES = text(
    "SELECT c.relname AS name, c.reltuples::bigint AS rows, pg_total_relation_size(c.oid) AS size"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = current_schema() AND c.relkind = 'r'"
)
_GROWING = (event, command, workflow_instance, task_instance, backfill)


@dataclass(frozen=True)
class Sizes:
    """``tables``: rows and bytes by name; None: not known. ``free_bytes``: within ``bytes``."""

    bytes: int
    free_bytes: int | None
    tables: Mapping[str, tuple[int | None, int | None]]


class DatabaseSizes:
    """Asks the database how large it is."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(self) -> Sizes:
        """Return the sizes. On SQLite rows are counted by their ids: the span that is there."""
        if self._connection.dialect == "sqlite":
            return await self._of_file()
        rows = await self._connection.rows(_TABLES)
        whole = await self._connection.scalar(text("SELECT pg_database_size(current_database())"))
        tables = {
            row.name: (row.rows if row.rows >= 0 else None, int(row.size))
            for row in rows
            if row.name in metadata.tables
        }
        return Sizes(int(whole), None, tables)

    async def _of_file(self) -> Sizes:
        page = await self._connection.scalar(text("PRAGMA page_size"))
        pages = await self._connection.scalar(text("PRAGMA page_count"))
        free = await self._connection.scalar(text("PRAGMA freelist_count"))
        tables: dict[str, tuple[int | None, int | None]] = {}
        for table in _GROWING:
            first = await self._connection.scalar(select(func.min(table.c.id)))
            last = await self._connection.scalar(select(func.max(table.c.id)))
            tables[table.name] = (0 if first is None else last - first + 1, None)
        return Sizes(page * pages, page * free, tables)
