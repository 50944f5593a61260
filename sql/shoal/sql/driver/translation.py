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
    DatabaseUnwritable,
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
    ("25P04", DatabaseUnavailable),  # transaction for too long
    ("25006", DatabaseUnwritable),  # read-only: a standby after a fail-over, or a switchover
    ("53100", DatabaseUnwritable),  # disk full
    ("08", DatabaseUnavailable),  # connection
    ("53", DatabaseUnavailable),  # too many connections, out of memory
    ("58", DatabaseUnwritable),  # the server's disk or another part of its system fails
    ("57P", DatabaseUnavailable),  # the server is shutting down or starting
    ("57014", DatabaseUnavailable),  # statement timeout
    ("23505", AlreadyExists),
    ("23503", BrokenReference),
    ("23", IntegrityViolated),
    ("22", InvalidValue),
    ("42P01", SchemaMissing),
    ("42703", SchemaMissing),
)
# Errors after which a session is not used again: it has ended, or keeps a state in which the next
# transaction would fail as well, although a new session would not.
_USELESS_SESSION = (
    "08",  # the connection has failed
    "0A000",  # a held statement's result has another type since a migration
    "25006",  # the session was opened while the server was read-only
    "25P03",  # ended by the server: idle in a transaction
    "25P04",  # ended by the server: too long a transaction
    "26000",  # a held statement is unknown: a proxy has changed the session behind it
    "53200",  # out of memory
    "57P",  # ended by the server: shut down, crash, restart, database dropped, idle for too long
    "58",  # the server's disk or another part of its system fails
    "XX",  # an internal error, damaged data
)
# What to do about errors that last until an administrator acts.
_NEXT_STEPS_BY_SQLSTATE: tuple[tuple[str, str], ...] = (
    (
        "25006",
        "the server is read-only; Shoal continues when it accepts writes again. If that lasts, "
        "check that the setting `database_url` names the primary, and the server's "
        "default_transaction_read_only",
    ),
    ("53100", "the server's disk is full; free space on it, Shoal then continues"),
    ("53300", "raise the server's max_connections, or end sessions of other applications"),
    ("42501", "grant this user the right: it has to own the schema and its tables"),
    ("58", "look into the server's log"),
)
_NEXT_STEPS_BY_SQLITE_CODE: Mapping[int, str] = {
    sqlite3.SQLITE_FULL: "free space on the disk of the database file; Shoal then continues",
    sqlite3.SQLITE_READONLY: "make the database file, its folder and its file system writable for "
    "this user; Shoal then continues",
    sqlite3.SQLITE_IOERR: "check the disk of the database file",
    sqlite3.SQLITE_CANTOPEN: "check that the database file and its folder are there, and that this "
    "user may open them",
}
_BY_SQLITE_CODE: Mapping[int, type[SqlError]] = {
    sqlite3.SQLITE_BUSY: TransactionConflict,
    sqlite3.SQLITE_LOCKED: TransactionConflict,
    sqlite3.SQLITE_FULL: DatabaseUnwritable,
    sqlite3.SQLITE_READONLY: DatabaseUnwritable,
    sqlite3.SQLITE_IOERR: DatabaseUnwritable,
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
    step = _next_step(original)
    return _class_of(error, original)(f"the database answered: {said}{f'; {step}' if step else ''}")


def makes_session_useless(error: BaseException) -> bool:
    """Whether a PostgreSQL session that has answered with this is not to be used again."""
    sqlstate = getattr(error, "sqlstate", None)
    return sqlstate is not None and sqlstate.startswith(_USELESS_SESSION)


def _next_step(original: BaseException | None) -> str | None:
    sqlstate = getattr(original, "sqlstate", None) or ""
    for prefix, step in _NEXT_STEPS_BY_SQLSTATE:
        if sqlstate.startswith(prefix):
            return step
    code: int | None = getattr(original, "sqlite_errorcode", None)
    return None if code is None else _NEXT_STEPS_BY_SQLITE_CODE.get(code & 0xFF)


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
