"""Oracle, by its driver's thin mode. A lock of DBMS_LOCK carries the task's tag.

The user needs EXECUTE on DBMS_LOCK. A session whose client is gone is found by Oracle itself
(SQLNET.EXPIRE_TIME); the next attempt waits for its lock, and fails if that does not come.
"""

import ssl
from collections.abc import Callable
from typing import Any

import oracledb

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.dbapi import DbApiSession
from shoal.worker.types.sql.drivers.failures import SqlFailed, cannot_connect, lost
from shoal.worker.types.sql.drivers.syntax import first_words
from shoal.worker.types.sql.session import ErrorVerdict

_WAIT_S = 60
_LOCK = """
DECLARE handle VARCHAR2(128);
BEGIN
    DBMS_LOCK.ALLOCATE_UNIQUE(:name, handle);
    :answer := DBMS_LOCK.REQUEST(handle, DBMS_LOCK.X_MODE, :seconds, FALSE);
END;
"""
_GRANTED = (0, 4)  # now, or before
_COMMITTING = {
    ("ALTER",), ("ANALYZE",), ("AUDIT",), ("COMMENT",), ("CREATE",), ("DROP",), ("FLASHBACK",),
    ("GRANT",), ("NOAUDIT",), ("PURGE",), ("RENAME",), ("REVOKE",), ("TRUNCATE",),
}  # fmt: skip
_NO_SUCH_NAME = 6550  # PL/SQL: an identifier must be declared
_MAY_PASS = {
    18,  # no session left
    20,  # no process left
    54,  # resource busy
    60,  # deadlock
    1013,  # cancelled
    1555,  # snapshot too old
    4031,  # out of shared memory
    4068,  # packages have changed
    8177,  # cannot serialize
    12516, 12519, 12520,  # no handler left
    12537, 12541, 12545, 12170,  # no listener, no answer
    30006,  # resource busy, after waiting
}  # fmt: skip
_LOST = {28, 1012, 1033, 1089, 3113, 3114, 3135, 12571}


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
    connection = _connection(source)
    try:
        connection.module, connection.client_identifier = f"{tag}/{attempt}"[:48], tag
        _take(connection, tag)
    except (oracledb.Error, WorkFailed) as error:
        connection.close()
        permanent = isinstance(error, WorkFailed) and error.permanent
        raise cannot_connect(source, str(error), permanent=permanent) from error
    backend = OracleBackend(connection, read_only=read_only)
    return DbApiSession(backend, statement_timeout_s, read_only=read_only)


def settle(source: DataSource, *, tag: str, attempt: int = 0) -> None:
    """See ``session``."""
    connection = _connection(source)
    try:
        _take(connection, tag)
    except (oracledb.Error, WorkFailed) as error:
        raise cannot_connect(source, str(error)) from error
    finally:
        connection.close()


class OracleBackend:
    """See ``session.Backend``."""

    errors: tuple[type[Exception], ...] = (oracledb.Error,)
    has_transactions = True
    refuses_changes = True
    reading: tuple[str, ...] = ()
    quote_mark = '"'

    def __init__(self, connection: Any, *, read_only: bool) -> None:
        self._connection, self._read_only = connection, read_only
        connection.autocommit = True

    def placeholder(self, number: int, type_name: str) -> str:
        """See Backend."""
        return f":{number + 1}"

    def cursor(self) -> Any:
        """See Backend."""
        return self._connection.cursor()

    def begin(self) -> None:
        """See Backend. A transaction begins with its first statement."""
        self._connection.autocommit = False
        if self._read_only:
            with self._connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION READ ONLY")

    def commit(self) -> None:
        """See Backend."""
        self._connection.commit()
        self._connection.autocommit = True

    def rollback(self) -> None:
        """See Backend."""
        self._connection.rollback()
        self._connection.autocommit = True

    def type_name(self, type_code: Any) -> str:
        """See Backend."""
        return str(type_code.name).removeprefix("DB_TYPE_").lower()

    def commits(self, statement: str) -> bool:
        """See Backend."""
        return first_words(statement, 1) in _COMMITTING

    def failed(self, error: Exception, *, in_commit: bool) -> SqlFailed:
        """See Backend."""
        detail = error.args[0]
        if detail.code in _LOST or not self._connection.is_healthy():
            return lost(in_commit=in_commit, text=detail.message, code=detail.full_code)
        passing = detail.code in _MAY_PASS or detail.isrecoverable
        verdict = ErrorVerdict.RETRY if passing else ErrorVerdict.PERMANENT
        return SqlFailed(detail.message, verdict, detail.full_code)

    def interrupt(self) -> None:
        """See Backend."""
        self._connection.cancel()

    def end(self) -> None:
        """See Backend. Oracle rolls back when it notices that the client is gone."""
        self._connection.cancel()
        self._connection.close()

    def close(self) -> None:
        """See Backend."""
        self._connection.close()


def _connection(source: DataSource) -> Any:
    options: dict[str, Any] = {}
    if source.options.get("tls", "disable") != "disable":
        certificate = source.options.get("ca_certificate")
        context = ssl.create_default_context(cadata=str(certificate) if certificate else None)
        options = {"protocol": "tcps", "ssl_context": context, "ssl_server_dn_match": True}
    try:
        return oracledb.connect(
            host=source.host,
            port=source.port or 1521,
            service_name=source.database,
            user=source.user,
            password=source.password,
            tcp_connect_timeout=float(source.options.get("connect_timeout", 10)),
            retry_count=0,
            expire_time=1,  # minute between looks whether the server is there
            **options,
        )
    except oracledb.Error as error:
        permanent = error.args[0].code in (1005, 1017, 12514, 28000, 28001)
        raise cannot_connect(source, str(error), permanent=permanent) from error


def _take(connection: Any, tag: str) -> None:
    with connection.cursor() as cursor:
        answer = cursor.var(int)
        try:
            cursor.execute(_LOCK, {"name": f"shoal.{tag}", "answer": answer, "seconds": _WAIT_S})
        except oracledb.DatabaseError as error:
            if error.args[0].code != _NO_SUCH_NAME:
                raise
            text = "the user needs EXECUTE on DBMS_LOCK, which keeps two attempts apart"
            raise WorkFailed(f"{text} ({error})", permanent=True) from error
        if answer.getvalue() not in _GRANTED:
            raise WorkFailed(
                f"an earlier attempt is still at the server after {_WAIT_S} s (module {tag} in "
                "V$SESSION): an administrator can end it with ALTER SYSTEM KILL SESSION"
            )
