"""What a data source is to a task, and the kinds that there are.

A project's data sources are stored by the API, with the password encrypted. A task names one in a
field of its params that is marked ``SourceName``; the master sends it to the worker with the
payload.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Option = str | int | float | bool


class SourceKind(StrEnum):
    """What is spoken at the other side."""

    SQLITE = "sqlite"
    DUCKDB = "duckdb"
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    MARIADB = "mariadb"
    SQLSERVER = "sqlserver"
    ORACLE = "oracle"
    CLICKHOUSE = "clickhouse"
    TRINO = "trino"
    HIVE = "hive"
    SPARK = "spark"  # Spark Connect
    SSH = "ssh"
    FLINK = "flink"


@dataclass(frozen=True)
class DataSource:
    """One data source as a task uses it: everything rendered, the password in the clear.

    ``host`` and ``port`` are of a server, ``database`` is its database or schema, or the file of
    SQLITE and DUCKDB. ``options`` are those of the allow-list of its kind, with the defaults of
    those that have one. ``version`` grows with each change of the stored data source.
    """

    name: str
    kind: SourceKind
    host: str = ""
    port: int | None = None
    database: str = ""
    user: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)
    password: str = field(default="", repr=False)
    version: int = 0
