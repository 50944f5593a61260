"""PostgreSQL's connections: one pool, whose reading transactions are snapshots."""

import asyncio
import select
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import inf
from typing import Any, TypeVar, cast

from psycopg import AsyncCursor, Error
from sqlalchemy import URL, event
from sqlalchemy import Connection as SyncConnection
from sqlalchemy.exc import DBAPIError, InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from shoal.sql.connection import Changes, Connection, Length
from shoal.sql.prepared import Values, prepared, tell
from shoal.sql.queries import Query, prepared_query
from shoal.sql.quick_connection import QuickConnection
from shoal.sql.translation import FOREIGN, translate

T = TypeVar("T")

_CONNECT_TIMEOUT_S = 10
_POOL_TIMEOUT_S = 30.0
# A connection that was used within this time is asked for a sign of life only if there is cause.
_TRUSTED_S = 5.0
_LAST_USED_S = "last used, monotonic seconds"

# A process that is stopped in the middle of a transaction must not keep its successor from
# raising the epoch: the server ends such sessions, and with them their locks.
_SETTINGS = {
    "TimeZone": "UTC",
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "30s",
}


class PostgresqlConnections:
    """A pool of at most ``size`` connections."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @classmethod
    def of(cls, url: URL, size: int) -> "PostgresqlConnections":
        """Return a new pool; it connects when it is asked."""
        return cls(_engine(url, size))

    def reading(self) -> "PostgresqlConnections":
        """Return the same pool, for transactions that see one snapshot and cannot write."""
        return PostgresqlConnections(
            self._engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        )

    async def open(self) -> Connection:
        """Return a connection whose transaction has begun; to be closed. Raises SqlError."""
        connection = self._engine.connect()
        try:
            await connection.start()
            try:
                await connection.begin()
            except BaseException:
                await asyncio.shield(connection.close())
                raise
        except FOREIGN as error:
            raise translate(error) from error
        return Connection(_PostgresqlLink(connection))

    async def dispose(self) -> None:
        """Close the connections that nobody has."""
        await self._engine.dispose()


class _PostgresqlLink:
    """One connection in a transaction."""

    dialect = "postgresql"

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        assert connection.sync_connection is not None, "it is started"
        pooled = connection.sync_connection.connection
        self._driver = cast(QuickConnection, pooled.driver_connection)

    async def run(self, work: Callable[[SyncConnection], T], length: Length) -> T:
        """Return what ``work`` makes of the connection; the event loop goes on meanwhile."""
        return await self._connection.run_sync(work)

    async def fetch(self, query: Query, values: Values) -> list[Any]:
        """Return the rows of a query as named tuples."""
        sync, dialect = self._sync(), self._connection.dialect
        statement = prepared_query(query, dialect)
        parameters = statement.parameters(values)
        tell(sync, statement.text, parameters)
        async with self._driven() as cursor:
            await cursor.execute(statement.text, parameters)
            found = await cursor.fetchall()
        return statement.rows(found)

    async def change(self, changes: Changes) -> list[int]:
        """Make changes one after the other; return how many rows each has changed."""
        sync, dialect = self._sync(), self._connection.dialect
        counts = []
        for change, values in changes:
            statement = prepared(change, tuple(values[0]), dialect)
            rows = statement.rows(values)
            tell(sync, statement.text, rows, len(rows) > 1)
            async with self._driven() as cursor:
                if len(rows) == 1:
                    await cursor.execute(statement.text, rows[0])
                else:
                    await cursor.executemany(statement.text, rows)
                counts.append(cursor.rowcount)
        return counts

    def _sync(self) -> SyncConnection:
        sync = self._connection.sync_connection
        assert sync is not None, "it is started"
        return sync

    @asynccontextmanager
    async def _driven(self) -> AsyncIterator[AsyncCursor[Any]]:
        """Yield a cursor of the driver, whose errors become SQLAlchemy's."""
        try:
            async with self._driver.cursor() as cursor:
                yield cursor
        except Error as error:
            if self._driver.closed:
                await self._connection.invalidate(error)
            raise DBAPIError.instance(
                None,
                None,
                error,
                Error,
                hide_parameters=True,
                dialect=self._connection.dialect,
            ) from error

    async def commit(self) -> None:
        """End the transaction; its changes are durable when this returns."""
        self._driver.is_slow = True
        try:
            await self._connection.commit()
        finally:
            self._driver.is_slow = False

    async def close(self) -> None:
        """Roll back what was not committed and give the connection back."""
        # Cancelling the caller must not leave the transaction open.
        await asyncio.shield(self._connection.close())


def _engine(url: URL, size: int) -> AsyncEngine:
    engine = create_async_engine(
        url,
        hide_parameters=True,
        pool_size=size,
        max_overflow=0,
        pool_timeout=_POOL_TIMEOUT_S,
        connect_args={
            "async_creator_fn": QuickConnection.connect,
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "application_name": "shoal",
        },
    )

    @event.listens_for(engine.sync_engine, "connect")
    def _set_up(connection: Any, record: object) -> None:
        cursor = connection.cursor()
        for name, value in _SETTINGS.items():
            cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
        cursor.close()
        connection.commit()  # a rollback would undo the settings

    @event.listens_for(engine.sync_engine, "checkin")
    def _note_time(connection: Any, record: ConnectionPoolEntry) -> None:
        record.info[_LAST_USED_S] = time.monotonic()

    @event.listens_for(engine.sync_engine, "checkout")
    def _check(connection: Any, record: ConnectionPoolEntry, _: object) -> None:
        """Leave out connections that a restart of the server, or a firewall, has ended."""
        idle_s = time.monotonic() - record.info.get(_LAST_USED_S, inf)
        if idle_s > _TRUSTED_S or _has_spoken(record.driver_connection):
            try:
                engine.sync_engine.dialect.do_ping(connection)
            except Error as error:
                raise InvalidatePoolError from error

    return engine


def _has_spoken(driver: Any) -> bool:
    """Whether the server has sent anything that nobody asked for: its farewell, as a rule."""
    asking = select.poll()
    asking.register(driver.fileno(), select.POLLIN)
    return bool(asking.poll(0))
