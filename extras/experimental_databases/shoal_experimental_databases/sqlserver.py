"""SQL Server, by python-tds. An application lock of the session carries the task's tag.

The server ends a session, and rolls back, when its connection is closed. So cancelling closes it,
and the next attempt waits for the lock.
"""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytds

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.dbapi import DbApiSession
from shoal.worker.types.sql.drivers.failures import SqlFailed, cannot_connect, lost
from shoal.worker.types.sql.drivers.files import authority_file
from shoal.worker.types.sql.session import ErrorVerdict

_WAIT_S = 60
_LOCK = (
    "DECLARE @answer int; EXEC @answer = sp_getapplock @Resource = %s, @LockMode = 'Exclusive', "
    "@LockOwner = 'Session', @LockTimeout = %s; SELECT @answer"
)
_LASTING = {4060, 18452, 18456, 18470, 18487, 18488}  # of signing in
_MAY_PASS = {
    701, 802,  # memory
    1204, 1205, 1222,  # locks, deadlock
    3960,  # changed since it was read
    9002,  # a full log
    10928, 10929, 40197, 40501, 40613, 49918, 49919, 49920,  # the cloud's
}  # fmt: skip


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
    if read_only:
        text = "SQL Server has no read-only transactions; use a user who may only read"
        raise cannot_connect(source, text, permanent=True)
    opened, connection = _connection(source, f"{tag}/{attempt}")
    try:
        _take(connection, tag)
    except (pytds.Error, OSError, WorkFailed) as error:
        connection.close()
        raise cannot_connect(source, str(error)) from error
    backend = SqlServerBackend(opened, connection)
    return DbApiSession(backend, statement_timeout_s, read_only=False)


def settle(source: DataSource, *, tag: str, attempt: int = 0) -> None:
    """See ``session``."""
    _, connection = _connection(source, f"settle {tag}")
    try:
        _take(connection, tag)
    except (pytds.Error, OSError, WorkFailed) as error:
        raise cannot_connect(source, str(error)) from error
    finally:
        connection.close()


class SqlServerBackend:
    """See ``session.Backend``."""

    errors: tuple[type[Exception], ...] = (pytds.Error, OSError)
    has_transactions = True
    refuses_changes = True
    reading: tuple[str, ...] = ()
    quote_mark = '"'

    def __init__(self, opened: socket.socket, connection: Any) -> None:
        self._socket, self._connection = opened, connection

    def placeholder(self, number: int, type_name: str) -> str:
        """See Backend."""
        return "%s"

    def cursor(self) -> Any:
        """See Backend."""
        return self._connection.cursor()

    def begin(self) -> None:
        """See Backend."""
        self._run("BEGIN TRANSACTION")

    def commit(self) -> None:
        """See Backend."""
        self._run("COMMIT TRANSACTION")

    def rollback(self) -> None:
        """See Backend."""
        self._run("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")

    def type_name(self, type_code: Any) -> str:
        """See Backend. The driver has numbers of kinds, no names."""
        return str(type_code)

    def commits(self, statement: str) -> bool:
        """See Backend."""
        return False

    def failed(self, error: Exception, *, in_commit: bool) -> SqlFailed:
        """See Backend."""
        number = getattr(error, "number", 0) or getattr(error, "msg_no", 0)
        if not number:
            return lost(in_commit=in_commit, text=str(error))
        verdict = ErrorVerdict.RETRY if number in _MAY_PASS else ErrorVerdict.PERMANENT
        text = getattr(error, "text", None) or str(error)
        return SqlFailed(str(text), verdict, str(number))

    def interrupt(self) -> None:
        """See Backend."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """See Backend."""
        self.interrupt()

    def close(self) -> None:
        """See Backend."""
        self._connection.close()

    def _run(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)


def _connection(source: DataSource, name: str) -> tuple[socket.socket, Any]:
    tls = source.options.get("tls", "verify-full")
    trusted = ssl.get_default_verify_paths()
    authority = authority_file(source) or trusted.cafile or trusted.openssl_cafile
    timeout_s = float(source.options.get("connect_timeout", 10))
    try:
        opened = socket.create_connection((source.host, source.port or 1433), timeout_s)
        connection = pytds.connect(
            dsn=source.host,
            port=source.port or 1433,
            database=source.database,
            user=source.user,
            password=source.password,
            appname=name,
            login_timeout=timeout_s,
            autocommit=True,
            cafile=None if tls == "disable" else authority,
            validate_host=tls == "verify-full",
            sock=opened,
            disable_connect_retry=True,
        )
    except (pytds.Error, OSError) as error:
        number = getattr(error, "number", 0) or getattr(error, "msg_no", 0)
        raise cannot_connect(source, str(error), permanent=number in _LASTING) from error
    return opened, connection


def _take(connection: Any, tag: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, (f"shoal.{tag}", _WAIT_S * 1000))
        (answer,) = cursor.fetchone()
    if answer < 0:
        raise WorkFailed(
            f"an earlier attempt is still at the server after {_WAIT_S} s (program {tag} in "
            "sys.dm_exec_sessions): an administrator can end it with KILL"
        )
