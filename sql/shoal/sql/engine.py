"""The database of one process: its URL, its connections and how each of them is set up.

SQLite: one writing connection per process, so writers of a process queue up in order instead of
polling for the file's lock, and readers that never block a writer (WAL). PostgreSQL: one pool.
"""

import asyncio
from types import TracebackType
from typing import Any, Self

from sqlalchemy import URL, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from shoal.sql.connection import opened
from shoal.sql.errors import InvalidDatabaseUrl
from shoal.sql.migrate import upgrade
from shoal.sql.plans import PlanCache
from shoal.sql.sqlite_file import BUSY_TIMEOUT_MS, prepare_file
from shoal.sql.unit_of_work import UnitOfWork

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_CONNECT_TIMEOUT_S = 10
_POOL_TIMEOUT_S = 30.0

# Of the writing connection: ``opened`` repeats the attempt until its own, longer deadline.
WRITER_BUSY_TIMEOUT_MS = 100
_SQLITE_PRAGMAS = (
    "PRAGMA synchronous = FULL",  # a commit survives a power cut
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16000",  # 16 MB
    "PRAGMA mmap_size = 134217728",
    "PRAGMA journal_size_limit = 67108864",
)
# A process that is stopped in the middle of a transaction must not keep its successor from
# raising the epoch: the server ends such sessions, and with them their locks.
_POSTGRESQL_SETTINGS = {
    "TimeZone": "UTC",
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "30s",
}


def read_url(text: str) -> URL:
    """Return the URL with the driver we use. Raises InvalidDatabaseUrl, which never quotes it."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise InvalidDatabaseUrl(
            "the database URL cannot be read; write sqlite:////path/to/file or "
            "postgresql://user:password@host/database"
        ) from None
    driver = _DRIVERS.get(url.drivername)
    if driver is None:
        raise InvalidDatabaseUrl(
            "the database URL starts with neither sqlite:// nor postgresql://; "
            "those are the supported databases"
        )
    if "@" in (url.host or "") or (url.host and "@" in (url.database or "")):
        raise InvalidDatabaseUrl(
            "the user or password in the database URL has special characters; "
            "write them percent-encoded (@ is %40, / is %2F)"
        )
    if url.get_backend_name() == "sqlite" and (url.database or ":memory:") == ":memory:":
        raise InvalidDatabaseUrl("SQLite needs a file that processes can share: sqlite:////path")
    return url.set(drivername=driver)


class Database:
    """All access to one database. One per process, an async context manager; one event loop.

    ``pool_size`` bounds the connections of this process (SQLite: the reading ones).
    """

    def __init__(self, url: str, *, pool_size: int = 8) -> None:
        self._url = read_url(url)
        self._pool_size = pool_size
        self._writer: AsyncEngine | None = None
        self._reader: AsyncEngine | None = None
        self.plans = PlanCache()

    @property
    def kind(self) -> str:
        """sqlite or postgresql."""
        return self._url.get_backend_name()

    async def __aenter__(self) -> Self:
        if self.kind == "sqlite":
            assert self._url.database is not None
            await asyncio.to_thread(prepare_file, self._url.database)
            self._writer = _sqlite(self._url, 1, read_only=False)
            self._reader = _sqlite(self._url, self._pool_size, read_only=True)
        else:
            self._writer = _postgresql(self._url, self._pool_size)
            self._reader = self._writer.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        writer, reader = self._writer, self._reader
        self._writer = self._reader = None
        if reader is not None and self.kind == "sqlite":
            await reader.dispose()  # PostgreSQL's reader has the writer's pool
        if writer is not None:
            await writer.dispose()

    async def migrate(self) -> None:
        """Bring the schema to the state this code needs. Safe when many processes start at once.

        Raises SchemaTooNew if newer code has migrated the database already.
        """
        async with opened(self._engine(read_only=False)) as connection:
            await upgrade(connection)
            await connection.commit()

    def unit_of_work(self, *, read_only: bool = False) -> UnitOfWork:
        """Return one transaction, to be entered with ``async with``.

        ``read_only``: it sees one snapshot of the database, blocks nobody and cannot write.
        """
        return UnitOfWork(self._engine(read_only=read_only), self.plans)

    async def ping(self) -> None:
        """Return if the database answers. Raises DatabaseUnavailable otherwise."""
        async with opened(self._engine(read_only=True)) as connection:
            await connection.check()

    def _engine(self, *, read_only: bool) -> AsyncEngine:
        engine = self._reader if read_only else self._writer
        if engine is None:
            raise RuntimeError("the Database is used outside of its `async with` block")
        return engine


def _sqlite(url: URL, pool_size: int, *, read_only: bool) -> AsyncEngine:
    busy_timeout_ms = BUSY_TIMEOUT_MS if read_only else WRITER_BUSY_TIMEOUT_MS
    # IMMEDIATE takes the write lock at once: a transaction that reads first and writes later
    # could otherwise fail in the middle.
    begin = "BEGIN DEFERRED" if read_only else "BEGIN IMMEDIATE"
    engine = create_async_engine(
        url,
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=_POOL_TIMEOUT_S,
        connect_args={"timeout": busy_timeout_ms / 1000, "isolation_level": None},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def _set_up(connection: Any, record: object) -> None:
        cursor = connection.cursor()
        for pragma in _SQLITE_PRAGMAS:
            cursor.execute(pragma)
        if read_only:
            cursor.execute("PRAGMA query_only = ON")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _postgresql(url: URL, pool_size: int) -> AsyncEngine:
    engine = create_async_engine(
        url,
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=_POOL_TIMEOUT_S,
        pool_pre_ping=True,  # the server may have been restarted
        connect_args={"connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "shoal"},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def _set_up(connection: Any, record: object) -> None:
        cursor = connection.cursor()
        for name, value in _POSTGRESQL_SETTINGS.items():
            cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
        cursor.close()
        connection.commit()  # a rollback would undo the settings

    return engine
