"""SQLite: a file of the worker's machine. What runs ends with the process of the attempt."""

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.failures import (
    SqlFailed,
    StatementCancelled,
    StatementTimedOut,
    cannot_connect,
)
from shoal.worker.types.sql.drivers.files import database_file, is_read_only
from shoal.worker.types.sql.drivers.rows import NoRows, RowStream
from shoal.worker.types.sql.drivers.running_statement import RunningStatement
from shoal.worker.types.sql.drivers.syntax import quoted
from shoal.worker.types.sql.session import Column, ErrorVerdict, Result

_BUSY_TIMEOUT_S = 30  # how long to wait for another process that writes
_LOCK_POLL_S = 0.05
_MAY_PASS = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_SCHEMA,
}
# A transaction that read before another process wrote can never write: waiting does not help.
_BUSY_SNAPSHOT = sqlite3.SQLITE_BUSY_SNAPSHOT


def connect(
    source: DataSource,
    *,
    tag: str,
    attempt: int,
    log: Callable[[str], None],
    read_only: bool,
    statement_timeout_s: float | None,
) -> "SqliteSession":
    """See ``session``. An earlier attempt's process is dead, and its statements with it."""
    read_only = is_read_only(source, read_only=read_only)
    file = database_file(source, read_only=read_only)
    mode = "ro" if read_only and file else "rwc"
    name = f"file:{quote(str(file))}?mode={mode}" if file else "file::memory:"
    try:
        connection = sqlite3.connect(
            name, uri=True, timeout=0, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.create_function("regexp", 2, _matches, deterministic=True)
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        may_pass = _code(error) in _MAY_PASS
        raise cannot_connect(source, str(error), permanent=not may_pass) from error
    patience_s = float(source.options.get("busy_timeout", _BUSY_TIMEOUT_S))
    session = SqliteSession(connection, statement_timeout_s, patience_s, read_only=read_only)
    try:
        session.execute("SELECT count(*) FROM sqlite_schema").close()  # is it a database?
    except SqlFailed as error:
        session.close()
        raise cannot_connect(source, str(error), permanent=error.permanent) from error
    return session


def settle(source: DataSource, *, tag: str, attempt: int = 0) -> None:
    """See ``session``. There is no server that anything could run on at."""


class SqliteSession:
    """See ``session.Session``."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        statement_timeout_s: float | None,
        patience_s: float,
        *,
        read_only: bool,
    ) -> None:
        self._connection = connection
        self._running = RunningStatement(connection.interrupt, statement_timeout_s)
        self._statement_timeout_s, self._patience_s = statement_timeout_s, patience_s
        self._begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        self._refused = ""
        connection.set_authorizer(self._authorize)

    @staticmethod
    def placeholder(number: int, type_name: str) -> str:
        """See Session."""
        return f"?{number + 1}"

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Result:
        """See Session."""
        self._refused = ""
        self._running.begin()
        try:
            with self._translated():
                bound = [_bound(value) for value in values]
                cursor = self._patiently(lambda: self._connection.execute(statement, bound))
        except BaseException:
            self._running.end()
            raise
        if cursor.description is None:
            self._running.end()
            return NoRows(_changed(cursor))
        columns = [Column(name, "") for name, *_ in cursor.description]
        return RowStream(
            columns, lambda count: self._fetch(cursor, count), lambda: self._finish(cursor)
        )

    def begin(self) -> None:
        """See Session."""
        self.execute(self._begin).close()

    def commit(self) -> None:
        """See Session."""
        if self._connection.in_transaction:
            self.execute("COMMIT").close()

    def rollback(self) -> None:
        """See Session. Possible after a cancellation too."""
        if self._connection.in_transaction:
            with self._translated():
                self._connection.execute("ROLLBACK")

    def quote(self, identifier: str) -> str:
        """See Session."""
        # In double quotes a name that is none would be taken for a text.
        return quoted(identifier, "`")

    def implicit_commit(self, statement: str) -> bool:
        """See Session."""
        return False

    def cancel(self) -> None:
        """See Session."""
        self._running.cancel()

    def terminate(self) -> None:
        """See Session. The connection ends with the process, which cancelling lets go on."""
        self._running.cancel()

    def close(self) -> None:
        """See Session."""
        self._running.end()
        self._connection.close()

    def _fetch(self, cursor: sqlite3.Cursor, count: int) -> list[Any]:
        try:
            with self._translated():
                return cursor.fetchmany(count)
        except BaseException:
            self._running.end()
            raise

    def _finish(self, cursor: sqlite3.Cursor) -> int | None:
        count = _changed(cursor)
        cursor.close()
        self._running.end()
        return count

    def _patiently(self, execute: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        # SQLite's own waiting cannot be interrupted. A statement that met a lock did nothing.
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return execute()
            except sqlite3.OperationalError as error:
                is_lock = _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                hopeless = error.sqlite_errorcode == _BUSY_SNAPSHOT
                if not is_lock or hopeless or time.monotonic() > deadline:
                    raise
            if self._running.has_timed_out:
                raise StatementTimedOut(self._statement_timeout_s)
            if self._running.is_cancelled:
                raise StatementCancelled
            time.sleep(_LOCK_POLL_S)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise self._translate(error) from error

    def _translate(self, error: Exception) -> WorkFailed:
        if self._running.has_timed_out:
            return StatementTimedOut(self._statement_timeout_s)
        code = _code(error)
        if code == sqlite3.SQLITE_INTERRUPT:
            return StatementCancelled()
        verdict = ErrorVerdict.RETRY if code in _MAY_PASS else ErrorVerdict.PERMANENT
        text = self._refused or str(error)
        if code == sqlite3.SQLITE_BUSY:
            text = f"{error}: another process was writing for {self._patience_s:g} s"
        return SqlFailed(text, verdict, getattr(error, "sqlite_errorname", None))

    def _authorize(self, action: int, first: str | None, second: str | None, *_: Any) -> int:
        # Other files than the data source's are out of reach. VACUUM attaches a temporary one ("").
        if action == sqlite3.SQLITE_ATTACH and first != "":
            self._refused = f"other files cannot be attached or written: {first!r}"
        elif action == sqlite3.SQLITE_FUNCTION and (second or "").lower() == "load_extension":
            self._refused = "extensions cannot be loaded"
        elif action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _REFUSED_PRAGMAS:
            self._refused = f"PRAGMA {first} cannot be used in a task"
        else:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY


# They would undo what connect has set, or name folders of the machine.
_REFUSED_PRAGMAS = {
    "data_store_directory",
    "query_only",
    "temp_store_directory",
    "trusted_schema",
    "writable_schema",
}


def _matches(pattern: str, value: Any) -> bool | None:
    """Return what REGEXP gives: SQLite leaves that to programs."""
    return None if value is None else re.search(pattern, str(value)) is not None


def _code(error: BaseException) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF  # without what kind of BUSY it is


def _changed(cursor: sqlite3.Cursor) -> int | None:
    return None if cursor.rowcount < 0 else cursor.rowcount


def _bound(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat(sep=" ")
        case date() | time_of_day():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return value
