"""All kinds, by name."""

from collections.abc import Mapping

from tests.kills.kinds.databases import (
    Duckdb,
    Mariadb,
    MariadbProcedure,
    Postgresql,
    PostgresqlProcedure,
    Quality,
    Sqlite,
)
from tests.kills.kinds.http import Http
from tests.kills.kinds.kind import Kind
from tests.kills.kinds.mapreduce import MapReduce
from tests.kills.kinds.programs import Python, Shell, Ssh
from tests.kills.kinds.spark import Spark, SparkConnect, SparkStandalone

KINDS: Mapping[str, type[Kind]] = {
    kind.name: kind
    for kind in (
        Shell,
        Python,
        Postgresql,
        Mariadb,
        Sqlite,
        Duckdb,
        PostgresqlProcedure,
        MariadbProcedure,
        Quality,
        Http,
        Ssh,
        Spark,
        SparkStandalone,
        SparkConnect,
        MapReduce,
    )
}
