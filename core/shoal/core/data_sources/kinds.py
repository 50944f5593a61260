"""What each kind of data source takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from shoal.core.data_sources.model import Option, SourceKind
from shoal.core.data_sources.options import (
    ClickHouseOptions,
    DuckDbOptions,
    FlinkOptions,
    HiveOptions,
    MysqlOptions,
    Options,
    OracleOptions,
    PostgresqlOptions,
    SparkOptions,
    SqliteOptions,
    SqlServerOptions,
    SshOptions,
    TrinoOptions,
)


class Need(StrEnum):
    """Whether a kind has a field."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    NONE = "none"


@dataclass(frozen=True)
class KindInfo:
    """What a kind takes. ``port``: the usual one; None for a file."""

    title: str
    options: type[Options]
    port: int | None = None
    host: Need = Need.REQUIRED
    database: Need = Need.OPTIONAL
    database_is: str = "name of a database"
    user: Need = Need.REQUIRED
    password: Need = Need.OPTIONAL
    credential: str = "password"  # what the password is called there

    @property
    def is_file(self) -> bool:
        """Say whether the database is a file of the worker."""
        return self.host is Need.NONE


def _file(title: str, options: type[Options]) -> KindInfo:
    return KindInfo(
        title,
        options,
        host=Need.NONE,
        database=Need.REQUIRED,
        database_is="absolute path of a file on the worker, or :memory:",
        user=Need.NONE,
        password=Need.NONE,
    )


KINDS: Mapping[SourceKind, KindInfo] = {
    SourceKind.SQLITE: _file("SQLite", SqliteOptions),
    SourceKind.DUCKDB: _file("DuckDB", DuckDbOptions),
    SourceKind.POSTGRESQL: KindInfo("PostgreSQL", PostgresqlOptions, 5432, database=Need.REQUIRED),
    SourceKind.MYSQL: KindInfo("MySQL", MysqlOptions, 3306),
    SourceKind.MARIADB: KindInfo("MariaDB", MysqlOptions, 3306),
    SourceKind.SQLSERVER: KindInfo("SQL Server", SqlServerOptions, 1433),
    SourceKind.ORACLE: KindInfo(
        "Oracle", OracleOptions, 1521, database=Need.REQUIRED, database_is="name of a service"
    ),
    SourceKind.CLICKHOUSE: KindInfo("ClickHouse", ClickHouseOptions, 8123, user=Need.OPTIONAL),
    SourceKind.TRINO: KindInfo("Trino", TrinoOptions, 443, database=Need.NONE),
    SourceKind.HIVE: KindInfo("Hive, Spark Thrift", HiveOptions, 10000, user=Need.OPTIONAL),
    SourceKind.SPARK: KindInfo(
        "Spark Connect",
        SparkOptions,
        15002,
        host=Need.OPTIONAL,
        database=Need.NONE,
        user=Need.OPTIONAL,
        credential="token",
    ),
    SourceKind.SSH: KindInfo(
        "SSH",
        SshOptions,
        22,
        database=Need.NONE,
        credential="password or private key",
    ),
    SourceKind.FLINK: KindInfo(
        "Flink",
        FlinkOptions,
        8081,
        database=Need.NONE,
        user=Need.OPTIONAL,
        credential="password, or token without a user",
    ),
}


def option_fields(kind: SourceKind) -> Mapping[str, FieldInfo]:
    """Return the options of a kind by the names that people write."""
    fields = KINDS[kind].options.model_fields
    return {field.alias or name: field for name, field in fields.items()}


def options_schema(kind: SourceKind) -> dict[str, Any]:
    """Return the JSON Schema of a kind's options."""
    return KINDS[kind].options.model_json_schema(by_alias=True)


def option_from_text(kind: SourceKind, name: str, text: str) -> Option:
    """Return the value that a person has written for an option, such as ``true`` or ``10``.

    What is not a value of the option is returned as it is: it is refused where it is checked.
    """
    field = option_fields(kind).get(name)
    if field is None or field.annotation is None:
        return text
    try:
        value: Option | None = TypeAdapter(field.annotation).validate_strings(text)
    except ValidationError:
        return text
    return text if value is None else value
