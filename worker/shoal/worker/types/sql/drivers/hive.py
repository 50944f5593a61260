"""Hive, and Spark's Thrift server: HiveServer2's protocol, by impyla.

An attempt has a session there, whose handle is all that finds it: the protocol can list neither
sessions nor statements. The handle is in a file of the attempt's folder, private as that is, so
settling ends the session when the process is gone. The server does the same when it sees that its
client is gone; so does a later attempt on another worker, which can do nothing but rely on it.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from impala import dbapi
from impala._thrift_gen.TCLIService.ttypes import (
    TCancelOperationReq,
    TCloseSessionReq,
    THandleIdentifier,
    TSessionHandle,
)
from impala.error import Error
from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from shoal.core.data_sources import DataSource
from shoal.worker.processes.work_files import write_new
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers import literals
from shoal.worker.types.sql.drivers.dbapi import DbApiSession
from shoal.worker.types.sql.drivers.failures import SqlFailed, cannot_connect, lost
from shoal.worker.types.sql.drivers.files import authority_file
from shoal.worker.types.sql.drivers.rows import BLOCK
from shoal.worker.types.sql.drivers.running_statement import within
from shoal.worker.types.sql.drivers.syntax import quoted, reads
from shoal.worker.types.sql.session import ErrorVerdict

_PORT = 10000
_HANDLE_FILE = "hive-session.json"
# An answer of the server, which is not asked for longer than it takes to look after a statement.
_RPC_TIMEOUT_S = 300
_SETTLE_TIMEOUT_S = 15.0
_ERRORS = (Error, TException, OSError, EOFError)
_USER = "shoal"  # where the data source names no user
_AUTH = {"nosasl": "NOSASL", "plain": "PLAIN", "ldap": "LDAP"}
_STATE = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")
# Classes of SQLSTATE of which another attempt may see less; see drivers/spark.py.
_PASSING = ("08", "40", "53", "57", "58", "XX")
_LASTING = re.compile(
    r"ParseException|SemanticException|AnalysisException|AccessControlException|"
    r"HiveAccessControlException|Permission denied"
)
# What Spark says that it returns of statements that return nothing.
_NO_COLUMNS = ("Result", "STRING")
_GONE = re.compile(r"Invalid SessionHandle|Session .{0,100}does not exist|Invalid OperationHandle")
_WRAPPERS = re.compile(
    r"^(?:[a-z][\w.$]*\.[A-Z]\w*(?:Exception|Error): )?"
    r"(?:Error running query: (?:\[\w+(?:\.\w+)*\] )?(?:[a-z][\w.$]*\.[A-Z]\w*: )?)?"
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
    backend = HiveBackend(source, f"{tag}/{attempt}")
    return DbApiSession(backend, statement_timeout_s, read_only=read_only)


def settle(source: DataSource, *, tag: str, attempt: int = 0) -> None:
    """See ``session``. Ends the session whose handle the process of the attempt has left."""
    try:
        told = json.loads(Path(_HANDLE_FILE).read_text(encoding="ascii"))
    except FileNotFoundError:
        return  # it had none yet
    parts = (base64.b64decode(told[name]) for name in ("guid", "secret"))
    _close_session(source, TSessionHandle(sessionId=THandleIdentifier(*parts)))


class HiveBackend:
    """See ``session.Backend``. Each statement is committed by itself."""

    has_transactions = False
    refuses_changes = False
    reading: tuple[str, ...] = ()  # not WITH: an INSERT may follow
    quote_mark = "`"

    def __init__(self, source: DataSource, name: str) -> None:
        self.errors: tuple[type[Exception], ...] = _ERRORS
        self._source = source
        self._connection = _connection(source)
        configuration = {"mapreduce.job.name": name} if name else None
        try:
            limit_s = float(source.options.get("connect_timeout", 10))
            within(limit_s, lambda: self._open(configuration))
        except (*_ERRORS, TimeoutError) as error:
            self._connection.close()
            raise _cannot_sign_in(source, error) from error

    def _open(self, configuration: dict[str, str] | None) -> None:
        self._cursor = self._connection.cursor(
            user=self._source.user or _USER,
            configuration=configuration,
            # To close them makes impyla read the log, which fails where there is none.
            close_finished_queries=False,
        )
        _remember(self._cursor.session.handle)
        if self._source.database:
            self._cursor.execute(f"USE {quoted(self._source.database, '`')}")

    def placeholder(self, number: int, type_name: str) -> str:
        """See Backend."""
        return literals.placeholder(number)

    def cursor(self) -> "_HiveCursor":
        """See Backend."""
        return _HiveCursor(self._cursor)

    def begin(self) -> None:
        """See Backend."""

    def commit(self) -> None:
        """See Backend."""

    def rollback(self) -> None:
        """See Backend."""

    def type_name(self, type_code: Any) -> str:
        """See Backend."""
        return str(type_code).lower()

    def commits(self, statement: str) -> bool:
        """See Backend."""
        return not reads(statement)

    def failed(self, error: Exception, *, in_commit: bool) -> SqlFailed:
        """See Backend."""
        text = _said(error)
        if not isinstance(error, Error) or _GONE.search(text):
            return lost(in_commit=in_commit, text=text or type(error).__name__)
        return SqlFailed(text, ErrorVerdict.PERMANENT if _lasts(error) else ErrorVerdict.RETRY)

    def interrupt(self) -> None:
        """See Backend. By a connection of its own: the other one waits for its answer."""
        operation = self._cursor._last_operation
        if operation is not None:
            with _other(self._source) as client:
                client.CancelOperation(TCancelOperationReq(operationHandle=operation.handle))

    def end(self) -> None:
        """See Backend."""
        _close_session(self._source, self._cursor.session.handle)

    def close(self) -> None:
        """See Backend. What is left of the session at the server goes with it."""
        try:
            within(_SETTLE_TIMEOUT_S, self._cursor.close)
        except TimeoutError as error:
            raise TTransportException(message=str(error)) from error
        finally:
            self._connection.close()


class _HiveCursor:
    """What ``DbApiSession`` asks of a cursor. The one of the session is used again and again."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor
        self._texts: list[int] = []  # columns that come as bytes and are texts
        self._first: list[tuple[Any, ...]] = []  # rows that were read to see whether there are any
        self.description: Any = None
        self.rowcount = -1  # the server does not tell

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._cursor.execute(literals.filled(statement, values))
        if self._cursor.status() == "CANCELED_STATE":
            raise Error("the statement was cancelled")
        self.description = self._cursor.description or None
        if self.description is not None and self.description[0][:2] == _NO_COLUMNS:
            try:
                self._first = self._cursor.fetchmany(BLOCK)
            except IndexError:  # what is fetched then has no columns
                self.description = None
        columns = enumerate(self.description or ())
        self._texts = [number for number, (_, kind, *_) in columns if kind != "BINARY"]

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        rows, self._first = self._first, []
        rows = rows or self._cursor.fetchmany(size)
        return [self._decoded(row) for row in rows]

    def _decoded(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if not any(isinstance(row[number], bytes) for number in self._texts):
            return row
        new = list(row)
        for number in self._texts:  # arrays, maps, structs: JSON
            if isinstance(new[number], bytes):
                new[number] = new[number].decode("utf-8", "replace")
        return tuple(new)

    def close(self) -> None:
        self._cursor.close_operation()


def _connection(source: DataSource) -> Any:
    """Sign in. Raises WorkFailed."""
    options = source.options
    tls = str(options.get("tls", "disable"))
    limit_s = float(options.get("connect_timeout", 10))
    found: list[Any] = []

    def sign_in() -> None:
        found.append(
            dbapi.connect(
                host=source.host,
                port=source.port or _PORT,
                timeout=_RPC_TIMEOUT_S,
                use_ssl=tls != "disable",
                verify_cert=tls == "verify-ca",
                ca_cert=authority_file(source) if tls == "verify-ca" else None,
                auth_mechanism=_AUTH[str(options.get("auth", "plain"))],
                user=source.user or _USER,
                password=source.password or "none",
                retries=1,
            )
        )

    try:
        within(limit_s, sign_in)
    except (*_ERRORS, TimeoutError) as error:
        raise _cannot_sign_in(source, error) from error
    return found[0]


@contextmanager
def _other(source: DataSource) -> Iterator[Any]:
    """Return the calls of another connection. For other threads."""
    connection = _connection(source)
    try:
        yield connection.service.client
    finally:
        connection.close()


def _close_session(source: DataSource, handle: Any) -> None:
    """End a session with all that runs in it; it may be gone. Raises WorkFailed."""
    answers: list[Any] = []
    try:
        with _other(source) as client:
            request = TCloseSessionReq(sessionHandle=handle)
            within(_SETTLE_TIMEOUT_S, lambda: answers.append(client.CloseSession(request)))
    except (*_ERRORS, TimeoutError) as error:
        raise cannot_connect(source, _said(error)) from error
    status = answers[0].status
    if status.errorMessage and not _GONE.search(status.errorMessage):
        raise cannot_connect(source, f"its session cannot be ended: {status.errorMessage}")


def _remember(handle: Any) -> None:
    """Keep what settling needs, in the attempt's folder."""
    parts = {"guid": handle.sessionId.guid, "secret": handle.sessionId.secret}
    told = {name: base64.b64encode(value).decode("ascii") for name, value in parts.items()}
    with suppress(FileNotFoundError):
        os.unlink(_HANDLE_FILE)
    write_new(Path(_HANDLE_FILE), json.dumps(told).encode("ascii"), 0o600)


def _cannot_sign_in(source: DataSource, error: Exception) -> WorkFailed:
    if isinstance(error, WorkFailed):
        return error
    text = _said(error)
    if isinstance(error, TimeoutError):
        return cannot_connect(source, f"{text}: is it HiveServer2 that listens there?")
    if "Could not connect" in text or isinstance(error, ConnectionRefusedError):
        advice = "no server answers there: is the server running, are host and port right?"
        return cannot_connect(source, advice)
    if "Bad status" in text or "Error validating the login" in text:
        return cannot_connect(source, "the server refuses this user or password", permanent=True)
    if "read 0 bytes" in text:
        advice = (
            "the server has closed the connection: do the options `auth` and `tls` say what it "
            "expects?"
        )
        return cannot_connect(source, advice, permanent=True)
    return cannot_connect(source, text, permanent=isinstance(error, Error) and _lasts(error))


def _lasts(error: Exception) -> bool:
    """Return whether another attempt would see the same error of the server."""
    if state := _STATE.search(str(error)):
        return not state[1].startswith(_PASSING)
    return _LASTING.search(str(error)) is not None


def _said(error: Exception) -> str:
    """Return what an error says to people: the first part, without the frames of Java."""
    text = str(error).split("\n\tat ", 1)[0].strip()
    return _WRAPPERS.sub("", text, count=1).strip()
