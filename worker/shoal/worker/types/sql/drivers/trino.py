"""Trino. A query carries the task's tag as its source; ``system.runtime`` finds and ends it."""

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import trino
from trino import exceptions

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.dbapi import DbApiSession
from shoal.worker.types.sql.drivers.failures import SqlFailed, cannot_connect, lost
from shoal.worker.types.sql.drivers.files import authority_file
from shoal.worker.types.sql.session import ErrorVerdict

_SETTLE_TIMEOUT_S = 60
_POLL_S = 0.1
_RUNNING = (
    "SELECT query_id FROM system.runtime.queries "
    "WHERE (source = ? OR starts_with(source, ?)) AND state NOT IN ('FINISHED', 'FAILED')"
)
# CALL takes no bound values. The ids are made by the server of letters, digits and underscores.
_KILL = "CALL system.runtime.kill_query(query_id => '{}', message => 'ended by Shoal')"
_ID = re.compile(r"\w+")
_ERRORS: tuple[type[Exception], ...] = (
    exceptions.Error,
    exceptions.HttpError,
    OSError,  # as those of the library for HTTP are
)
_PASSING = {"INTERNAL_ERROR", "INSUFFICIENT_RESOURCES", "EXTERNAL"}


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
    backend = TrinoBackend(source, tag, f"{tag}/{attempt}")
    return DbApiSession(backend, statement_timeout_s, read_only=read_only)


def settle(source: DataSource, *, tag: str, attempt: int = 0) -> None:
    """See ``session``."""
    connection = _connection(source, "settle")
    try:
        _end_all(connection, tag)
    except WorkFailed as error:
        raise cannot_connect(source, str(error)) from error
    except _ERRORS as error:
        lasting = (exceptions.TrinoUserError, exceptions.TrinoAuthError)
        raise cannot_connect(source, str(error), permanent=isinstance(error, lasting)) from error
    finally:
        connection.close()


class TrinoBackend:
    """See ``session.Backend``. Each statement is committed by itself: few catalogues can more."""

    has_transactions = False
    refuses_changes = False
    # WITH begins queries only: that of an INSERT stands behind the table's name.
    reading: tuple[str, ...] = ("WITH",)
    quote_mark = '"'

    def __init__(self, source: DataSource, tag: str, name: str) -> None:
        self._source, self._tag = source, tag
        self._connection = _connection(source, name)
        self.errors = _ERRORS

    def placeholder(self, number: int, type_name: str) -> str:
        """See Backend."""
        return "?"

    def cursor(self) -> Any:
        """See Backend."""
        return self._connection.cursor()

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
        return True

    def failed(self, error: Exception, *, in_commit: bool) -> SqlFailed:
        """See Backend."""
        if not isinstance(error, exceptions.TrinoQueryError):
            return lost(in_commit=in_commit, text=str(error))
        passing = error.error_type in _PASSING
        verdict = ErrorVerdict.RETRY if passing else ErrorVerdict.PERMANENT
        return SqlFailed(str(error.message), verdict, error.error_name)

    def interrupt(self) -> None:
        """See Backend."""
        settle(self._source, tag=self._tag)

    def end(self) -> None:
        """See Backend."""
        settle(self._source, tag=self._tag)

    def close(self) -> None:
        """See Backend."""
        self._connection.close()


def _connection(source: DataSource, name: str) -> Any:
    options = source.options
    authentication = None
    if source.password:
        authentication = trino.auth.BasicAuthentication(source.user, source.password)
    return trino.dbapi.connect(  # type: ignore[no-untyped-call]
        host=source.host,
        port=source.port or 443,
        user=source.user,
        source=name,
        catalog=options.get("catalog"),
        schema=options.get("schema"),
        http_scheme=str(options.get("http_scheme", "https")),
        auth=authentication,
        verify=authority_file(source) or True,
        request_timeout=float(options.get("connect_timeout", 10)),
    )


def _end_all(connection: Any, tag: str) -> None:
    deadline = time.monotonic() + _SETTLE_TIMEOUT_S
    while running := _rows(connection, _RUNNING, [tag, f"{tag}/"]):
        for (query,) in running:
            assert _ID.fullmatch(query), query
            with suppress(exceptions.TrinoUserError):  # it has ended meanwhile
                _rows(connection, _KILL.format(query))
        if time.monotonic() > deadline:
            raise WorkFailed(f"queries of an earlier attempt do not end: {running}")
        time.sleep(_POLL_S)


def _rows(connection: Any, statement: str, values: Sequence[str] = ()) -> list[Any]:
    cursor = connection.cursor()
    cursor.execute(statement, *([list(values)] if values else []))
    rows: list[Any] = cursor.fetchall()
    cursor.close()
    return rows
