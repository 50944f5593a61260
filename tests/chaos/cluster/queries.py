"""Plain SQL to Shoal's database, PostgreSQL or SQLite, past Shoal's own code and past all proxies.

Statements have ``%s`` where a value belongs, on both. SQLite has instants as microseconds since
1970: ``instant`` reads either.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row

Select = Callable[..., list[Mapping[str, Any]]]

_SQLITE = "sqlite:///"
_BUSY_S = 20.0  # a writer of Shoal's has the file for milliseconds
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ERRORS = (psycopg.Error, sqlite3.Error)


def is_sqlite(url: str) -> bool:
    """Whether ``url`` names an SQLite file."""
    return url.startswith(_SQLITE)


def plain_url(url: str) -> str:
    """Return a PostgreSQL URL without SQLAlchemy's name of a driver."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


def instant(stored: datetime | int | None) -> datetime | None:
    """Return a stored instant, in UTC."""
    if isinstance(stored, int):
        return _EPOCH + timedelta(microseconds=stored)
    return stored


@contextmanager
def connected(url: str, *, snapshot: bool = False) -> Iterator[Select]:
    """Yield a function that runs a statement and returns its rows by column.

    Each statement commits by itself. With ``snapshot`` all statements read the same state, and
    nothing may be written.
    """
    if is_sqlite(url):
        with closing(_sqlite(url)) as file:
            if snapshot:
                file.execute("BEGIN")

            def select(statement: str, *values: Any) -> list[Mapping[str, Any]]:
                return [dict(row) for row in _execute(file, statement, values)]

            yield select
        return
    with psycopg.connect(
        plain_url(url), row_factory=dict_row, autocommit=not snapshot
    ) as connection:
        if snapshot:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

        def select(statement: str, *values: Any) -> list[Mapping[str, Any]]:
            cursor = connection.execute(statement.encode(), values or None)
            return list(cursor.fetchall()) if cursor.description is not None else []

        yield select


async def fetch(url: str, statement: str, *values: Any) -> list[Any]:
    """Run one statement in a connection of its own and return its rows as tuples."""
    if is_sqlite(url):
        return await asyncio.to_thread(_fetch, url, statement, values)
    async with await psycopg.AsyncConnection.connect(plain_url(url), autocommit=True) as connection:
        cursor = await connection.execute(statement.encode(), values or None)
        return await cursor.fetchall() if cursor.description is not None else []


def _fetch(url: str, statement: str, values: Sequence[Any]) -> list[Any]:
    with closing(_sqlite(url)) as file:
        return [tuple(row) for row in _execute(file, statement, values)]


def _execute(file: sqlite3.Connection, statement: str, values: Sequence[Any]) -> list[sqlite3.Row]:
    if values:
        statement = statement.replace("%s", "?")
    return file.execute(statement, tuple(values)).fetchall()


def _sqlite(url: str) -> sqlite3.Connection:
    # A file that is missing must not be made.
    name = f"file:{url.removeprefix(_SQLITE)}?mode=rw"
    file = sqlite3.connect(name, timeout=_BUSY_S, isolation_level=None, uri=True)
    file.row_factory = sqlite3.Row
    return file
