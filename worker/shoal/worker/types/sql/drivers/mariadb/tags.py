"""One connection of a task at a time: a lock of the server that is named by the task's tag.

``GET_LOCK`` is held by a connection until that ends, and the server says who holds it. It counts on
one server alone, also in a cluster of several that are written to. The connection carries tag and
attempt as ``program_name``, which administrators see if the performance schema is on.
"""

import time
from collections.abc import Callable
from typing import Any

import pymysql
from pymysql.connections import Connection

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.mariadb.errors import NO_SUCH_THREAD, code_of

_TIMEOUT_S = 60  # for ended connections to be gone: what they did is rolled back before
_POLL_S = 0.05
_IS_THERE = """
SELECT COALESCE(IS_USED_LOCK(%s) = %s, 0)
OR EXISTS (SELECT 1 FROM information_schema.processlist WHERE id = %s)
"""


def lock_name(tag: str) -> str:
    """Return the name of a tag's lock."""
    return f"shoal.{tag}"


def value(connection: Connection, statement: str, *values: Any) -> Any:
    """Return the single value that a statement returns."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        row = cursor.fetchone()
        return row[0] if row else None


def take(connection: Connection, tag: str, log: Callable[[str], None]) -> None:
    """Make ``connection`` the tag's only one; those of earlier attempts are gone on return.

    Raises WorkFailed if they do not go.
    """
    deadline = time.monotonic() + _TIMEOUT_S
    ended: set[int] = set()
    while not value(connection, "SELECT GET_LOCK(%s, 0)", lock_name(tag)):
        holder = value(connection, "SELECT IS_USED_LOCK(%s)", lock_name(tag))
        if holder is not None:
            if holder not in ended:
                ended.add(holder)
                log(f"shoal: ending what an earlier attempt has left at the server: id {holder}")
            _kill(connection, holder)
        _require_time(deadline, holder)
        time.sleep(_POLL_S)
    for number in ended:
        _wait_gone(connection, tag, number, deadline)


def terminate(connection: Connection, tag: str, number: int) -> None:
    """End the tag's connection at the server. Raises WorkFailed if it does not end."""
    _kill(connection, number)
    _wait_gone(connection, tag, number, time.monotonic() + _TIMEOUT_S)


def cancel(connection: Connection, number: int) -> None:
    """Cancel what another connection is running."""
    _kill(connection, number, "QUERY ")


def _wait_gone(connection: Connection, tag: str, number: int, deadline: float) -> None:
    # The list shows no connection that is inside of a routine with the rights of another user; who
    # has the lock all sessions see.
    while value(connection, _IS_THERE, lock_name(tag), number, number):
        _require_time(deadline, number)
        time.sleep(_POLL_S)


def _kill(connection: Connection, number: int, what: str = "") -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"KILL {what}{number:d}")
    except pymysql.MySQLError as error:
        if code_of(error) == NO_SUCH_THREAD:
            return
        text = (
            f"the user may not end what runs at the server (id {number}): it has the rights of "
            "another user there, such as the definer of a routine. Grant CONNECTION ADMIN, or have "
            f"an administrator run KILL {number}"
        )
        raise WorkFailed(f"{text} ({error})") from error


def _require_time(deadline: float, number: int | None) -> None:
    if time.monotonic() > deadline:
        raise WorkFailed(
            f"what an earlier attempt has left at the server (id {number}) did not end within "
            f"{_TIMEOUT_S} s; nothing is begun beside it"
        )
