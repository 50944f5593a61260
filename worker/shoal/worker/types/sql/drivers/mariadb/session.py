"""A session: statements, transactions, and their end from outside."""

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any

import pymysql
from pymysql.connections import Connection

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.failures import (
    StatementCancelled,
    StatementTimedOut,
    cannot_connect,
)
from shoal.worker.types.sql.drivers.mariadb import tags
from shoal.worker.types.sql.drivers.mariadb.connector import Connector
from shoal.worker.types.sql.drivers.mariadb.errors import INTERRUPTED, TIMED_OUT, code_of, failed
from shoal.worker.types.sql.drivers.mariadb.results import ResultSets
from shoal.worker.types.sql.drivers.running_statement import RunningStatement
from shoal.worker.types.sql.drivers.syntax import first_words, quoted, reads
from shoal.worker.types.sql.session import Result

# Readers may be slow: a file is written, a disk waits. The server's own limit is a minute.
_WRITE_TIMEOUT_S = 3600
_MOST_WARNINGS = 20  # of one statement, in the log
_COMMITTING = {
    ("ALTER",), ("ANALYZE",), ("CACHE",), ("CHECK",), ("CREATE",), ("DROP",), ("FLUSH",),
    ("GRANT",), ("INSTALL",), ("LOCK",), ("OPTIMIZE",), ("RENAME",), ("REPAIR",), ("RESET",),
    ("REVOKE",), ("TRUNCATE",), ("UNINSTALL",), ("UNLOCK",), ("BEGIN",), ("START", "TRANSACTION"),
    ("SET", "PASSWORD"), ("SET", "AUTOCOMMIT"), ("LOAD", "INDEX"),
}  # fmt: skip
_NOT_COMMITTING = {
    ("CREATE", "TEMPORARY"),
    ("DROP", "TEMPORARY"),
}


def connect(
    source: DataSource,
    *,
    tag: str,
    attempt: int,
    log: Callable[[str], None],
    read_only: bool,
    statement_timeout_s: float | None,
) -> "MariadbSession":
    """See ``session``."""
    connector = Connector(source)
    connection = connector.connect(f"{tag}/{attempt}")
    try:
        tags.take(connection, tag, log)
        _set_up(connection, read_only, statement_timeout_s)
    except (pymysql.MySQLError, WorkFailed) as error:
        connection.close()
        raise cannot_connect(source, str(error)) from error
    return MariadbSession(connector, connection, tag, log, statement_timeout_s, read_only=read_only)


def settle(source: DataSource, *, tag: str, attempt: int = 0) -> None:
    """See ``session``."""
    connection = Connector(source).connect(f"settle {tag}")
    try:
        tags.take(connection, tag, lambda text: None)
    except (pymysql.MySQLError, WorkFailed) as error:
        raise cannot_connect(source, str(error)) from error
    finally:
        connection.close()


class MariadbSession:
    """See ``session.Session``."""

    def __init__(
        self,
        connector: Connector,
        connection: Connection,
        tag: str,
        log: Callable[[str], None],
        statement_timeout_s: float | None,
        *,
        read_only: bool,
    ) -> None:
        self._connector, self._connection = connector, connection
        self._tag, self._log = tag, log
        self._number: int = connection.thread_id()
        self._read_only, self._statement_timeout_s = read_only, statement_timeout_s
        # MySQL itself limits queries alone.
        limit_s = None if _is_mariadb(connection) else statement_timeout_s
        self._running = RunningStatement(self._interrupt, limit_s)
        self._last: ResultSets | None = None  # whose rows may still be coming
        self._in_transaction = False
        nonce = secrets.token_hex(8)
        self._mark = f"shoal_value_{nonce}_"
        self._marks = re.compile(rf"{self._mark}(\d+)_")

    def placeholder(self, number: int, type_name: str) -> str:
        """See Session."""
        return f"{self._mark}{number}_"

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Result:
        """See Session. The driver puts the values into the text, as literals."""
        alone = not self._in_transaction or self.implicit_commit(statement)
        changes = alone and not self._read_only and not reads(statement, mysql=True)
        return self._execute(self._with_literals(statement, values), in_commit=changes)

    def begin(self) -> None:
        """See Session. What commits by itself ends one transaction and begins the next."""
        self._execute("SET autocommit = 0", in_commit=False).close()
        self._in_transaction = True

    def commit(self) -> None:
        """See Session."""
        self._execute("COMMIT", in_commit=True).close()
        with suppress(pymysql.MySQLError):  # it is committed, whatever comes now
            self._leave_transaction()

    def rollback(self) -> None:
        """See Session. Possible after a cancellation too."""
        self._give_up()
        if not self._in_transaction or not self._connection.open:
            self._in_transaction = False
            return
        with self._translated(in_commit=False):
            self._run("ROLLBACK")
            self._leave_transaction()

    def quote(self, identifier: str) -> str:
        """See Session."""
        return quoted(identifier, "`")

    def implicit_commit(self, statement: str) -> bool:
        """See Session."""
        words = first_words(statement, 2, mysql=True)
        return words not in _NOT_COMMITTING and (words in _COMMITTING or words[:1] in _COMMITTING)

    def cancel(self) -> None:
        """See Session."""
        self._running.cancel()

    def terminate(self) -> None:
        """See Session. Raises WorkFailed if the connection does not end."""
        self._running.is_cancelled = True
        connection = self._connector.connect("terminate")
        try:
            tags.terminate(connection, self._tag, self._number)
        finally:
            connection.close()

    def close(self) -> None:
        """See Session."""
        with suppress(pymysql.MySQLError, WorkFailed):
            self._give_up()
        with suppress(pymysql.MySQLError):
            self._connection.close()

    def _execute(self, statement: str, *, in_commit: bool) -> ResultSets:
        if self._last is not None:
            self._last.close()
        self._running.begin()
        if not self._connection.open:
            self._running.end()
            raise failed(pymysql.InterfaceError(0, ""), in_commit=False)
        self._last = results = ResultSets(
            self._connection.cursor(), lambda: self._translated(in_commit=in_commit), self._ended
        )
        results.start(statement)
        return results

    def _ended(self, warnings: int) -> None:
        self._running.end()
        if warnings and self._connection.open:
            with suppress(pymysql.MySQLError):
                shown = list(self._connection.show_warnings() or ())
                for level, code, text in shown[:_MOST_WARNINGS]:
                    self._log(f"{level} {code}: {text}")
                if warnings > len(shown[:_MOST_WARNINGS]):
                    self._log(f"… {warnings} warnings in all")

    def _give_up(self) -> None:
        # A reader has stopped in the middle: the statement is to end before the next.
        if self._running.is_busy and self._connection.open:
            self._interrupt()
        if self._last is not None:
            self._last.give_up()
        self._running.end()

    def _leave_transaction(self) -> None:
        self._in_transaction = False
        self._run("SET autocommit = 1")

    def _run(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                if code_of(error) != INTERRUPTED:
                    raise
                cursor.execute(statement)  # a cancellation that came late has hit this one

    def _interrupt(self) -> None:
        connection = self._connector.connect("cancel")
        try:
            tags.cancel(connection, self._number)
        finally:
            connection.close()

    def _with_literals(self, statement: str, values: Sequence[Any]) -> str:
        if not values:
            return statement
        literals = [self._literal(value) for value in values]
        return self._marks.sub(lambda found: literals[int(found[1])], statement)

    def _literal(self, value: Any) -> str:
        if isinstance(value, Decimal):
            return f"{value:f}"
        literal: str = self._connection.escape(value)
        return literal

    @contextmanager
    def _translated(self, *, in_commit: bool) -> Iterator[None]:
        try:
            yield
        except pymysql.MySQLError as error:
            self._require_not_ended_by_us(error)
            raise failed(error, in_commit=in_commit) from error

    def _require_not_ended_by_us(self, error: pymysql.MySQLError) -> None:
        code = code_of(error)
        if code in TIMED_OUT or (code == INTERRUPTED and self._running.has_timed_out):
            raise StatementTimedOut(self._statement_timeout_s, str(code)) from error
        if code == INTERRUPTED and self._running.is_cancelled:
            raise StatementCancelled from error


def _is_mariadb(connection: Connection) -> bool:
    return "mariadb" in str(connection.get_server_info()).lower()


def _set_up(connection: Connection, read_only: bool, statement_timeout_s: float | None) -> None:
    statements = [f"SET SESSION net_write_timeout = {_WRITE_TIMEOUT_S}"]
    if read_only:
        statements.append("SET SESSION TRANSACTION READ ONLY")
    if statement_timeout_s is not None and _is_mariadb(connection):
        statements.append(f"SET SESSION max_statement_time = {statement_timeout_s:f}")
    for statement in statements:
        with connection.cursor() as cursor:
            cursor.execute(statement)
