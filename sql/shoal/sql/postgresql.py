"""PostgreSQL's connections: one pool, whose reading transactions are snapshots."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import URL, event
from sqlalchemy import Connection as SyncConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from shoal.sql.connection import Connection, Length
from shoal.sql.translation import FOREIGN, translate

T = TypeVar("T")

_CONNECT_TIMEOUT_S = 10
_POOL_TIMEOUT_S = 30.0

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

    async def run(self, work: Callable[[SyncConnection], T], length: Length) -> T:
        """Return what ``work`` makes of the connection; the event loop goes on meanwhile."""
        return await self._connection.run_sync(work)

    async def commit(self) -> None:
        """End the transaction; its changes are durable when this returns."""
        await self._connection.commit()

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
        pool_pre_ping=True,  # the server may have been restarted
        connect_args={"connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "shoal"},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def _set_up(connection: Any, record: object) -> None:
        cursor = connection.cursor()
        for name, value in _SETTINGS.items():
            cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
        cursor.close()
        connection.commit()  # a rollback would undo the settings

    return engine
