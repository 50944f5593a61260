"""Spark SQL, through a Spark Connect server. An attempt has a session there whose id it makes.

Only who knows a session's id can end what runs in it, so the id follows from tag and attempt. Each
statement is committed by itself: Spark has no transactions.
"""

import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any
from urllib.parse import quote as percent_encoded

import grpc
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession as SparkClient
from pyspark.sql.connect.client.retries import DefaultPolicy

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.spark.connect import USER, session_id
from shoal.worker.types.sql.drivers.failures import (
    SqlFailed,
    StatementCancelled,
    StatementTimedOut,
    cannot_connect,
    lost,
    require_reading,
)
from shoal.worker.types.sql.drivers.files import authority_file
from shoal.worker.types.sql.drivers.rows import NoRows, RowStream
from shoal.worker.types.sql.drivers.running_statement import RunningStatement, within
from shoal.worker.types.sql.drivers.syntax import quoted, reads
from shoal.worker.types.sql.session import Column, ErrorVerdict, Result

_PORT = 15002
_LOCAL = ("localhost", "127.0.0.1", "::1")
_SIGN_IN_TIMEOUT_S, _CLOSE_TIMEOUT_S = 15.0, 5.0
# The client's own patience with a server that is gone is minutes.
_MOST_RETRIES, _LONGEST_PAUSE_MS = 3, 1_000
# Spark reports its tasks every 2 s (spark.connect.progress.reportInterval).
_PLANNING_S = 2.2
_ERRORS = (PySparkException, grpc.RpcError, ValueError)
_CANCELLED = "OPERATION_CANCELED"
_CLOSED = "INVALID_HANDLE"  # the session, or what ran in it, is closed
# Classes of SQLSTATE of which another attempt may see less: out of resources, operator
# intervention, system errors, internal errors.
_PASSING = ("53", "57", "58", "XX")


def connect(
    source: DataSource,
    *,
    tag: str,
    attempt: int,
    log: Callable[[str], None],
    read_only: bool,
    statement_timeout_s: float | None,
) -> "SparkSession":
    """See ``session``."""
    if attempt > 1:
        _end(source, tag, attempt - 1)
    client = _client(source, tag, attempt)
    try:
        # The first request: is anybody there?
        within(_SIGN_IN_TIMEOUT_S, lambda: client.version)
    except (*_ERRORS, TimeoutError) as error:
        raise _cannot_sign_in(source, error) from error
    return SparkSession(client, statement_timeout_s, read_only=read_only)


def settle(source: DataSource, *, tag: str, attempt: int = 0) -> None:
    """See ``session``."""
    if not source.host:
        return  # the worker's own server, which is dead, and with it all that ran there
    for number in range(max(1, attempt - 1), attempt + 1):
        _end(source, tag, number)


class SparkSession:
    """See ``session.Session``."""

    def __init__(
        self, client: SparkClient, statement_timeout_s: float | None, *, read_only: bool
    ) -> None:
        self._client, self._read_only = client, read_only
        self._statement_timeout_s = statement_timeout_s
        self._running = RunningStatement(self._interrupt, statement_timeout_s)
        self._is_working = threading.Event()  # tasks of the statement run, or it is over
        client.registerProgressHandler(self._watch)  # type: ignore[arg-type]  # any callable does

    @staticmethod
    def placeholder(number: int, type_name: str) -> str:
        """See Session."""
        return "?"

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Result:
        """See Session."""
        changes = not reads(statement)
        if self._read_only:
            require_reading(statement)
        self._is_working.clear()
        self._running.begin()
        try:
            with self._translated(changes=changes):
                found = self._client.sql(statement, args=list(values) or None)
                columns = [
                    Column(field.name, field.dataType.simpleString())
                    for field in found.schema.fields
                ]
                rows = iter(found.toLocalIterator()) if columns else iter(())
        except BaseException:
            self._finish()
            raise
        if not columns:
            self._finish()
            return NoRows(None)
        return RowStream(columns, lambda size: self._fetch(rows, size), self._finish)

    def begin(self) -> None:
        """See Session. There are no transactions."""

    def commit(self) -> None:
        """See Session."""

    def rollback(self) -> None:
        """See Session."""
        self._finish()

    def quote(self, identifier: str) -> str:
        """See Session. What stands in double quotes is a text."""
        return quoted(identifier, "`")

    def implicit_commit(self, statement: str) -> bool:
        """See Session."""
        return not reads(statement)

    def cancel(self) -> None:
        """See Session."""
        self._running.cancel()

    def terminate(self) -> None:
        """See Session."""
        self._running.is_cancelled = True
        self._client.client.release_session()

    def close(self) -> None:
        """See Session. What is left of the session at the server goes with it."""
        self._finish()
        with suppress(*_ERRORS, TimeoutError):
            within(_CLOSE_TIMEOUT_S, self._client.client.release_session)
        with suppress(*_ERRORS, TimeoutError):
            within(_CLOSE_TIMEOUT_S, self._client.client.close)

    def _fetch(self, rows: Iterator[Any], size: int) -> list[tuple[Any, ...]]:
        try:
            with self._translated(changes=False):
                return [tuple(row) for row in islice(rows, size)]
        except BaseException:
            self._finish()
            raise

    def _finish(self) -> None:
        self._running.end()
        self._is_working.set()

    def _interrupt(self) -> None:
        """End what runs in the session. For other threads.

        A statement is interrupted when its tasks run. While it is planned, threads of its own
        submit its jobs, and Spark does not end one that is submitted after the interruption.
        """
        number = self._running.number
        self._is_working.wait(_PLANNING_S)
        if self._running.number == number:
            self._is_working.set()
            self._client.interruptAll()

    def _watch(self, *, inflight_tasks: int, **more: object) -> None:
        if inflight_tasks > 0:
            self._is_working.set()

    @contextmanager
    def _translated(self, *, changes: bool) -> Iterator[None]:
        try:
            yield
        except _ERRORS as error:
            if self._running.has_timed_out:
                raise StatementTimedOut(self._statement_timeout_s) from error
            if self._running.is_cancelled or _CANCELLED in str(error):
                raise StatementCancelled from error
            raise _failed(error, changes=changes) from error


def _client(source: DataSource, tag: str, attempt: int) -> SparkClient:
    """Return a client of the session of an attempt. Nothing is sent yet."""
    is_local = source.host in _LOCAL
    host = "localhost" if is_local else source.host
    fields = {
        "user_id": source.user or USER,
        "session_id": session_id(tag, attempt),
    }
    if source.options.get("tls") == "verify-full":
        fields["use_ssl"] = "true"
        if file := authority_file(source):
            os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = file
    elif source.password and not is_local:
        text = "a token is sent with TLS only, or to localhost: set the option tls=verify-full"
        raise cannot_connect(source, text, permanent=True)
    if source.password:
        fields["token"] = source.password
    told = ";".join(f"{name}={percent_encoded(value, safe='')}" for name, value in fields.items())
    client = SparkClient.builder.remote(f"sc://{host}:{source.port or _PORT}/;{told}").create()
    patience = DefaultPolicy(max_retries=_MOST_RETRIES, max_backoff=_LONGEST_PAUSE_MS)
    client.client.set_retry_policies([patience])
    return client


def _end(source: DataSource, tag: str, attempt: int) -> None:
    """End the session of an attempt, with all that runs in it. Raises WorkFailed."""
    client = _client(source, tag, attempt)
    try:
        # What runs in it is interrupted by that.
        within(_SIGN_IN_TIMEOUT_S, client.client.release_session)
    except (*_ERRORS, TimeoutError) as error:
        if _CLOSED not in str(error):
            raise _cannot_sign_in(source, error) from error


def _cannot_sign_in(source: DataSource, error: Exception) -> WorkFailed:
    code = error.code() if isinstance(error, grpc.RpcError) else None
    text = _said(error)
    if code is grpc.StatusCode.UNAUTHENTICATED or "UNAUTHENTICATED" in text:
        return cannot_connect(source, "the server refuses this token", permanent=True)
    if code is grpc.StatusCode.UNAVAILABLE or "UNAVAILABLE" in text:
        advice = "no server answers there: is the server running, are host and port right?"
        return cannot_connect(source, advice)
    return cannot_connect(source, text)


def _failed(error: Exception, *, changes: bool) -> SqlFailed:
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if state is None or (condition or "").startswith(_CLOSED):
        return lost(in_commit=changes, text=_said(error))
    verdict = ErrorVerdict.RETRY if state.startswith(_PASSING) else ErrorVerdict.PERMANENT
    return SqlFailed(_said(error), verdict)


def _said(error: Exception) -> str:
    """Return what an error says to people: the first part, without the frames of Java."""
    return str(error).split("\n\nJVM stacktrace", 1)[0].split("\n\tat ", 1)[0].strip()


# The error says so, too.
warnings.filterwarnings("ignore", message=r".*RETRIES_EXCEEDED")
# They would write each error into the log once more, with whole Java traces.
for _name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    PySparkLogger.getLogger(_name).setLevel(logging.CRITICAL)
