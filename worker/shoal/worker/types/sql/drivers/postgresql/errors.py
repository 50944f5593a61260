"""What an error of PostgreSQL means."""

import psycopg

from shoal.worker.types.sql.drivers.failures import SqlFailed, lost
from shoal.worker.types.sql.session import ErrorVerdict

QUERY_CANCELED = "57014"
_PROTOCOL_VIOLATION = "08P01"  # a statement with another number of values
# Classes of SQLSTATE, and single ones, that may not come another time.
_MAY_PASS = (
    "08",  # connection
    "25P03",  # idle in a transaction for too long
    "25P04",  # a transaction that took too long
    "40",  # deadlock, serialization
    "53",  # out of memory, connections, disk
    "55006",  # object in use
    "55P03",  # lock not available
    "57",  # cancelled, shut down, starting
    "58",  # I/O
    "XX",  # inside of the server
)
# In what states of a COMMIT its effect is unknown.
_UNKNOWN_IN_COMMIT = ("08", "57P", "58", "XX")
_HINTS = {
    "25001": "the statement cannot be in a transaction with others: use `transaction: statement`",
    "2D000": "the procedure commits by itself: use `transaction: own`",
    "25006": "the task or its data source is read-only",
}


def failed(error: psycopg.Error, statement: str, *, in_commit: bool) -> SqlFailed:
    """Return the error for people and for ``classify``.

    ``in_commit``: what the statement does is durable when it ends.
    """
    code = error.sqlstate
    if code is None:
        # The server has said nothing: it is gone, or the driver could not make sense of a value.
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return lost(in_commit=in_commit, text=_one_line(str(error)))
        return SqlFailed(_one_line(str(error)), ErrorVerdict.PERMANENT)
    text = _text(error, statement)
    if in_commit and code.startswith(_UNKNOWN_IN_COMMIT):
        return lost(in_commit=True, text=text, code=code)
    may_pass = code.startswith(_MAY_PASS) and code != _PROTOCOL_VIOLATION
    verdict = ErrorVerdict.RETRY if may_pass else ErrorVerdict.PERMANENT
    return SqlFailed(text, verdict, code)


def _text(error: psycopg.Error, statement: str) -> str:
    diagnosis = error.diag
    parts = [diagnosis.message_primary or _one_line(str(error))]
    if diagnosis.statement_position:
        parts.append(_place(statement, int(diagnosis.statement_position)))
    parts += [diagnosis.message_detail or "", diagnosis.message_hint or ""]
    if diagnosis.context:
        parts.append(diagnosis.context)
    parts.append(_HINTS.get(error.sqlstate or "", ""))
    return "; ".join(part for part in parts if part)


def _place(statement: str, position: int) -> str:
    before = statement[: position - 1]
    line = before.count("\n") + 1
    text = statement.splitlines()[line - 1].strip() if statement.splitlines()[line - 1 :] else ""
    return f"line {line}: {text[:200]}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
