"""One connection of a task at a time: a lock of the server that is named by the task's tag.

An advisory lock is held by a connection until that ends, whatever became of the process at its
other end. The connection also carries tag and attempt as ``application_name``, where
administrators see them, and where a statement that gives up all locks (``DISCARD ALL``) leaves
them.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.postgresql.connector import Connection

_TIMEOUT_S = 60  # for ended connections to be gone: what they did is rolled back before
_POLL_S = 0.05
_OTHERS = """
SELECT pid, application_name FROM pg_stat_activity
WHERE pid <> pg_backend_pid()
AND (split_part(application_name, '/', 1) = %(tag)s OR pid IN (
    SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND classid::bigint = %(high)s AND objid::bigint = %(low)s
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())))
"""
# A number may be another connection's by now; the time of its start cannot.
_GONE = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s AND backend_start = %s)"
_TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s
"""


@dataclass(frozen=True)
class Backend:
    """A connection as the server knows it."""

    pid: int
    started: object  # a timestamp


def name_of(tag: str, attempt: int) -> str:
    """Return what the connection of an attempt is called at the server."""
    return f"{tag}/{attempt}"


def this_backend(connection: Connection) -> Backend:
    """Return this connection as the server knows it."""
    statement = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
    found = connection.execute(statement).fetchone()
    assert found is not None
    return Backend(*found)


def take(connection: Connection, tag: str, attempt: int, log: Callable[[str], None]) -> None:
    """Make ``connection`` the tag's only one; those of earlier attempts are gone on return.

    Raises WorkFailed if they do not go, or if a later attempt is there.
    """
    key = _key(tag)
    deadline = time.monotonic() + _TIMEOUT_S
    told: set[int] = set()
    while True:
        (is_ours,) = connection.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchone() or [0]
        others = _others(connection, tag, key)
        if is_ours and not others:
            return
        for pid, name in others.items():
            _require_earlier(name, tag, attempt)
            if pid not in told:
                told.add(pid)
                log(f"shoal: ending what an earlier attempt has left at the server: pid {pid}")
            _end(connection, pid)
        if time.monotonic() > deadline:
            raise WorkFailed(_stuck(others))
        time.sleep(_POLL_S)


def terminate(connection: Connection, backend: Backend) -> None:
    """End another connection at the server. Raises WorkFailed if it does not end."""
    deadline = time.monotonic() + _TIMEOUT_S
    which = [backend.pid, backend.started]
    while not (connection.execute(_GONE, which).fetchone() or [False])[0]:
        connection.execute(_TERMINATE, which)
        if time.monotonic() > deadline:
            raise WorkFailed(_stuck({backend.pid: ""}))
        time.sleep(_POLL_S)


def _others(connection: Connection, tag: str, key: int) -> dict[int, str]:
    unsigned = key % 2**64
    parameters = {"tag": tag, "high": unsigned >> 32, "low": unsigned % 2**32}
    return {pid: name or "" for pid, name in connection.execute(_OTHERS, parameters)}


def _require_earlier(name: str, tag: str, attempt: int) -> None:
    number = name.removeprefix(f"{tag}/")
    if number.isdecimal() and int(number) > attempt:
        raise WorkFailed(f"attempt {number} of this task is at the database already")


def _end(connection: Connection, pid: int) -> None:
    try:
        connection.execute("SELECT pg_terminate_backend(%s)", [pid])
    except psycopg.errors.InsufficientPrivilege as error:
        text = f"the user may not end what an earlier attempt has left at the server (pid {pid})"
        raise WorkFailed(f"{text}: an administrator can, with pg_terminate_backend") from error


def _stuck(others: dict[int, str]) -> str:
    pids = ", ".join(map(str, others)) or "of another user"
    return (
        f"what an earlier attempt has left at the server (pid {pids}) did not end within "
        f"{_TIMEOUT_S} s; nothing is begun beside it"
    )


def _key(tag: str) -> int:
    digest = hashlib.sha256(f"shoal {tag}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
