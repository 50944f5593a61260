"""One module for each database that SQL tasks can use; the only room of the worker with drivers.

``connect``, ``settle`` and ``classify`` are what ``session`` promises; they find the module of a
data source's kind. Each module implements ``session.Session`` over one driver, which it imports
itself, so a worker needs the drivers of its own data sources alone. Start reading in ``sqlite``,
the shortest, then ``postgresql`` for a server: ``statements`` keeps what runs apart from what is
to end, ``rows`` streams results, ``failures`` says what an error means.

Statements run at a server longer than the process that sent them. So a session holds a lock of the
server that is named by the tag of its task: who comes later finds the connection that holds it,
ends it, and begins when the lock is its own. That makes two sessions with one tag impossible; a
type that needs two at once adds something to the tag, and settles both.
"""

import importlib
from collections.abc import Callable
from typing import Protocol, cast

from shoal.core.data_sources import DataSource, SourceKind
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.failures import StatementFailed
from shoal.worker.types.sql.session import Session, Verdict

_ROOM = "shoal.worker.types.sql.drivers"
# The module of a kind, the library that it needs, and the extra that installs it.
_DRIVERS = {
    SourceKind.SQLITE: ("sqlite", "sqlite3", ""),
    SourceKind.DUCKDB: ("duckdb", "duckdb", "duckdb"),
    SourceKind.POSTGRESQL: ("postgresql", "psycopg", "postgresql"),
    SourceKind.MARIADB: ("mariadb", "pymysql", "mariadb"),
    SourceKind.MYSQL: ("mariadb", "pymysql", "mariadb"),
    SourceKind.ORACLE: ("remote.oracle", "oracledb", "oracle"),
    SourceKind.SQLSERVER: ("remote.sqlserver", "pytds", "sqlserver"),
    SourceKind.TRINO: ("remote.trino", "trino", "trino"),
    SourceKind.CLICKHOUSE: ("remote.clickhouse", "clickhouse_connect", "clickhouse"),
    SourceKind.HIVE: ("remote.hive", "impala", "hive"),
    SourceKind.SPARK: ("spark", "pyspark", "connect"),
}


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


def classify(error: Exception) -> Verdict:
    """Return what an error that a session has raised means for the attempt."""
    match error:
        case StatementFailed():
            return error.verdict
        case WorkFailed():
            return Verdict.PERMANENT if error.permanent else Verdict.RETRY
        case OSError() | MemoryError():
            return Verdict.RETRY
        case _:
            return Verdict.PERMANENT


def _driver(source: DataSource) -> _Driver:
    if source.kind not in _DRIVERS:
        text = f"data source {source.name!r}: SQL tasks cannot use the kind {source.kind.value!r}"
        raise WorkFailed(text, permanent=True)
    module, library, extra = _DRIVERS[source.kind]
    try:
        return cast(_Driver, importlib.import_module(f"{_ROOM}.{module}"))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != library.partition(".")[0]:
            raise
        text = (
            f"data source {source.name!r}: this worker has no driver for {source.kind.value}; "
            f"install it there: pip install 'shoal[{extra}]'"
        )
        raise WorkFailed(text) from error
