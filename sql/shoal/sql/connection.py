"""One connection with a transaction, whose errors are Shoal's."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection as SyncConnection
from sqlalchemy import CursorResult, Executable, Row, Table, select, text
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import DataError as SqlDataError
from sqlalchemy.exc import DBAPIError, InterfaceError, SQLAlchemyError, StatementError
from sqlalchemy.exc import IntegrityError as SqlIntegrityError
from sqlalchemy.exc import OperationalError as SqlOperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from shoal.sql.errors import (
    AlreadyExists,
    BrokenReference,
    DatabaseDamaged,
    DatabaseUnavailable,
    IntegrityViolated,
    InvalidValue,
    SchemaMissing,
    SqlError,
    StatementFailed,
    TransactionConflict,
)

T = TypeVar("T")
Values = Mapping[str, Any]

# How long a transaction waits for SQLite's write lock before it fails as a conflict.
LOCK_PATIENCE_S = 30.0
_LOCK_RETRY_S = 0.005

# PostgreSQL's error codes, by their first characters (appendix A of its manual).
_BY_SQLSTATE: tuple[tuple[str, type[SqlError]], ...] = (
    ("40001", TransactionConflict),  # serialisation failure
    ("40P01", TransactionConflict),  # deadlock
    ("55P03", TransactionConflict),  # lock not available
    ("25P03", DatabaseUnavailable),  # idle in transaction for too long
    ("25006", DatabaseUnavailable),  # read-only: after a fail-over this is a standby
    ("08", DatabaseUnavailable),  # connection
    ("53", DatabaseUnavailable),  # too many connections, disk full, out of memory
    ("57P", DatabaseUnavailable),  # the server is shutting down or starting
    ("57014", DatabaseUnavailable),  # statement timeout
    ("23505", AlreadyExists),
    ("23503", BrokenReference),
    ("23", IntegrityViolated),
    ("22", InvalidValue),
    ("42P01", SchemaMissing),
    ("42703", SchemaMissing),
)
_BY_SQLITE_CODE: Mapping[int, type[SqlError]] = {
    sqlite3.SQLITE_BUSY: TransactionConflict,
    sqlite3.SQLITE_LOCKED: TransactionConflict,
    sqlite3.SQLITE_FULL: DatabaseUnavailable,
    sqlite3.SQLITE_IOERR: DatabaseUnavailable,
    sqlite3.SQLITE_CANTOPEN: DatabaseUnavailable,
    sqlite3.SQLITE_PROTOCOL: DatabaseUnavailable,
    sqlite3.SQLITE_TOOBIG: InvalidValue,
    sqlite3.SQLITE_CORRUPT: DatabaseDamaged,
    sqlite3.SQLITE_NOTADB: DatabaseDamaged,
}
_SQLITE_UNIQUE = frozenset({sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY})


def translate(error: BaseException) -> SqlError:
    """Return our error for one of SQLAlchemy's. Statement and parameters stay out of its text."""
    if isinstance(error, PoolTimeout):
        return DatabaseUnavailable("all database connections of this process are in use; try again")
    if isinstance(error, OverflowError):
        return InvalidValue("a number is too large for the database")
    if isinstance(error, StatementError) and isinstance(error.orig, ValueError):
        return InvalidValue(f"a value cannot be stored: {error.orig}")
    if not isinstance(error, DBAPIError):
        return StatementFailed(f"the database statement failed: {type(error).__name__}")
    original = error.orig
    said = str(original).strip().splitlines()[0] if str(original).strip() else "no reason given"
    return _class_of(error, original)(f"the database answered: {said}")


def _class_of(error: DBAPIError, original: BaseException | None) -> type[SqlError]:
    sqlstate = getattr(original, "sqlstate", None)
    if sqlstate:
        for prefix, cls in _BY_SQLSTATE:
            if sqlstate.startswith(prefix):
                return cls
    code: int | None = getattr(original, "sqlite_errorcode", None)
    if code in _SQLITE_UNIQUE:
        return AlreadyExists
    if code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
        return BrokenReference
    if code is not None and (code & 0xFF) in _BY_SQLITE_CODE:
        return _BY_SQLITE_CODE[code & 0xFF]
    if str(original).startswith(("no such table", "no such column")):
        return SchemaMissing
    if isinstance(error, SqlIntegrityError):
        return IntegrityViolated
    if isinstance(error, SqlDataError):
        return InvalidValue
    if error.connection_invalidated or isinstance(error, InterfaceError):
        return DatabaseUnavailable
    if isinstance(error, SqlOperationalError) and sqlstate is None and code is None:
        return DatabaseUnavailable  # the driver gave up before the database could answer
    return StatementFailed


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, OverflowError) as error:
        raise translate(error) from error


class Connection:
    """A connection in a transaction. Used by one task at a time."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._over = False
        self.dialect = connection.dialect.name  # sqlite or postgresql
        # (workflow id, version) published in this very transaction: not to be cached before the
        # commit, for after a rollback another definition may get the number.
        self.unsettled_versions: set[tuple[int, int]] = set()

    async def execute(
        self, statement: Executable, values: Values | Sequence[Values] | None = None
    ) -> CursorResult[Any]:
        """Run one statement, or one statement with many rows of values. Raises SqlError."""
        if self._over:
            raise RuntimeError("this transaction is committed; open a new unit of work")
        with _translated():
            return await self._connection.execute(statement, values)

    async def rows(self, statement: Executable) -> Sequence[Row[Any]]:
        """Return all rows of a query."""
        return (await self.execute(statement)).all()

    async def first(self, statement: Executable) -> Row[Any] | None:
        """Return the first row of a query."""
        return (await self.execute(statement)).first()

    async def scalar(self, statement: Executable) -> Any:
        """Return the first column of the first row; None if there is none."""
        return (await self.execute(statement)).scalar()

    async def run_sync(self, function: Callable[[SyncConnection], T]) -> T:
        """Run a function that wants SQLAlchemy's synchronous connection."""
        with _translated():
            return await self._connection.run_sync(function)

    async def check(self) -> None:
        """Ask the database for an answer."""
        await self.execute(select(1))

    async def commit(self) -> None:
        """End the transaction; its changes are durable when this returns."""
        self._over = True
        with _translated():
            await self._connection.commit()

    async def insert_new(
        self, table: Table, key: Sequence[str], values: Values | Sequence[Values]
    ) -> None:
        """Insert rows, leaving out those whose unique ``key`` columns exist already."""
        make = sqlite_insert if self.dialect == "sqlite" else postgresql_insert
        await self.execute(make(table).on_conflict_do_nothing(index_elements=list(key)), values)

    async def reserve_ids(self, table: Table, count: int) -> list[int]:
        """Return ``count`` ascending row ids of ``table`` that nobody else will get.

        So rows can refer to each other, and go out in bulk, before they are inserted.
        """
        if self.dialect == "sqlite":  # nobody else can write before we commit
            query = text("SELECT seq FROM sqlite_sequence WHERE name = :table")
            last = (await self.execute(query, {"table": table.name})).scalar() or 0
            return list(range(last + 1, last + 1 + count))
        query = text(
            "SELECT nextval(pg_get_serial_sequence(:table, 'id')) FROM generate_series(1, :count)"
        )
        result = await self.execute(query, {"table": table.name, "count": count})
        return sorted(result.scalars())


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut ``items`` into lists of at most ``size``: databases bound the values of a statement."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


@asynccontextmanager
async def opened(engine: AsyncEngine) -> AsyncIterator[Connection]:
    """Yield a connection whose transaction has begun; roll back what was not committed."""
    connection = engine.connect()
    with _translated():
        await connection.start()
    try:
        await _begin(connection)
        yield Connection(connection)
    finally:
        # Cancelling the caller must not leave the transaction open.
        await asyncio.shield(_close(connection))


async def _begin(connection: AsyncConnection) -> None:
    """Begin; on SQLite keep asking for the file's write lock, which other processes hold.

    Its own waiting blocks the connection's thread and cannot be cancelled, so it is cut short
    (see engine.py) and repeated.
    """
    deadline_s = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            with _translated():
                await connection.begin()
        except TransactionConflict:
            if time.monotonic() >= deadline_s:
                raise
            await asyncio.sleep(_LOCK_RETRY_S)  # nothing tells across processes
        else:
            return


async def _close(connection: AsyncConnection) -> None:
    with _translated():
        await connection.close()
