"""The SQLite file: folder, permissions, write-ahead log, and whether it is still where it was.

A lock file beside the database holds the word ``used`` once the database was there: a database
that is missing later was moved or lost, and an empty one would take its place unnoticed.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from shoal.sql.errors import (
    DatabaseDamaged,
    DatabaseMissing,
    DatabaseMoved,
    DatabaseUnavailable,
)

BUSY_TIMEOUT_MS = 30_000
_POLL_S = 0.01
_USED = b"used\n"
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def prepare_file(database: str) -> None:
    """Create the file if it is missing (mode 0600) and switch it to WAL. Blocking.

    The switch cannot wait for other connections: SQLite answers "busy" at once. So the processes
    of a machine do it one after the other, under a lock file beside the database. Raises
    DatabaseUnavailable, DatabaseDamaged, and DatabaseMissing if the file was there before.
    """
    path = Path(database)
    marker = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(marker) as lock:
            is_used = bool(os.pread(lock, 1, 0))
            if is_used and not path.exists():
                raise DatabaseMissing(str(path), str(marker))
            # Not one that is there: whatever this process closes of a file takes all its locks on
            # it along (POSIX), and another process may remove the log that its connections use.
            if not path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            _switch_to_wal(path)
            if not is_used:
                os.pwrite(lock, _USED, 0)
    except OSError as error:
        raise DatabaseUnavailable(f"cannot use {path} as database: {error.strerror}") from error
    except sqlite3.Error as error:
        damaged = error.sqlite_errorcode & 0xFF in _DAMAGED
        kind = DatabaseDamaged if damaged else DatabaseUnavailable
        raise kind(f"cannot use {path} as database: {error}") from error


def _switch_to_wal(path: Path) -> None:
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000)) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode != "wal":
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise DatabaseUnavailable(
            f"{path} cannot have a write-ahead log (journal mode stays {mode}): its file system "
            "has no shared memory; put the database on a local disk"
        )


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold an exclusive lock on ``path``, and give its descriptor; released if the process dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise DatabaseUnavailable(
                        f"another process holds {path} for more than {BUSY_TIMEOUT_MS / 1000:g} s"
                    ) from None
                time.sleep(_POLL_S)  # flock has no deadline of its own
        yield descriptor
    finally:
        os.close(descriptor)


class FileIdentity:
    """The file that a process has opened as its database. Its path may lead elsewhere later.

    SQLite works on in a file that was moved or deleted; what is written there is lost.
    """

    def __init__(self, database: str) -> None:
        self._path = database
        self._opened: tuple[int, int] | None = None  # device and number of the first one

    def require(self) -> None:
        """Raise DatabaseMoved unless the path leads to the file that was opened first."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            raise DatabaseMoved(self._path) from None
        except OSError as error:
            raise DatabaseUnavailable(
                f"cannot use {self._path} as database: {error.strerror}"
            ) from error
        identity = (found.st_dev, found.st_ino)
        if self._opened is None:
            self._opened = identity
        elif self._opened != identity:
            raise DatabaseMoved(self._path)
