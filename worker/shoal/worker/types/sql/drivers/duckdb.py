"""DuckDB: a file of the worker's machine. What runs ends with the process of the attempt."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.failures import (
    SqlFailed,
    StatementCancelled,
    StatementTimedOut,
    cannot_connect,
)
from shoal.worker.types.sql.drivers.files import MEMORY, database_file, is_read_only
from shoal.worker.types.sql.drivers.rows import NoRows, RowStream
from shoal.worker.types.sql.drivers.running_statement import RunningStatement
from shoal.worker.types.sql.drivers.syntax import quoted
from shoal.worker.types.sql.session import Column, ErrorVerdict, Result

_LOCK_TIMEOUT_S = 30  # how long to wait for another process that has the file open
_LOCK_POLL_S = 0.2
# Options of a data source that are DuckDB's own settings.
_SETTINGS = ("memory_limit", "threads")
_CLOSED = {
    "enable_external_access": False,  # no files but its own, no network
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "lock_configuration": True,  # and no statement changes that
}
_MAY_PASS = (
    duckdb.ConnectionException,
    duckdb.IOException,
    duckdb.OutOfMemoryException,
    duckdb.ResourceInUseException,
    duckdb.SerializationException,
    duckdb.TransactionException,  # another transaction changed the same rows
)


def connect(
    source: DataSource,
    *,
    tag: str,
    attempt: int,
    log: Callable[[str], None],
    read_only: bool,
    statement_timeout_s: float | None,
) -> "DuckdbSession":
    """See ``session``. An earlier attempt's process is dead, and its statements with it."""
    read_only = is_read_only(source, read_only=read_only)
    file = database_file(source, read_only=read_only)
    name = str(file) if file else MEMORY
    # There is no database in memory that is only read.
    read_only = read_only and file is not None
    config = {name: source.options[name] for name in _SETTINGS if name in source.options}
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while True:
        try:
            connection = duckdb.connect(name, read_only=read_only, config={**config, **_CLOSED})
            return DuckdbSession(connection, statement_timeout_s)
        except (duckdb.Error, RuntimeError) as error:
            if "set lock on file" not in str(error):
                raise cannot_connect(source, str(error), permanent=True) from error
            if time.monotonic() > deadline:
                advice = f"one process at a time can open the file; waited {_LOCK_TIMEOUT_S} s"
                raise cannot_connect(source, f"{advice}: {error}") from error
        time.sleep(_LOCK_POLL_S)


def settle(source: DataSource, *, tag: str, attempt: int = 0) -> None:
    """See ``session``. There is no server that anything could run on at."""


class DuckdbSession:
    """See ``session.Session``."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, statement_timeout_s: float | None
    ) -> None:
        self._connection = connection
        self._running = RunningStatement(connection.interrupt, statement_timeout_s)
        self._statement_timeout_s = statement_timeout_s
        self._in_transaction = False

    @staticmethod
    def placeholder(number: int, type_name: str) -> str:
        """See Session."""
        return f"${number + 1}"

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Result:
        """See Session."""
        self._running.begin()
        try:
            with self._translated():
                return self._execute(statement, values)
        except BaseException:
            self._running.end()
            raise

    def _execute(self, statement: str, values: Sequence[Any]) -> Result:
        parts = duckdb.extract_statements(statement)
        if len(parts) > 1:
            raise SqlFailed("there is more than one statement", ErrorVerdict.PERMANENT)
        if not parts:
            self._running.end()
            return NoRows(None)
        done = self._connection.execute(parts[0], list(values) or None)
        if not _returns_rows(parts[0], done):
            self._running.end()
            return NoRows(done.rowcount if done.rowcount >= 0 else None)
        columns = [Column(name, str(kind)) for name, kind, *_ in done.description]
        return RowStream(
            columns, lambda count: self._fetch(done, count), lambda: self._finish(done)
        )

    def begin(self) -> None:
        """See Session."""
        self.execute("BEGIN TRANSACTION").close()
        self._in_transaction = True

    def commit(self) -> None:
        """See Session."""
        if self._in_transaction:
            self.execute("COMMIT").close()
            self._in_transaction = False

    def rollback(self) -> None:
        """See Session. Possible after a cancellation too."""
        if self._in_transaction:
            self._in_transaction = False
            with self._translated():
                self._connection.execute("ROLLBACK")

    def quote(self, identifier: str) -> str:
        """See Session."""
        return quoted(identifier)

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

    def _fetch(self, done: duckdb.DuckDBPyConnection, count: int) -> list[Any]:
        try:
            with self._translated():
                return done.fetchmany(count)
        except BaseException:
            self._running.end()
            raise

    def _finish(self, done: duckdb.DuckDBPyConnection) -> int | None:
        self._running.end()
        return None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, RuntimeError) as error:
            raise self._translate(error) from error

    def _translate(self, error: Exception) -> WorkFailed:
        if self._running.has_timed_out:
            return StatementTimedOut(self._statement_timeout_s)
        if isinstance(error, duckdb.InterruptException):
            return StatementCancelled()
        verdict = ErrorVerdict.RETRY if isinstance(error, _MAY_PASS) else ErrorVerdict.PERMANENT
        return SqlFailed(str(error), verdict, type(error).__name__)


def _returns_rows(statement: duckdb.Statement, done: duckdb.DuckDBPyConnection) -> bool:
    # DuckDB answers everything with a table: of one count, or of nothing called "Success".
    if statement.type == duckdb.StatementType.CREATE or done.rowcount >= 0:
        return False
    names = [name for name, *_ in done.description]
    is_query = duckdb.ExpectedResultType.QUERY_RESULT in statement.expected_result_type
    return is_query and not (statement.type != duckdb.StatementType.SELECT and names == ["Success"])
