"""The options of each kind: an allow-list with types.

There is no option that reads a file of the worker, loads code, runs a statement of its own or makes
less of TLS than it says. What verifies certificates is named, and so is what does not.
"""

import base64
import binascii
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

LONGEST_PEM = 64 * 1024  # characters
# Neither drivers nor connection strings find anything to interpret in such a name.
PLAIN_NAME = r"""^[^\x00-\x1f\x7f-\x9f;=(){}?&/\\'"@%,]{1,128}$"""

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s+([A-Za-z0-9+/=\s]+?)-----END \1-----\s*")


def _certificates(text: str) -> str:
    position = 0
    content = text.strip()
    while found := _PEM.match(content, position):
        if found[1] != "CERTIFICATE":
            raise ValueError(f"holds a {found[1]}, which does not belong here: certificates alone")
        try:
            base64.b64decode("".join(found[2].split()), validate=True)
        except binascii.Error:
            raise ValueError("holds a certificate that is not base64") from None
        position = found.end()
    if not content or position != len(content):
        raise ValueError("is no PEM text: -----BEGIN CERTIFICATE----- … -----END CERTIFICATE-----")
    return content + "\n"


Pem = Annotated[str, Field(max_length=LONGEST_PEM), AfterValidator(_certificates)]
Seconds = Annotated[int, Field(ge=1, le=300)]
PlainName = Annotated[str, Field(pattern=PLAIN_NAME)]

_TLS = (
    "prefer: TLS if the server has it. prefer and require verify no certificate, verify-ca does, "
    "verify-full compares the host's name too."
)
_TLS_OR_NOT = "verify-full: the certificate is verified, and names the host."


class Options(BaseModel):
    """Base of the options of a kind. Unknown ones are refused, types are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SqliteOptions(Options):
    """Options of a file of SQLite."""

    read_only: bool = Field(default=False, description="The file is opened for reading alone.")
    busy_timeout: int = Field(
        default=30, ge=0, le=3600, description="Seconds to wait for another writer's lock."
    )


class DuckDbOptions(Options):
    """Options of a file of DuckDB."""

    read_only: bool = Field(default=False, description="The file is opened for reading alone.")
    memory_limit: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,5}(MB|GB|MiB|GiB)$")] | None = Field(
        default=None, description="Such as 2GB. None: 80 % of the machine's memory."
    )
    threads: int | None = Field(
        default=None, ge=1, le=1024, description="None: one for each processor."
    )


class _ServerOptions(Options):
    """What most servers take."""

    ca_certificate: Pem | None = Field(
        default=None,
        description="Who signs the server's certificate, as PEM text. None: those that the "
        "worker's system trusts.",
    )
    connect_timeout: Seconds = Field(default=10, description="Seconds for signing in.")


class PostgresqlOptions(_ServerOptions):
    """Options of PostgreSQL."""

    sslmode: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = Field(
        default="prefer", description=_TLS
    )


class MysqlOptions(_ServerOptions):
    """Options of MySQL and MariaDB."""

    tls: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = Field(
        default="prefer", description=_TLS
    )
    charset: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")] = Field(
        default="utf8mb4", description="Character set of the connection."
    )


class SqlServerOptions(_ServerOptions):
    """Options of SQL Server."""

    tls: Literal["disable", "require", "verify-full"] = Field(
        default="verify-full", description=_TLS
    )


class OracleOptions(_ServerOptions):
    """Options of Oracle."""

    tls: Literal["disable", "verify-full"] = Field(default="disable", description=_TLS_OR_NOT)


class ClickHouseOptions(_ServerOptions):
    """Options of ClickHouse."""

    secure: bool = Field(
        default=False,
        description="HTTPS, with a certificate that is verified; the usual port is 8443 then.",
    )


class TrinoOptions(_ServerOptions):
    """Options of Trino."""

    catalog: PlainName | None = Field(default=None, description="Where unqualified names are.")
    schema_name: PlainName | None = Field(
        default=None, alias="schema", description="Where unqualified names are."
    )
    http_scheme: Literal["http", "https"] = Field(
        default="https",
        description="https verifies the certificate, and a password needs it. Of http the usual "
        "port is 8080.",
    )


class HiveOptions(_ServerOptions):
    """Options of Hive and Spark's Thrift server."""

    auth: Literal["nosasl", "plain", "ldap"] = Field(
        default="plain", description="How the server asks who is there."
    )
    tls: Literal["disable", "require", "verify-ca"] = Field(default="disable", description=_TLS)


class SparkOptions(Options):
    """Options of a Spark Connect server."""

    tls: Literal["disable", "verify-full"] = Field(
        default="disable",
        description=_TLS_OR_NOT + " A token is sent with TLS only, or to localhost.",
    )
    ca_certificate: Pem | None = Field(
        default=None,
        description="Who signs the server's certificate, as PEM text. None: those that the "
        "worker's system trusts.",
    )


class SshOptions(Options):
    """Options of a host."""

    host_key: (
        Annotated[
            str, Field(pattern=r"^(ssh|ecdsa)-[a-z0-9-]{3,30} [A-Za-z0-9+/=]{20,4096}( [ -~]*)?$")
        ]
        | None
    ) = Field(
        default=None,
        description="The host's public key, such as ssh-ed25519 AAAA…, by which it is known. "
        "Without it nobody signs in; the test shows the key.",
    )
    connect_timeout: Seconds = Field(default=10, description="Seconds for signing in.")


class FlinkOptions(_ServerOptions):
    """Options of a Flink session cluster, by its REST API."""

    tls: Literal["disable", "verify-full"] = Field(
        default="disable", description=_TLS_OR_NOT + " A password or token is sent with TLS only."
    )
    path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9_~.\-]{1,100}){1,10}$")] | None = Field(
        default=None, description="Where a proxy has the REST API, such as /flink. None: at /."
    )


# The values of TLS options with which a certificate is verified, so that a CA's has a meaning.
VERIFYING = frozenset({"verify-ca", "verify-full", "https", True})
TLS_OPTIONS = ("sslmode", "tls", "secure", "http_scheme")


def tls_of(options: Options) -> tuple[str, Any] | None:
    """Return the option that says how TLS is used, and its value; None if there is none."""
    for name in TLS_OPTIONS:
        if name in type(options).model_fields:
            return name, getattr(options, name)
    return None
