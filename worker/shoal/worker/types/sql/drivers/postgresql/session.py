"""A session: statements, transactions, and their end from outside."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.failures import (
    SqlFailed,
    StatementCancelled,
    StatementTimedOut,
    cannot_connect,
)
from shoal.worker.types.sql.drivers.postgresql import tags
from shoal.worker.types.sql.drivers.postgresql.connector import Connection, Connector
from shoal.worker.types.sql.drivers.postgresql.errors import QUERY_CANCELED, failed
from shoal.worker.types.sql.drivers.postgresql.stream import Stream, TypeNames
from shoal.worker.types.sql.drivers.running_statement import RunningStatement
from shoal.worker.types.sql.drivers.syntax import quoted, reads
from shoal.worker.types.sql.session import ErrorVerdict, Result

_CANCEL_TIMEOUT_S = 5.0
# From this version on the server can look whether its client is still there while it works.
_CHECKS_CONNECTION = 140_000
_CHECK_EVERY = "1s"
_SETTLER = 2**31  # later than every attempt


def connect(
    source: DataSource,
    *,
    tag: str,
    attempt: int,
    log: Callable[[str], None],
    read_only: bool,
    statement_timeout_s: float | None,
) -> "PostgresqlSession":
    """See ``session``."""
    connector = Connector(source)
    try:
        connection = connector.connect(tags.name_of(tag, attempt))
        try:
            connection.add_notice_handler(lambda notice: log(_noticed(notice)))
            _require_no_pooler(connection)
            tags.take(connection, tag, attempt, log)
            _set_up(connection, read_only, statement_timeout_s)
            backend = tags.this_backend(connection)
            type_names = TypeNames(connection)
        except (psycopg.Error, WorkFailed) as error:
            connection.close()
            permanent = isinstance(error, WorkFailed) and error.permanent
            raise cannot_connect(source, str(error), permanent=permanent) from error
    except BaseException:
        connector.close()
        raise
    return PostgresqlSession(
        connector, connection, backend, type_names, statement_timeout_s, read_only=read_only
    )


def settle(source: DataSource, *, tag: str, attempt: int = 0) -> None:
    """See ``session``."""
    connector = Connector(source)
    try:
        with connector.connect(f"settle {tag}") as connection:
            try:
                _require_no_pooler(connection)
                tags.take(connection, tag, _SETTLER, lambda text: None)
            except (psycopg.Error, WorkFailed) as error:
                permanent = isinstance(error, WorkFailed) and error.permanent
                raise cannot_connect(source, str(error), permanent=permanent) from error
    finally:
        connector.close()


class PostgresqlSession:
    """See ``session.Session``."""

    def __init__(
        self,
        connector: Connector,
        connection: Connection,
        backend: tags.Backend,
        type_names: TypeNames,
        statement_timeout_s: float | None,
        *,
        read_only: bool,
    ) -> None:
        self._connector, self._connection, self._backend = connector, connection, backend
        self._type_names, self._statement_timeout_s = type_names, statement_timeout_s
        self._read_only = read_only
        self._last: Stream | None = None  # whose rows may still be coming
        self._running = RunningStatement(lambda: connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S))

    @staticmethod
    def placeholder(number: int, type_name: str) -> str:
        """See Session. The server infers the type, or takes that of the value."""
        return f"${number + 1}"

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Result:
        """See Session."""
        # What cannot be sent changes nothing: a closed connection has no such status.
        is_alone = self._connection.info.transaction_status is TransactionStatus.IDLE
        changes = is_alone and not self._read_only and not reads(statement)
        return self._execute(statement, values, in_commit=changes)

    def begin(self) -> None:
        """See Session."""
        statement = "BEGIN READ ONLY" if self._read_only else "BEGIN"
        self._execute(statement, (), in_commit=False).close()

    def commit(self) -> None:
        """See Session."""
        done = self._execute("COMMIT", (), in_commit=True)
        if done.status != "COMMIT":
            text = "nothing was committed: a statement of the transaction had failed"
            raise SqlFailed(text, ErrorVerdict.PERMANENT)

    def rollback(self) -> None:
        """See Session. Possible after a cancellation too."""
        # A reader has stopped in the middle: the statement is to end before the next.
        if self._connection.info.transaction_status is TransactionStatus.ACTIVE:
            self._connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
            with suppress(psycopg.Error):
                Stream.drain(self._connection)
        if self._last is not None:
            self._last.give_up()
        if self._connection.info.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        ):
            with self._translated("ROLLBACK", in_commit=False):
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
        """See Session. Raises WorkFailed if the connection does not end."""
        self._running.is_cancelled = True
        with self._connector.connect("terminate") as connection:
            tags.terminate(connection, self._backend)

    def close(self) -> None:
        """See Session."""
        if self._connection.info.transaction_status is TransactionStatus.ACTIVE:
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
        self._running.end()
        self._connection.close()
        self._connector.close()

    def _execute(self, statement: str, values: Sequence[Any], *, in_commit: bool) -> Stream:
        if self._last is not None:
            self._last.close()
        self._running.begin()
        began = time.monotonic()
        self._last = stream = Stream(
            self._connection,
            self._type_names,
            lambda: self._translated(statement, in_commit=in_commit, began=began),
            self._running.end,
        )
        stream.start(statement, values)
        return stream

    @contextmanager
    def _translated(
        self, statement: str, *, in_commit: bool, began: float | None = None
    ) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            translated = failed(error, statement, in_commit=in_commit)
            if translated.code == QUERY_CANCELED:
                self._require_not_ended_by_us(began, error)
            raise translated from error

    def _require_not_ended_by_us(self, began: float | None, error: psycopg.Error) -> None:
        if self._running.is_cancelled:
            raise StatementCancelled from error
        limit_s = self._statement_timeout_s
        if limit_s is not None and began is not None and time.monotonic() - began >= limit_s:
            raise StatementTimedOut(limit_s, QUERY_CANCELED) from error


def _require_no_pooler(connection: Connection) -> None:
    (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (None,)
    if pid != connection.info.backend_pid:
        text = (
            "a connection pooler is there, not the server: it offers no way to end what a "
            "killed attempt leaves running. Name the server itself in the data source"
        )
        raise WorkFailed(text, permanent=True)


def _set_up(connection: Connection, read_only: bool, statement_timeout_s: float | None) -> None:
    settings = {
        # The server looks after its client too, and for half-open connections.
        "tcp_keepalives_idle": "30",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "3",
    }
    if connection.info.server_version >= _CHECKS_CONNECTION:
        settings["client_connection_check_interval"] = _CHECK_EVERY
    if read_only:
        settings["default_transaction_read_only"] = "on"
    if statement_timeout_s is not None:
        settings["statement_timeout"] = str(max(1, round(statement_timeout_s * 1000)))
    for name, value in settings.items():
        # A server on a system without such a thing says so, and is used without it.
        with suppress(psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject):
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])


def _noticed(notice: Diagnostic) -> str:
    text = f"{notice.severity}: {notice.message_primary}"
    return text + "".join(
        f"; {more}" for more in (notice.message_detail, notice.message_hint) if more
    )
