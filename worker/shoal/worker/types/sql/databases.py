"""Kinds of data sources that SQL tasks can use, as the API and the workers know them.

A kind names the module of its driver (``sql.session`` says what that implements), the library that
the driver needs and how to install it, and how its SQL is written. A plug-in adds a database with
one more class and one more driver.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from shoal.core.data_sources import DataSource, SourceKind
from shoal.core.data_sources.kind import (
    TLS_MODES,
    TLS_OR_NOT,
    CertifiedOptions,
    FieldNeed,
    FileKind,
    PlainName,
    ServerOptions,
    SourceOptions,
)
from shoal.core.errors import ShoalError
from shoal.runtime.source_kinds import load_source_kind
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.statements.dialects import Blocks, Dialect, Nested


class DatabaseKind(SourceKind):
    """Base of the kinds with a driver for SQL tasks."""

    probe = "shoal.worker.types.sql.probe:probe"

    driver: ClassVar[str]  # a module: see ``sql.session``
    library: ClassVar[str]  # which the driver imports
    install: ClassVar[str]  # the command that installs the library
    dialect: ClassVar[Dialect]
    #: A statement whose only value names the server and its version.
    version: ClassVar[str]
    #: An expression that is true if a column (first {}) matches a regular expression (second {}).
    matches: ClassVar[str | None] = None


def database_kind(source: DataSource) -> type[DatabaseKind]:
    """Return the kind of a data source. Raises WorkFailed if SQL tasks cannot use it."""
    try:
        kind = load_source_kind(source.kind)
    except ShoalError as error:
        raise WorkFailed(f"data source {source.name!r}, on this worker: {error}") from error
    if not issubclass(kind, DatabaseKind):
        text = f"data source {source.name!r}: SQL tasks cannot use the kind {source.kind!r}"
        raise WorkFailed(text, permanent=True)
    return kind


class _FileOptions(SourceOptions):
    read_only: bool = Field(default=False, description="Open the file for reading only.")


class SqliteOptions(_FileOptions):
    """Options of a SQLite file."""

    busy_timeout: int = Field(
        default=30, ge=0, le=3600, description="Seconds to wait for the lock of another writer."
    )


class Sqlite(FileKind, DatabaseKind):
    """A SQLite file on the worker."""

    title = "SQLite"
    Options = SqliteOptions
    driver = "shoal.worker.types.sql.drivers.sqlite"
    library = "sqlite3"
    install = "Python with its module sqlite3"
    dialect = Dialect(Blocks.TRIGGER, identifiers='"`', brackets=True)
    version = "select 'SQLite ' || sqlite_version()"
    matches = "{} REGEXP {}"


class DuckDbOptions(_FileOptions):
    """Options of a DuckDB file."""

    memory_limit: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,5}(MB|GB|MiB|GiB)$")] | None = Field(
        default=None, description="For example 2GB. By default 80 % of the machine's memory."
    )
    threads: int | None = Field(
        default=None, ge=1, le=1024, description="By default one per processor."
    )


class DuckDb(FileKind, DatabaseKind):
    """A DuckDB file on the worker."""

    title = "DuckDB"
    Options = DuckDbOptions
    driver = "shoal.worker.types.sql.drivers.duckdb"
    library = "duckdb"
    install = "pip install 'shoal[duckdb]'"
    dialect = Dialect(escape_strings=True, dollar_quotes=True, nested=Nested.UNSURE)
    version = "select 'DuckDB ' || version()"
    matches = "regexp_matches({}, {})"


class PostgresqlOptions(ServerOptions):
    """Options of PostgreSQL."""

    tls_option = "sslmode"

    sslmode: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = Field(
        default="prefer", description=TLS_MODES
    )


class Postgresql(DatabaseKind):
    """A PostgreSQL database."""

    title = "PostgreSQL"
    Options = PostgresqlOptions
    port = 5432
    database = FieldNeed.REQUIRED
    driver = "shoal.worker.types.sql.drivers.postgresql"
    library = "psycopg"
    install = "pip install 'shoal[postgresql]'"
    dialect = Dialect(Blocks.ATOMIC, escape_strings=True, dollar_quotes=True, nested=Nested.YES)
    version = "select version()"
    matches = "{} ~ {}"


class MysqlOptions(ServerOptions):
    """Options of MySQL and MariaDB."""

    tls_option = "tls"

    tls: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = Field(
        default="prefer", description=TLS_MODES
    )
    charset: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")] = Field(
        default="utf8mb4", description="Character set of the connection."
    )


class Mariadb(DatabaseKind):
    """A MariaDB server."""

    title = "MariaDB"
    Options = MysqlOptions
    port = 3306
    driver = "shoal.worker.types.sql.drivers.mariadb"
    library = "pymysql"
    install = "pip install 'shoal[mariadb]'"
    dialect = Dialect(
        Blocks.ROUTINE,
        strings="'\"",
        identifiers="`",
        backslash="'\"",
        hash_comments=True,
        dashes_need_space=True,
        executable_comments=True,
    )
    version = "select concat('MariaDB ', version())"
    matches = "{} REGEXP {}"


class Mysql(Mariadb):
    """A MySQL server."""

    title = "MySQL"
    version = "select concat('MySQL ', version())"


class TrinoOptions(ServerOptions):
    """Options of Trino."""

    tls_option = "http_scheme"

    catalog: PlainName | None = Field(default=None, description="Catalog of unqualified names.")
    schema_name: PlainName | None = Field(
        default=None, alias="schema", description="Schema of unqualified names."
    )
    http_scheme: Literal["http", "https"] = Field(
        default="https",
        description="https verifies the certificate. A password is sent by https only. The default "
        "port of http is 8080.",
    )


class Trino(DatabaseKind):
    """A Trino coordinator."""

    title = "Trino"
    Options = TrinoOptions
    port = 443
    database = FieldNeed.NONE
    instead: ClassVar = {"database": "use the options catalog and schema"}
    password_needs = ("http_scheme", "https")
    driver = "shoal.worker.types.sql.drivers.trino"
    library = "trino"
    install = "pip install 'shoal[trino]'"
    dialect = Dialect(Blocks.ROUTINE, nested=Nested.UNSURE)
    version = "select concat('Trino ', version())"
    matches = "regexp_like({}, {})"


class HiveOptions(ServerOptions):
    """Options of Hive and of Spark's Thrift server."""

    tls_option = "tls"

    auth: Literal["nosasl", "plain", "ldap"] = Field(
        default="plain", description="How the server authenticates users."
    )
    tls: Literal["disable", "require", "verify-ca"] = Field(
        default="disable", description=TLS_MODES
    )


class Hive(DatabaseKind):
    """HiveServer2, or the Thrift server of Spark."""

    title = "Hive, Spark Thrift"
    Options = HiveOptions
    port = 10000
    user = FieldNeed.OPTIONAL
    driver = "shoal.worker.types.sql.drivers.hive"
    library = "impala"
    install = "pip install 'shoal[hive]'"
    dialect = Dialect(
        strings="'\"", identifiers="`", backslash="'\"", raw_strings=True, nested=Nested.UNSURE
    )
    version = "select concat('HiveServer2, version ', version())"


class SparkOptions(CertifiedOptions):
    """Options of a Spark Connect server."""

    tls_option = "tls"

    tls: Literal["disable", "verify-full"] = Field(
        default="disable",
        description=f"{TLS_OR_NOT} A token is sent with TLS only, or to localhost.",
    )


class SparkServer(DatabaseKind):
    """A Spark Connect server; without a host the one that the worker keeps for the project."""

    title = "Spark Connect"
    Options = SparkOptions
    port = 15002
    host = FieldNeed.OPTIONAL
    database = FieldNeed.NONE
    user = FieldNeed.OPTIONAL
    credential = "token"
    driver = "shoal.worker.types.sql.drivers.spark"
    library = "pyspark"
    install = "pip install 'shoal[connect]'"
    dialect = Hive.dialect
    version = "select version()"
    matches = "{} RLIKE {}"
