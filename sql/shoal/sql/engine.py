"""The database of one process: its URL and its connections.

SQLite: one writing connection per process, so writers of a process queue up in order instead of
polling for the file's lock, and readers that never block a writer (WAL). PostgreSQL: one pool.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Self

from sqlalchemy import URL, func, make_url, select
from sqlalchemy.exc import ArgumentError

from shoal.sql.driver.connection import ConnectionSource
from shoal.sql.driver.patience import Patience
from shoal.sql.driver.sqlite.file import FileIdentity, prepare_file
from shoal.sql.driver.sqlite.pool import SqliteConnections
from shoal.sql.errors import InvalidDatabaseUrl
from shoal.sql.repositories.plans import PlanCache
from shoal.sql.repositories.upkeep.partitions import OnFenced
from shoal.sql.schema.migrate import build_indexes, upgrade
from shoal.sql.unit_of_work import Recorder, UnitOfWork
from shoal.sql.write_check import WriteCheck

if TYPE_CHECKING:
    from shoal.sql.driver.postgresql.pool import PostgresqlConnections

_DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+aiosqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}

_CHECK_ROWS = 64  # of ``write_check``, for all processes


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


def import_driver(url: str) -> None:
    """Import what only a ``Database`` of this kind of URL needs. Raises InvalidDatabaseUrl.

    Processes that are forked from the caller share these modules, 12 MB for PostgreSQL.
    """
    if read_url(url).get_backend_name() == "postgresql":
        import_module("shoal.sql.driver.postgresql.pool")


class Database:
    """All access to one database. One per process, an async context manager; one event loop.

    ``pool_size`` bounds the connections of this process (SQLite: the reading ones). ``patience``
    says how long a database that is reached through a network may be silent.
    """

    def __init__(self, url: str, *, pool_size: int = 8, patience: Patience | None = None) -> None:
        self._url = read_url(url)
        self._pool_size = pool_size
        self._patience = patience or Patience()
        self._writer: ConnectionSource | None = None
        self._reader: ConnectionSource | None = None
        self._pool: PostgresqlConnections | None = None
        self._recorder: Recorder | None = None
        self._on_fenced: OnFenced | None = None
        self._number = secrets.randbelow(_CHECK_ROWS)
        self._check = WriteCheck(self._write)
        self.plans = PlanCache()

    @property
    def kind(self) -> str:
        """sqlite or postgresql."""
        return self._url.get_backend_name()

    @property
    def address(self) -> str:
        """The URL without its password."""
        return self._url.render_as_string(hide_password=True)

    async def __aenter__(self) -> Self:
        if self.kind == "sqlite":
            assert self._url.database is not None
            await asyncio.to_thread(prepare_file, self._url.database)
            identity = FileIdentity(self._url.database)
            identity.require()
            self._writer = SqliteConnections(self._url, 1, identity, read_only=False)
            self._reader = SqliteConnections(self._url, self._pool_size, identity, read_only=True)
        else:
            from shoal.sql.driver.postgresql.pool import PostgresqlConnections  # it needs psycopg

            self._pool = PostgresqlConnections.of(self._url, self._pool_size, self._patience)
            self._writer, self._reader = self._pool, self._pool.reading()
        return self

    async def __aexit__(self, *_: object) -> None:
        writer, reader = self._writer, self._reader
        await self._check.close()
        self._writer = self._reader = None
        if reader is not None:
            await reader.dispose()
        if writer is not None:
            await writer.dispose()

    async def migrate(self) -> None:
        """Bring the schema to the state this code needs. Safe when many processes start at once.

        Raises SchemaTooNew if newer code has migrated the database already, SchemaTooOld if it is
        of a version that this code cannot migrate, and DatabaseUnsuitable if it is not Shoal's.
        Indexes of tables with rows are built afterwards, see ``schema/migrate.py``.
        """
        # On a connection of its own, which has no deadlines.
        url = self._url.render_as_string(hide_password=False)
        patience = self._patience.without_bounds()
        async with Database(url, pool_size=1, patience=patience) as apart:
            async with apart.unit_of_work() as uow:
                await upgrade(uow.connection)
                await uow.commit()
            if apart._pool is not None:
                connection = await apart._pool.without_transactions().open()
                try:
                    await build_indexes(connection)
                finally:
                    await connection.close()

    def unit_of_work(self, *, read_only: bool = False) -> UnitOfWork:
        """Return one transaction, to be entered with ``async with``.

        ``read_only``: it sees one snapshot of the database, blocks no other and cannot write.
        """
        source = self._reader if read_only else self._writer
        if source is None:
            raise RuntimeError("the Database is used outside of its `async with` block")
        recorder = None if read_only else self._recorder
        on_failure = None if read_only else self._check.note
        return UnitOfWork(source, self.plans, recorder, self._on_fenced, on_failure)

    def on_fenced(self, listener: OnFenced) -> None:
        """Have ``listener`` called with each epoch that a transaction's fence refuses.

        Fenced is transient to those that catch it: another owner, or the next poll, continues.
        The listener can count how long that goes on.
        """
        self._on_fenced = listener

    def forget_plans(self) -> None:
        """Read workflow versions anew: versions that the database has lost can be given again."""
        self.plans = PlanCache()

    def recording(self, recorder: Recorder) -> "Database":
        """Return this database for one request: each of its changes is committed with an entry.

        It uses the connections of this one, and only as long as this one is open.
        """
        view = copy(self)
        view._recorder = recorder
        return view

    async def ping(self) -> None:
        """Return if the database answers. Raises DatabaseUnavailable otherwise."""
        async with self.unit_of_work(read_only=True) as uow:
            await uow.connection.check()

    async def check_writes(self) -> None:
        """Return if the database stores a row. Raises SqlError with the next step otherwise.

        Cheap however often it is called: see ``write_check.py``.
        """
        await self._check.require()

    @property
    def write_refusal(self) -> str | None:
        """Why the database refuses writes, by the last one of this process; None: it does not."""
        return self._check.refusal

    async def _write(self) -> None:
        async with self.unit_of_work() as uow:
            await uow.cluster.write_check(self._number)
            await uow.commit()

    @property
    def clocks(self) -> Mapping[str, Callable[[], Awaitable[datetime]]]:
        """The database server's clock, by name; SQLite has none but this machine's."""
        return {} if self.kind == "sqlite" else {"database": self.now}

    async def now(self) -> datetime:
        """Return the time by the clock of PostgreSQL's server. Raises DatabaseUnavailable."""
        async with self.unit_of_work(read_only=True) as uow:
            rows = await uow.connection.execute(select(func.clock_timestamp()))
            moment = rows.scalar_one()
        assert isinstance(moment, datetime)
        return moment

    # -- whether it answers ------------------------------------------------------------------

    @property
    def answered_s(self) -> float:
        """When it last answered, on whatever connection; monotonic. SQLite always does."""
        return time.monotonic() if self._pool is None else self._pool.silence.answered_s

    async def probe(self) -> None:
        """Return if the database answers. Raises DatabaseUnavailable.

        A free connection is asked, or a new one: none that others wait for.
        """
        if self._pool is not None:
            await self._pool.probe()

    def suspend(self, reason: str) -> None:
        """Let everything that waits for the database fail, and all that is begun until ``resume``.

        They raise DatabaseUnavailable with ``reason``. SQLite is never suspended.
        """
        if self._pool is not None:
            self._pool.suspend(reason)

    def resume(self) -> None:
        """Use the database again."""
        if self._pool is not None:
            self._pool.resume()

    def hurry(self) -> None:
        """From now on wait for no answer for more than a moment: this process is to end."""
        if self._pool is not None:
            self._pool.hurry()
