"""PostgreSQL's connections: one pool, whose reading transactions are snapshots."""

from typing import Any

from sqlalchemy import URL, event
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from shoal.sql.connection import Connection
from shoal.sql.postgresql_link import PostgresqlLink
from shoal.sql.quick_connection import QuickConnection
from shoal.sql.translation import FOREIGN, translate
from shoal.sql.turns import Turns

_CONNECT_TIMEOUT_S = 10

_WRITING = "BEGIN"
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

# A process that is stopped in the middle of a transaction must not keep its successor from
# raising the epoch: the server ends such sessions, and with them their locks.
_SETTINGS = {
    "TimeZone": "UTC",
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "30s",
}


class PostgresqlConnections:
    """A source of connections for transactions of one kind, those of a pool."""

    def __init__(self, pool: "_Pool", begin: str) -> None:
        self._pool = pool
        self._begin = begin

    @classmethod
    def of(cls, url: URL, size: int) -> "PostgresqlConnections":
        """Return a new pool of at most ``size`` connections; it connects when it is asked."""
        return cls(_Pool(url, size), _WRITING)

    def reading(self) -> "PostgresqlConnections":
        """Return the same pool, for transactions that see one snapshot and cannot write."""
        return PostgresqlConnections(self._pool, _READING)

    async def open(self) -> Connection:
        """Return a connection in a transaction; to be closed. Raises SqlError."""
        link = await self._pool.take()
        link.begin(self._begin)
        return Connection(link)

    async def dispose(self) -> None:
        """Close the connections that nobody has; the others are closed when they come back."""
        await self._pool.dispose()


class _Pool:
    """At most ``size`` connections; who finds none waits for a turn, in order."""

    def __init__(self, url: URL, size: int) -> None:
        self._engine = create_async_engine(
            url,
            hide_parameters=True,
            poolclass=NullPool,
            connect_args={
                "async_creator_fn": QuickConnection.connect,
                "connect_timeout": _CONNECT_TIMEOUT_S,
                "application_name": "shoal",
            },
        )
        event.listen(self._engine.sync_engine, "connect", _set_up)
        self._turns = Turns(size)
        self._idle: list[PostgresqlLink] = []  # the last one that was used is the next
        self._disposed = False

    async def take(self) -> PostgresqlLink:
        """Return a connection that comes back when it is closed. Raises SqlError."""
        await self._turns.take()
        while self._idle:
            link = self._idle.pop()
            try:
                if await link.is_alive():
                    return link
            except BaseException:
                await link.close()
                raise
            await link.disconnect()
        try:
            return await self._connected()
        except BaseException:
            self._turns.release()
            raise

    async def _connected(self) -> PostgresqlLink:
        connection = self._engine.connect()
        try:
            await connection.start()
        except FOREIGN as error:
            raise translate(error) from error
        return PostgresqlLink(connection, self._take_back)

    async def _take_back(self, link: PostgresqlLink) -> None:
        try:
            if link.is_idle and not self._disposed:
                self._idle.append(link)
            else:
                await link.disconnect()
        finally:
            self._turns.release()

    async def dispose(self) -> None:
        """Close the connections that nobody has; the others are closed when they come back."""
        self._disposed = True
        while self._idle:
            await self._idle.pop().disconnect()
        await self._engine.dispose()


def _set_up(connection: Any, record: object) -> None:
    """Prepare a new connection: its transactions begin with our own statements."""
    connection.autocommit = True
    cursor = connection.cursor()
    calls = ", ".join(["set_config(%s, %s, false)"] * len(_SETTINGS))
    cursor.execute(f"SELECT {calls}", [one for pair in _SETTINGS.items() for one in pair])
    cursor.close()
