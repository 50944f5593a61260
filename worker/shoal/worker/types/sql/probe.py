"""Whether a data source can be used from here: sign in, and ask which server it is."""

from typing import Annotated

from shoal.core.data_sources import SourceKind
from shoal.core.task_types import SourceName, TaskKind, TaskParams
from shoal.worker.types.child.work import Work
from shoal.worker.types.sql import drivers

STATEMENT_TIMEOUT_S = 10.0

_VERSION = {
    SourceKind.SQLITE: "select 'SQLite ' || sqlite_version()",
    SourceKind.DUCKDB: "select 'DuckDB ' || version()",
    SourceKind.POSTGRESQL: "select version()",
    SourceKind.MYSQL: "select concat('MySQL ', version())",
    SourceKind.MARIADB: "select concat('MariaDB ', version())",
    SourceKind.ORACLE: "select 'Oracle' from dual",
    SourceKind.TRINO: "select 'Trino'",
    SourceKind.CLICKHOUSE: "select concat('ClickHouse ', version())",
    SourceKind.HIVE: "select concat('HiveServer2, version ', version())",
    SourceKind.SQLSERVER: "select @@version",
}


class ProbeParams(TaskParams):
    """What is to be tried."""

    data_source: Annotated[str, SourceName()]


class Probe(TaskKind[ProbeParams]):
    """No task type of users: a worker runs it when a person wants to know."""

    Params = ProbeParams


def probe(work: Work[ProbeParams]) -> None:
    """Write what answers into the log. Raises WorkFailed with advice."""
    source = work.data_source(work.params.data_source)
    session = drivers.connect(
        source,
        tag=work.tag,
        attempt=1,
        log=lambda _: None,
        read_only=True,
        statement_timeout_s=STATEMENT_TIMEOUT_S,
    )
    work.on_cancel(session.terminate)
    try:
        result = session.execute(_VERSION.get(source.kind, "select 1"))
        rows = list(result)
        result.close()
    finally:
        session.close()
    work.log(str(rows[0][0]).split(", compiled", 1)[0].splitlines()[0])
