"""What an error of MariaDB or MySQL means."""

import pymysql
from pymysql.constants import CR, ER

from shoal.worker.types.sql.drivers.failures import SqlFailed, lost
from shoal.worker.types.sql.session import ErrorVerdict

INTERRUPTED = ER.QUERY_INTERRUPTED
TIMED_OUT = (ER.STATEMENT_TIMEOUT, ER.QUERY_TIMEOUT)
NO_SUCH_THREAD = ER.NO_SUCH_THREAD
_KILLED = 1927  # MariaDB: the connection was killed
_LOST = {0, CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, CR.CR_SERVER_LOST_EXTENDED, 4031}
# In a COMMIT they leave open whether it was done.
_SHUT_DOWN = {ER.SERVER_SHUTDOWN, _KILLED, ER.NORMAL_SHUTDOWN}
_MAY_PASS = {
    *_SHUT_DOWN,
    *TIMED_OUT,
    INTERRUPTED,
    ER.LOCK_WAIT_TIMEOUT,
    ER.LOCK_DEADLOCK,
    ER.CHECKREAD,  # changed since it was read
    ER.CON_COUNT_ERROR,
    ER.TOO_MANY_USER_CONNECTIONS,
    ER.USER_LIMIT_REACHED,
    ER.DISK_FULL,
    ER.OUTOFMEMORY,
    ER.OUT_OF_SORTMEMORY,
    ER.OUT_OF_RESOURCES,
    ER.RECORD_FILE_FULL,
    ER.CANT_CREATE_THREAD,
    ER.NET_READ_ERROR,
    ER.NET_READ_INTERRUPTED,
    ER.NET_ERROR_ON_WRITE,
    ER.NET_WRITE_INTERRUPTED,
    1615,  # prepared again: its tables have changed
}
_READ_ONLY = 1792
_HINTS = {_READ_ONLY: "the task is read-only"}


def code_of(error: Exception) -> int:
    """Return the server's or the driver's number of an error; 0: the connection is closed."""
    code = error.args[0] if error.args else None
    return code if isinstance(code, int) else 0


def failed(error: pymysql.MySQLError, *, in_commit: bool) -> SqlFailed:
    """Return the error for people and for ``classify``.

    ``in_commit``: what the statement does is durable when it ends.
    """
    code = code_of(error)
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    if code in _LOST and not (code == 0 and text):
        return lost(in_commit=in_commit, text=text or "it is closed", code=str(code))
    if code in _SHUT_DOWN and in_commit:
        return lost(in_commit=True, text=text, code=str(code))
    hint = f"; {_HINTS[code]}" if code in _HINTS else ""
    verdict = ErrorVerdict.RETRY if code in _MAY_PASS else ErrorVerdict.PERMANENT
    return SqlFailed(text + hint, verdict, str(code) if code else None)
