"""How the errors of SQLAlchemy and of the drivers become Shoal's."""

import re
import sqlite3
from collections.abc import Mapping

from sqlalchemy.exc import DataError as SqlDataError
from sqlalchemy.exc import DBAPIError, InterfaceError, SQLAlchemyError, StatementError
from sqlalchemy.exc import IntegrityError as SqlIntegrityError
from sqlalchemy.exc import OperationalError as SqlOperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from shoal.sql.errors import (
    AlreadyExists,
    BrokenReference,
    DatabaseDamaged,
    DatabaseRefused,
    DatabaseUnavailable,
    IntegrityViolated,
    InvalidValue,
    SchemaMissing,
    SqlError,
    StatementFailed,
    TransactionConflict,
)

# What a statement, or taking a connection, can fail with: to be translated.
FOREIGN = (SQLAlchemyError, OverflowError, sqlite3.Error)

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
# PostgreSQL's codes for a refusal that lasts; while it starts or stops it sends others.
_REFUSAL = re.compile(
    r"FATAL:\s+(\w+ authentication failed|(role|database) .* does not exist|no pg_hba.conf entry)"
    r"|no password supplied"
)
_SQLITE_UNIQUE = frozenset({sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY})


def all_in_use() -> SqlError:
    """Return the error of a wait that was too long, for one of the process's connections."""
    return DatabaseUnavailable("all database connections of this process are in use; try again")


def translate(error: BaseException) -> SqlError:
    """Return our error for a foreign one. Statement and parameters stay out of its text."""
    if isinstance(error, PoolTimeout):
        return all_in_use()
    if isinstance(error, OverflowError):
        return InvalidValue("a number is too large for the database")
    if isinstance(error, StatementError) and isinstance(error.orig, ValueError):
        return InvalidValue(f"a value cannot be stored: {error.orig}")
    if not isinstance(error, DBAPIError | sqlite3.Error):
        return StatementFailed(f"the database statement failed: {type(error).__name__}")
    original = error.orig if isinstance(error, DBAPIError) else error
    said = str(original).strip().splitlines()[0] if str(original).strip() else "no reason given"
    if getattr(original, "is_silence", False):
        return DatabaseUnavailable(said)
    return _class_of(error, original)(f"the database answered: {said}")


def sqlite_code(error: BaseException) -> int | None:
    """Return SQLite's primary result code for an error, or for what is behind it."""
    original = error.orig if isinstance(error, DBAPIError) else error
    code: int | None = getattr(original, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _class_of(error: BaseException, original: BaseException | None) -> type[SqlError]:
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
    if isinstance(error, InterfaceError):
        return DatabaseUnavailable
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return DatabaseUnavailable
    if isinstance(error, SqlOperationalError) and sqlstate is None and code is None:
        # The driver gave up before the database could answer.
        return DatabaseRefused if _REFUSAL.search(str(original)) else DatabaseUnavailable
    return StatementFailed
