"""The kinds of data sources that this package adds to Shoal."""

from typing import Literal

from pydantic import Field

from shoal.core.data_sources.kind import TLS_MODES, TLS_OR_NOT, FieldNeed, ServerOptions
from shoal.worker.types.sql.databases import DatabaseKind
from shoal.worker.types.sql.statements.dialects import Blocks, Dialect, Nested

INSTALL = "pip install shoal-experimental-databases"


class OracleOptions(ServerOptions):
    """Options of Oracle."""

    tls_option = "tls"

    tls: Literal["disable", "verify-full"] = Field(default="disable", description=TLS_OR_NOT)


class Oracle(DatabaseKind):
    """An Oracle database."""

    title = "Oracle (experimental)"
    Options = OracleOptions
    port = 1521
    database = FieldNeed.REQUIRED
    database_is = "name of a service"
    driver = "shoal_experimental_databases.oracle"
    library = "oracledb"
    install = INSTALL
    dialect = Dialect(Blocks.PLSQL, quoted_by_choice=True)
    version = "select 'Oracle' from dual"
    matches = "REGEXP_LIKE({}, {})"


class SqlServerOptions(ServerOptions):
    """Options of SQL Server."""

    tls_option = "tls"

    tls: Literal["disable", "require", "verify-full"] = Field(
        default="verify-full", description=TLS_MODES
    )


class SqlServer(DatabaseKind):
    """A SQL Server."""

    title = "SQL Server (experimental)"
    Options = SqlServerOptions
    port = 1433
    driver = "shoal_experimental_databases.sqlserver"
    library = "pytds"
    install = INSTALL
    dialect = Dialect(Blocks.BATCH, brackets=True, bracket_escape=True, nested=Nested.YES)
    version = "select @@version"


class ClickHouseOptions(ServerOptions):
    """Options of ClickHouse."""

    tls_option = "secure"

    secure: bool = Field(
        default=False,
        description="HTTPS with a verified certificate. Its default port is 8443.",
    )


class ClickHouse(DatabaseKind):
    """A ClickHouse server, by its HTTP interface."""

    title = "ClickHouse (experimental)"
    Options = ClickHouseOptions
    port = 8123
    user = FieldNeed.OPTIONAL
    driver = "shoal_experimental_databases.clickhouse"
    library = "clickhouse_connect"
    install = INSTALL
    dialect = Dialect(
        identifiers='"`',
        backslash="'\"`",
        dollar_quotes=True,
        hash_comments=True,
        nested=Nested.UNSURE,
    )
    version = "select concat('ClickHouse ', version())"
