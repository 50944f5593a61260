"""SQLite without a thread between: short work is done at once, in the event loop's own thread.

To hand a statement to a thread, and its result back, costs several times the statement. So only
what can take long goes to a thread: connecting, commits (they wait for the disk), statements with
many rows of values, and queries that are not through after ``SHORT_S``: those are stopped, and
done again in the thread, on the same snapshot. Nothing waits for a lock in SQLite itself: a
transaction that finds one taken sleeps and tries again. That is not fair between processes, but
none starves: beside three processes that commit without a pause, on a busy machine, a fourth
waited 10 ms as a rule and 0.5 s at most, of the 30 s after which it would give up.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, TypeVar, cast
from urllib.parse import quote

from sqlalchemy import URL, create_engine
from sqlalchemy import Connection as SyncConnection
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from shoal.sql.driver.connection import MOST_SHORT_ROWS, Changes, Connection, Judge, Length
from shoal.sql.driver.prepared import Values, notify, prepared
from shoal.sql.driver.queries import Query, prepared_query
from shoal.sql.driver.sqlite.file import BUSY_TIMEOUT_MS, FileIdentity
from shoal.sql.driver.sqlite.thread import WorkerThread
from shoal.sql.driver.translation import FOREIGN, sqlite_code, translate
from shoal.sql.driver.turns import SHORT_S, Pause, Permits

T = TypeVar("T")

# How long a transaction waits for SQLite's write lock before it fails as a conflict.
LOCK_PATIENCE_S = 30.0
_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.0005, 0.005

_STEPS_BETWEEN_LOOKS = 200  # of SQLite's virtual machine: some 10 µs
_TO_BE_DONE_AGAIN = frozenset({sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY})

_PRAGMAS = (
    "PRAGMA synchronous = FULL",  # a commit survives a power cut
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16000",  # 16 MB
    "PRAGMA mmap_size = 134217728",
    "PRAGMA journal_size_limit = 67108864",
)
_PATIENT, _IMPATIENT = f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}", "PRAGMA busy_timeout = 0"


class SqliteConnections:
    """At most ``size`` connections to one file; without a free one callers wait, in order."""

    def __init__(self, url: URL, size: int, identity: FileIdentity, *, read_only: bool) -> None:
        assert url.database is not None
        self._address = f"file:{quote(os.path.abspath(url.database))}?mode=rw"
        self._identity = identity
        self._engine = create_engine(
            url, hide_parameters=True, poolclass=NullPool, creator=self._opened
        )
        self._read_only = read_only
        self._permits = Permits(size)
        self._idle: list[_SqliteLink] = []
        self._disposed = False
        self._pause = Pause()

    def _opened(self) -> sqlite3.Connection:
        """Open the file. One that is missing is not made anew."""
        return sqlite3.connect(
            self._address,
            uri=True,
            timeout=BUSY_TIMEOUT_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
        )

    async def open(self) -> Connection:
        """Return a connection whose transaction has begun; to be closed. Raises SqlError.

        Raises DatabaseMoved while the path does not lead to the file that was opened first.
        """
        self._identity.require()
        await self._pause.if_due()
        await self._permits.take()
        try:
            link = self._idle.pop() if self._idle else await self._connected()
        except BaseException:
            self._permits.release()
            raise
        try:
            await link.begin()
        except BaseException:
            self._take_back(link)
            raise
        return Connection(link)

    async def dispose(self) -> None:
        """Close the free connections; the others are closed when they come back."""
        self._disposed = True
        while self._idle:
            await self._idle.pop().disconnect()
        self._engine.dispose()

    async def _connected(self) -> "_SqliteLink":
        thread = WorkerThread("sqlite")
        connecting = thread.call(
            lambda: _SqliteLink(self._engine.connect(), thread, self._take_back, self._read_only)
        )
        try:
            return await asyncio.shield(connecting)
        except FOREIGN as error:
            thread.stop()
            raise translate(error) from error
        except asyncio.CancelledError:
            connecting.add_done_callback(_discard)
            raise

    def _take_back(self, link: "_SqliteLink") -> None:
        if link.has_suspended:
            self._pause.made()
        if self._disposed or link.is_broken:
            link.disconnect()
        else:
            self._idle.append(link)
        self._permits.release()


class _SqliteLink:
    """One connection, from transaction to transaction. Made in its thread's thread."""

    dialect = "sqlite"

    def __init__(
        self,
        connection: SyncConnection,
        thread: WorkerThread,
        release: Callable[["_SqliteLink"], None],
        read_only: bool,
    ) -> None:
        self._connection = connection
        self._raw = cast(sqlite3.Connection, connection.connection.driver_connection)
        self._thread = thread
        self._release = release
        # IMMEDIATE takes the write lock at once: a transaction that reads first and writes later
        # could otherwise fail in the middle.
        self._begin = "BEGIN DEFERRED" if read_only else "BEGIN IMMEDIATE"
        self._deadline_s = inf  # of the query under way; monotonic
        self.has_suspended = False  # its user, in this transaction
        self.is_broken = False
        query_only = ("PRAGMA query_only = ON",) if read_only else ()
        for pragma in (*_PRAGMAS, *query_only, _IMPATIENT):
            self._raw.execute(pragma)
        self._raw.set_progress_handler(self._is_overdue, _STEPS_BETWEEN_LOOKS)

    def _is_overdue(self) -> bool:
        return time.monotonic() > self._deadline_s

    def disconnect(self) -> "asyncio.Future[None]":
        """Close the connection, after all that is under way."""
        closed = self._thread.call(self._connection.close)
        self._thread.stop()
        return closed

    # -- the transaction ---------------------------------------------------------------------

    async def begin(self) -> None:
        """Begin; a writer keeps asking for the file's lock, which other processes hold.

        Raises TransactionConflict after ``LOCK_PATIENCE_S``.
        """
        self.has_suspended = False
        deadline_s, pause_s = time.monotonic() + LOCK_PATIENCE_S, _FIRST_RETRY_S
        while True:
            try:
                self._raw.execute(self._begin)
            except sqlite3.Error as error:
                if sqlite_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline_s:
                    raise translate(error) from error
            else:
                break
            await asyncio.sleep(pause_s)  # there is no notification across processes
            pause_s = min(2 * pause_s, _LONGEST_RETRY_S)
        self._connection.begin()

    async def run(self, work: Callable[[SyncConnection], T], length: Length) -> T:
        """Return what ``work`` makes of the connection, in this thread if that is quick."""
        if length is Length.SHORT:
            return work(self._connection)
        if length is Length.UNKNOWN:
            self._deadline_s = time.monotonic() + SHORT_S
            try:
                return work(self._connection)
            except (OperationalError, sqlite3.OperationalError) as error:
                # Stopped in a change, SQLite has undone the whole transaction: nothing may follow.
                if sqlite_code(error) not in _TO_BE_DONE_AGAIN or not self._raw.in_transaction:
                    raise
            finally:
                self._deadline_s = inf
        return await self._thread.call(partial(self._patiently, work))

    async def fetch(self, query: Query, values: Values) -> list[Any]:
        """Return the rows of a query as named tuples."""
        return await self.run(lambda c: self._fetch(c, query, values), Length.UNKNOWN)

    def _fetch(self, connection: SyncConnection, query: Query, values: Values) -> list[Any]:
        statement = prepared_query(query, connection.dialect)
        parameters = statement.parameters(values)
        notify(connection, statement.text, parameters)
        return statement.rows(self._raw.execute(statement.text, parameters))

    async def demand(self, query: Query, values: Values, judge: Judge) -> None:
        """Judge the rows of a query; another moment would be no cheaper."""
        judge(await self.fetch(query, values))

    async def change(self, changes: Changes) -> list[int]:
        """Make changes one after the other; return how many rows each has changed."""
        rows = sum(len(values) for _, values in changes)
        length = Length.LONG if rows > MOST_SHORT_ROWS else Length.SHORT
        return await self.run(lambda connection: self._change(connection, changes), length)

    def _change(self, connection: SyncConnection, changes: Changes) -> list[int]:
        counts = []
        for change, values in changes:
            statement = prepared(change, tuple(values[0]), connection.dialect)
            rows = statement.rows(values)
            notify(connection, statement.text, rows, len(rows) > 1)
            counts.append(self._raw.executemany(statement.text, rows).rowcount)
        return counts

    def _patiently(self, work: Callable[[SyncConnection], T]) -> T:
        """Work in the thread's thread, where waiting blocks no other."""
        self._raw.execute(_PATIENT)
        try:
            return work(self._connection)
        finally:
            self._raw.execute(_IMPATIENT)

    async def commit(self) -> None:
        """End the transaction; its changes are durable when this returns."""
        self.has_suspended = True
        await self._thread.call(self._connection.commit)

    async def close(self) -> None:
        """Roll back what was not committed, after all that is under way, and release."""
        if not self._thread.busy:
            self._roll_back()
            self._release(self)
            return
        # Cancelling the caller must not leave the transaction open.
        rolled_back = self._thread.call(self._roll_back)
        rolled_back.add_done_callback(lambda _: self._release(self))
        await asyncio.shield(rolled_back)

    def _roll_back(self) -> None:
        try:
            self._connection.rollback()
            self._raw.rollback()  # after a commit that failed
        except FOREIGN:
            self.is_broken = True  # it is closed, and that ends the transaction


def _discard(connecting: "asyncio.Future[_SqliteLink]") -> None:
    """Close a connection whose caller has gone."""
    if connecting.exception() is None:
        connecting.result().disconnect()
