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
from tests.kills.kinds.programs import Python, Shell, Ssh

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
    )
}
