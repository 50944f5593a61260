"""ClickHouse, by its HTTP interface. A query's id begins with the task's tag, by which it is found
and ended. Each statement is committed by itself.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count, islice
from typing import Any

import clickhouse_connect
from clickhouse_connect import common
from clickhouse_connect.driver import exceptions

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.dbapi import DbApiSession
from shoal.worker.types.sql.drivers.failures import SqlFailed, cannot_connect, lost
from shoal.worker.types.sql.drivers.files import authority_file
from shoal.worker.types.sql.drivers.syntax import first_words
from shoal.worker.types.sql.session import ErrorVerdict

_SETTLE_TIMEOUT_S = 30.0
_POLL_S = 0.1
# A statement may be silent for as long as it likes: the attempt has a timeout.
_LONGEST_SILENCE_S = 7 * 86_400
_ERRORS: tuple[type[Exception], ...] = (
    exceptions.ClickHouseError,
    OSError,  # as those of the library for HTTP are
)
_WITH_ROWS = frozenset(
    {"SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "EXISTS", "VALUES", "CHECK", "FROM"}
)
# As what a value is bound at the server, by the name of its type.
_TYPES = {
    "integer": "Int64",
    "float": "Float64",
    "decimal": "Decimal(38, 18)",
    "boolean": "Bool",
    "date": "Date32",
    "timestamp": "DateTime64(6)",
}
_REFUSED = {"AUTHENTICATION_FAILED", "UNKNOWN_USER", "WRONG_PASSWORD", "REQUIRED_PASSWORD"}
_LASTING_HERE = {*_REFUSED, "UNKNOWN_DATABASE", "ACCESS_DENIED"}
# Errors of which another attempt may see less.
_PASSING = {
    "ABORTED",
    "ALL_CONNECTION_TRIES_FAILED",
    "DEADLOCK_AVOIDED",
    "KEEPER_EXCEPTION",
    "MEMORY_LIMIT_EXCEEDED",
    "NETWORK_ERROR",
    "NOT_ENOUGH_SPACE",
    "QUERY_WAS_CANCELLED",
    "SOCKET_TIMEOUT",
    "TABLE_IS_READ_ONLY",
    "TIMEOUT_EXCEEDED",
    "TOO_MANY_SIMULTANEOUS_QUERIES",
}
_KILL = "KILL QUERY WHERE user = currentUser() AND startsWith(query_id, {prefix:String}) ASYNC"
_RUNNING = (
    "SELECT count() FROM system.processes "
    "WHERE user = currentUser() AND startsWith(query_id, {prefix:String})"
)


def connect(
    source: DataSource,
    *,
    tag: str,
    attempt: int,
    log: Callable[[str], None],
    read_only: bool,
    statement_timeout_s: float | None,
) -> DbApiSession:
    """See ``session``."""
    settle(source, tag=tag)
    backend = ClickHouseBackend(source, tag, attempt, read_only=read_only)
    return DbApiSession(backend, statement_timeout_s, read_only=read_only)


def settle(source: DataSource, *, tag: str, attempt: int = 0) -> None:
    """See ``session``."""
    with _translated(source), _client(source) as client:
        _end(source, client, f"{tag}/")


class ClickHouseBackend:
    """See ``session.Backend``."""

    has_transactions = False
    refuses_changes = True
    reading: tuple[str, ...] = ()
    quote_mark = "`"

    def __init__(self, source: DataSource, tag: str, attempt: int, *, read_only: bool) -> None:
        self.errors = _ERRORS
        self._source, self._tag = source, tag
        self._prefix, self._numbers = f"{tag}/{attempt}/", count(1)
        # The server refuses what changes anything, settings apart, which the library sends.
        settings = {"readonly": "2"} if read_only else {}
        self._open = ExitStack()
        with _translated(source):
            self._client = self._open.enter_context(_client(source, settings))

    def placeholder(self, number: int, type_name: str) -> str:
        """See Backend."""
        return f"{{p{number}:{_TYPES.get(type_name, 'String')}}}"

    def cursor(self) -> "_Statement":
        """See Backend."""
        return _Statement(self._client, f"{self._prefix}{next(self._numbers)}")

    def begin(self) -> None:
        """See Backend."""

    def commit(self) -> None:
        """See Backend."""

    def rollback(self) -> None:
        """See Backend."""

    def type_name(self, type_code: Any) -> str:
        """See Backend."""
        return str(type_code)

    def commits(self, statement: str) -> bool:
        """See Backend."""
        return not _has_rows(statement)

    def failed(self, error: Exception, *, in_commit: bool) -> SqlFailed:
        """See Backend."""
        name, text = _named(error), _said(error)
        if name is None:
            return lost(in_commit=in_commit, text=text)
        verdict = ErrorVerdict.RETRY if name in _PASSING else ErrorVerdict.PERMANENT
        return SqlFailed(text, verdict, name)

    def interrupt(self) -> None:
        """See Backend. By a connection of its own: the other one waits for its answer."""
        with _client(self._source) as client:
            client.command(_KILL, parameters={"prefix": self._prefix})

    def end(self) -> None:
        """See Backend."""
        settle(self._source, tag=self._tag)

    def close(self) -> None:
        """See Backend."""
        self._open.close()


class _Statement:
    """What ``DbApiSession`` asks of a cursor, for one statement."""

    def __init__(self, client: Any, query_id: str) -> None:
        self._client, self._query_id = client, query_id
        self._stream = ExitStack()
        self._rows: Iterator[Sequence[Any]] = iter(())
        self.description: list[tuple[str, str]] | None = None
        self.rowcount: int | None = None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        named = {f"p{number}": _as_text(value) for number, value in enumerate(values)}
        more = {"parameters": named or None, "settings": {"query_id": self._query_id}}
        if not _has_rows(statement):
            summary = self._client.command(statement, **more)
            written = getattr(summary, "written_rows", None)
            self.rowcount = written if isinstance(written, int) else None
            return
        stream = self._client.query_rows_stream(statement, **more)
        self._rows = iter(self._stream.enter_context(stream))
        found = stream.source
        names, types = found.column_names, found.column_types
        self.description = [(name, one.name) for name, one in zip(names, types, strict=True)]

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in islice(self._rows, size)]

    def close(self) -> None:
        self._stream.close()


def _has_rows(statement: str) -> bool:
    return first_words(statement, 1, mysql=True)[:1] in {(word,) for word in _WITH_ROWS}


def _as_text(value: Any) -> str | None:
    """Return a value as the server reads it."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case Decimal():
            return f"{value:f}"
        case datetime() if value.tzinfo is not None:
            return f"{value.astimezone(UTC).timestamp():.6f}"
        case datetime():
            return value.isoformat(sep=" ", timespec="microseconds")
        case date():
            return value.isoformat()
        case _:
            return str(value)


@contextmanager
def _client(source: DataSource, settings: dict[str, str] | None = None) -> Iterator[Any]:
    """Sign in."""
    options = source.options
    is_secure = bool(options.get("secure", False))
    client = clickhouse_connect.get_client(
        host=source.host,
        port=source.port or (8443 if is_secure else 8123),
        username=source.user or None,
        password=source.password,
        database=source.database or None,
        interface="https" if is_secure else "http",
        verify=True,
        ca_cert=authority_file(source) if is_secure else None,
        connect_timeout=int(options.get("connect_timeout", 10)),
        send_receive_timeout=_LONGEST_SILENCE_S,
        # Else two statements of one connection exclude each other, and a kill would be one.
        autogenerate_session_id=settings is not None,
        settings=settings or {},
        compress=False,
    )
    try:
        yield client
    finally:
        client.close()


def _end(source: DataSource, client: Any, prefix: str) -> None:
    """End all queries whose ids begin so; return when they are gone."""
    parameters = {"prefix": prefix}
    deadline = time.monotonic() + _SETTLE_TIMEOUT_S
    while int(client.command(_RUNNING, parameters=parameters)):
        client.command(_KILL, parameters=parameters)
        if time.monotonic() > deadline:
            raise cannot_connect(source, "queries of an earlier attempt do not end")
        time.sleep(_POLL_S)


@contextmanager
def _translated(source: DataSource) -> Iterator[None]:
    """Raise what goes wrong with advice."""
    try:
        yield
    except WorkFailed:
        raise
    except _ERRORS as error:
        name, text = _named(error), _said(error)
        if name in _REFUSED:
            text = "the server refuses this user or password"
        elif name is None:
            text = (
                f"no server answers there: is the server running, are host and port right? {text}"
            )
        raise cannot_connect(source, text, permanent=name in _LASTING_HERE) from error


def _named(error: Exception) -> str | None:
    """Return the server's name of its error; None: it is none of the server's."""
    if getattr(error, "code", None) is None and getattr(error, "name", None) is None:
        return None
    return str(getattr(error, "name", None) or getattr(error, "code", None))


def _said(error: Exception) -> str:
    """Return what an error says to people: the server's own words, without the library's."""
    text = " ".join(str(error).split())
    return text.partition("DB::Exception: ")[2].partition(" (version ")[0] or text


# The name of the worker's user is nothing to tell other servers.
common.set_setting("send_os_user", False)
