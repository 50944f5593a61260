"""One module per database of SQL tasks. Only this room of the worker imports database drivers.

``connect``, ``settle`` and ``classify`` implement what ``session`` promises. They import the module
that the kind of a data source names (``databases``). Each module implements ``session.Session``
with one driver library, so a worker needs only the libraries of its own data sources. Start reading
in ``sqlite``, the shortest, then ``postgresql`` for a server. ``dbapi`` is a session over a library
that follows PEP 249. ``running_statement`` cancels and limits statements, ``rows`` streams results,
``failures`` says what an error means, ``syntax`` and ``files`` are shared helpers. Drivers of
plug-ins import them, too.

**One session per tag.** A statement can run at a server longer than the process that sent it.
Therefore a session holds a lock of the server that is named by the tag of its task, or marks its
statements with the tag. These are the states of a tag at the server:

- *free*: no connection holds the lock. ``connect`` takes it, which makes two sessions with one tag
  impossible.
- *held by an earlier attempt* (its process was killed, or its worker was lost): ``connect`` and
  ``settle`` find the connection that holds the lock, end it, and wait until the lock is free. The
  changes of the earlier attempt are rolled back by then. If the connection cannot be ended within
  the patience of the driver, WorkFailed says how an administrator can end it.
- *held by this attempt*: until ``close``, or until the server notices that the client is gone.

A task type that needs two sessions at once adds a suffix to the tag, and settles both.
"""

import importlib
from collections.abc import Callable
from typing import Protocol, cast

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.databases import database_kind
from shoal.worker.types.sql.drivers.failures import SqlFailed
from shoal.worker.types.sql.session import ErrorVerdict, Session


class _Driver(Protocol):
    def connect(
        self,
        source: DataSource,
        *,
        tag: str,
        attempt: int,
        log: Callable[[str], None],
        read_only: bool,
        statement_timeout_s: float | None,
    ) -> Session: ...

    def settle(self, source: DataSource, *, tag: str, attempt: int) -> None: ...


def connect(
    source: DataSource,
    *,
    tag: str,
    attempt: int,
    log: Callable[[str], None],
    read_only: bool,
    statement_timeout_s: float | None,
) -> Session:
    """Settle what earlier attempts of the tag have left, then connect; see ``session``."""
    return _driver(source).connect(
        source,
        tag=tag,
        attempt=attempt,
        log=log,
        read_only=read_only,
        statement_timeout_s=statement_timeout_s,
    )


def settle(source: DataSource, *, tag: str, attempt: int) -> None:
    """End every statement and connection at the server that carries the tag; see ``session``."""
    _driver(source).settle(source, tag=tag, attempt=attempt)


def classify(error: Exception) -> ErrorVerdict:
    """Return what an error that a session has raised means for the attempt."""
    match error:
        case SqlFailed():
            return error.verdict
        case WorkFailed():
            return ErrorVerdict.PERMANENT if error.permanent else ErrorVerdict.RETRY
        case OSError() | MemoryError():
            return ErrorVerdict.RETRY
        case _:
            return ErrorVerdict.PERMANENT


def _driver(source: DataSource) -> _Driver:
    kind = database_kind(source)
    try:
        return cast(_Driver, importlib.import_module(kind.driver))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != kind.library:
            raise
        text = (
            f"data source {source.name!r}: this worker has no driver for {source.kind}; "
            f"install it there: {kind.install}"
        )
        raise WorkFailed(text) from error
