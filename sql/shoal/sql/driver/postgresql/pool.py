"""PostgreSQL's connections: one pool, whose reading transactions are snapshots."""

import asyncio
import time
from collections.abc import Collection
from typing import Any

from psycopg import Error
from sqlalchemy import URL, event
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from shoal.sql.driver.connection import Connection
from shoal.sql.driver.patience import Patience
from shoal.sql.driver.postgresql.link import PostgresqlLink
from shoal.sql.driver.postgresql.quick_connection import QuickConnection, Silent
from shoal.sql.driver.silence import Session, SilenceWatch
from shoal.sql.driver.translation import FOREIGN, translate
from shoal.sql.driver.turns import Permits
from shoal.sql.errors import DatabaseUnavailable

# How connections are made, unless the URL says otherwise. The kernel, too, is to give up hosts
# that have gone: it finds those out that acknowledge nothing, also while we send nothing.
_DEFAULTS = {
    "connect_timeout": 60,  # in all; silence ends it sooner, see Patience
    "application_name": "shoal",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # ms
}

# What the URL does not decide. The driver fixes how it encodes text before anything can be set.
_ENFORCED = {"client_encoding": "UTF8"}

_WRITING = "BEGIN"
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WITHOUT = ""

# A process that is stopped in the middle of a transaction must not keep its successor from
# raising the epoch: the server ends such sessions, and with them their locks.
#
# How values are written and read, and what statements mean, is set for each session instead of
# inherited from the server, the database, the role or the environment.
_SETTINGS = {
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "search_path": '"$user", public',
    "statement_timeout": "0",  # Patience bounds statements
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "30s",
    # Nor may processes on a host that has vanished keep the server's connections for hours.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "60s",
}

_AT_WORK = (
    "SELECT pid, extract(epoch FROM backend_start)::text FROM pg_stat_activity"
    " WHERE pid = ANY($1) AND state NOT LIKE 'idle%' AND wait_event_type IS DISTINCT FROM 'Client'"
)
_SET_UP = (
    "SELECT pid, extract(epoch FROM backend_start)::text, {settings}"
    " FROM pg_stat_get_activity(pg_backend_pid())"
)


_PROBE_S = 0.25  # for the answer over a free connection


class PostgresqlConnections:
    """A source of connections for transactions of one kind, those of a pool."""

    def __init__(self, pool: "_Pool", begin: str) -> None:
        self._pool = pool
        self._begin = begin

    @classmethod
    def of(cls, url: URL, size: int, patience: Patience) -> "PostgresqlConnections":
        """Return a new pool of at most ``size`` connections; it connects when it is asked."""
        return cls(_Pool(url, size, patience), _WRITING)

    @property
    def silence(self) -> SilenceWatch:
        """What watches the connections."""
        return self._pool.silence

    def suspend(self, reason: str) -> None:
        """Let all waits for the server fail, and all later ones, until ``resume``."""
        self._pool.suspend(reason)

    def resume(self) -> None:
        """Give connections to callers."""
        self._pool.resume()

    def hurry(self) -> None:
        """Wait neither for answers nor for new connections for more than a moment."""
        self._pool.hurry()

    async def probe(self) -> None:
        """Return if the server answers, over a free connection or a new one. Raises SqlError."""
        await self._pool.probe()

    def reading(self) -> "PostgresqlConnections":
        """Return the same pool, for transactions that see one snapshot and cannot write."""
        return PostgresqlConnections(self._pool, _READING)

    def without_transactions(self) -> "PostgresqlConnections":
        """Return the same pool, for statements that refuse to be part of a transaction."""
        return PostgresqlConnections(self._pool, _WITHOUT)

    async def open(self) -> Connection:
        """Return a connection in a transaction; to be closed. Raises SqlError."""
        link = await self._pool.take()
        link.begin(self._begin)
        return Connection(link)

    async def dispose(self) -> None:
        """Close the free connections; the others are closed when they come back."""
        await self._pool.dispose()


class _Pool:
    """At most ``size`` connections; without a free one callers wait, in order."""

    def __init__(self, url: URL, size: int, patience: Patience) -> None:
        self._defaults = {name: one for name, one in _DEFAULTS.items() if name not in url.query}
        self._driver = QuickConnection.patient(patience)
        self.silence = SilenceWatch(patience, self.at_work, self._forget_idle)
        self._engine = create_async_engine(
            url,
            hide_parameters=True,
            poolclass=NullPool,
            paramstyle="numeric_dollar",
            use_native_hstore=False,  # its number would be asked for
            connect_args={
                "async_creator_fn": self._made,
                **self._defaults,
                **_ENFORCED,
            },
        )
        event.listen(self._engine.sync_engine, "connect", _SessionSetup(url))
        self._permits = Permits(size)
        self._refusal: str | None = None  # why no caller gets a connection
        self._connecting: set[asyncio.Timeout] = set()  # of those who are being connected
        self._haste_s: float | None = None  # longest time for that; None: see Patience
        self._idle: list[PostgresqlLink] = []  # the last one that was used is the next
        self._disposed = False
        self._probing: asyncio.Task[bool] | None = None  # ends when its connection is given up

    async def take(self) -> PostgresqlLink:
        """Return a connection that comes back when it is closed. Raises SqlError."""
        await self._permits.take()
        if self._refusal is not None:
            self._permits.release()
            raise DatabaseUnavailable(self._refusal)
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
            self._permits.release()
            raise

    def suspend(self, reason: str) -> None:
        """Let all waits for the server fail, and all later ones, until ``resume``."""
        self._refusal = reason
        self._stop_connecting(0.0)
        self.silence.abandon(reason)

    def hurry(self) -> None:
        """Wait neither for answers nor for new connections for more than a moment."""
        self._haste_s = self.silence.patience.doubt_s
        self._stop_connecting(self._haste_s)
        self.silence.hurry()

    def _stop_connecting(self, in_s: float) -> None:
        deadline_s = asyncio.get_running_loop().time() + in_s
        for limit in self._connecting:
            limit.reschedule(deadline_s)

    def resume(self) -> None:
        """Give connections to callers."""
        self._refusal = None

    async def _made(self, **arguments: Any) -> QuickConnection:
        """Connect; called by SQLAlchemy, which makes the arguments."""
        try:
            async with asyncio.timeout(self._haste_s) as limit:
                self._connecting.add(limit)
                try:
                    connection = await self._driver.connect(**arguments)
                finally:
                    self._connecting.discard(limit)
        except TimeoutError as error:
            raise Silent(self._refusal or "the database does not answer") from error
        connection.silence = self.silence
        self.silence.add(connection)
        self.silence.answered_s = time.monotonic()
        return connection

    async def probe(self) -> None:
        """Return if the server answers. Raises SqlError.

        A free connection is asked first, for a new one costs the server a process. If none is free
        or no answer comes at once, a new one is made: neither a lost connection nor a pool without
        a free one is a lost database.
        """
        if self._idle and self._probing is None:
            self._probing = asyncio.create_task(self._ask_free(), name="probe of a connection")
            self._probing.add_done_callback(self._probed)
            done, _ = await asyncio.wait([self._probing], timeout=_PROBE_S)
            if any(not one.cancelled() and one.result() for one in done):
                return
        await self.at_work([])

    async def _ask_free(self) -> bool:
        """Return whether the server answers over a free connection."""
        try:
            link = await self.take()
            try:
                return await link.answers()
            finally:
                await link.close()
        except (DatabaseUnavailable, *FOREIGN):
            return False

    def _probed(self, _: object) -> None:
        self._probing = None

    async def at_work(self, sessions: Collection[Session]) -> set[Session]:
        """Return which sessions the server is at work for. Raises DatabaseUnavailable."""
        _, arguments = self._engine.dialect.create_connect_args(self._engine.url)
        try:
            connection = await self._driver.connect(**{**self._defaults, **arguments, **_ENFORCED})
            try:
                asked = await connection.execute(_AT_WORK, [[pid for pid, _ in sessions]])
                found = set(await asked.fetchall())
            finally:
                await connection.close()
        except Error as error:
            raise DatabaseUnavailable(f"the database cannot be asked: {error}") from error
        self.silence.answered_s = time.monotonic()
        return found & set(sessions)

    def _forget_idle(self) -> None:
        """Give up the free connections: they are as old as those that have gone."""
        for link in self._idle:
            link.give_up()

    async def _connected(self) -> PostgresqlLink:
        connection = self._engine.connect()
        try:
            await connection.start()
        except FOREIGN as error:
            raise translate(error) from error
        return PostgresqlLink(connection, self._take_back, self.silence.patience)

    async def _take_back(self, link: PostgresqlLink) -> None:
        try:
            if link.is_idle and not link.is_useless and not self._disposed:
                self._idle.append(link)
                return
            await link.disconnect()
            if link.is_useless:
                # The free ones are as old, or older: as a rule in the same state.
                while self._idle:
                    await self._idle.pop().disconnect()
        finally:
            self._permits.release()

    async def dispose(self) -> None:
        """Close the free connections; the others are closed when they come back."""
        self._disposed = True
        if self._probing is not None:
            self._probing.cancel()
        await self.silence.close()
        while self._idle:
            await self._idle.pop().disconnect()
        await self._engine.dispose()


class _SessionSetup:
    """Prepares new connections to one URL: their transactions begin with our own statements."""

    def __init__(self, url: URL) -> None:
        settings = dict(_SETTINGS)
        # Which schema holds the tables is for the URL to say; roles and databases only suggest it.
        if "search_path" in str(url.query.get("options", "")):
            del settings["search_path"]
        pairs = range(1, 2 * len(settings), 2)
        self._text = _SET_UP.format(
            settings=", ".join(f"set_config(${n}, ${n + 1}, false)" for n in pairs)
        )
        self._values = [one for pair in settings.items() for one in pair]

    def __call__(self, connection: Any, record: Any) -> None:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(self._text, self._values)
        record.driver_connection.session = tuple(cursor.fetchone()[:2])
        cursor.close()
