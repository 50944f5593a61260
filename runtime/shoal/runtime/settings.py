"""Settings that all processes of a cluster share, and how settings are read.

Precedence: environment variables (``SHOAL_…``), then the section of the settings file
(``shoal.toml`` in the data folder, or the file named by ``SHOAL_CONFIG``), then the defaults that
``conf/shoal.toml`` lists. Each role has its own class and section beside this one.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from shoal.core.errors import ShoalError

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
# Seconds between two runs of periodic work. Infinity, and what is longer than three years, is
# refused: the moment of the next run could not be stored as a date.
Interval = Annotated[float, Field(gt=0, le=1e8, allow_inf_nan=False)]
# A file that need not be named: an empty text is none, ~ is the home of the user.
OptionalFile = Annotated[
    Path | None,
    BeforeValidator(lambda value: None if value == "" else value),
    AfterValidator(lambda value: value and value.expanduser()),
]
StoreName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]


class InvalidSettings(ShoalError):
    """A setting is unknown or has a bad value; the text names it and where it was read."""


class ClusterSettings(BaseSettings):
    """Where the cluster's shared services are."""

    model_config = SettingsConfigDict(env_prefix="SHOAL_", frozen=True, extra="forbid")

    data: Path = Path("~/.shoal")  # folder of this machine's files; expanded by load_settings
    zookeeper: str = "127.0.0.1:2181"  # host:port,host:port/chroot
    # scheme:secret, as "digest:user:password" or "sasl:user:password"; empty: none, and every
    # client may do everything
    zookeeper_credential: str = Field(default="", pattern=r"^$|^\w+:.+$", repr=False)
    # Encrypt the connections to ZooKeeper and verify its servers' names: the ports in the address
    # are their secureClientPort.
    zookeeper_tls: bool = False
    # PEM file of the authorities; empty: those of the system
    zookeeper_tls_ca: OptionalFile = None
    zookeeper_tls_cert: OptionalFile = None  # PEM files of what this process shows of itself
    zookeeper_tls_key: OptionalFile = None
    # Largest request that the ZooKeeper servers accept (their jute.maxbuffer), in bytes
    zookeeper_max_request_bytes: int = Field(default=1_048_575, ge=65_536)
    database_url: str = ""  # empty: SQLite in the data folder
    # PostgreSQL: a connection that is silent for this time is given up.
    database_silence_s: float = Field(default=10.0, ge=1)
    partitions: int = Field(default=128, ge=1, le=1000)  # fixed at the cluster's first start
    session_timeout_s: float = Field(default=10.0, ge=1)  # of the ZooKeeper sessions
    # Bind database and ZooKeeper's tree to each other anew, although they name others.
    rebind: bool = False
    tls_ca: OptionalFile = None  # the three PEM files; default: tls/ in the data folder
    tls_cert: OptionalFile = None
    tls_key: OptionalFile = None
    secrets_key: OptionalFile = None  # file of the key that secrets are encrypted with at rest
    # Where the contents of resources are: a folder that all machines share, s3://bucket/folder or
    # webhdfs://user@host:port/folder; empty: below the data folder.
    resources_url: str = Field(default="", pattern=r"^$|^/|^[a-z][a-z0-9+.-]*://\S+$")
    # A resource may have so many MiB, and all versions of all resources of a project so many.
    resource_mb: int = Field(default=1024, ge=1)
    resource_project_mb: int = Field(default=10_240, ge=1)
    # Where finished logs are copied to, so that they outlive their workers: as resources_url;
    # empty: they stay with their workers alone.
    logs_url: str = Field(default="", pattern=r"^$|^/|^[a-z][a-z0-9+.-]*://\S+$")
    # Where the history is exported to, for insight: as resources_url; empty: it is not.
    history_url: str = Field(default="", pattern=r"^$|^/|^[a-z][a-z0-9+.-]*://\S+$")
    # Where secrets are that are kept elsewhere: a table for each, by a name of ours. Masters and
    # APIs read what is in it (``shoal.runtime.secret_stores``); workers need none of it.
    secret_stores: Mapping[StoreName, Mapping[str, Any]] = {}
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"  # one line per event either way

    @model_validator(mode="after")
    def _files_with_tls(self) -> Self:
        if (self.zookeeper_tls_cert is None) != (self.zookeeper_tls_key is None):
            raise ValueError("zookeeper_tls_cert and zookeeper_tls_key go together")
        if not self.zookeeper_tls and (self.zookeeper_tls_ca or self.zookeeper_tls_cert):
            raise ValueError("zookeeper_tls_ca and zookeeper_tls_cert need zookeeper_tls = true")
        return self

    @property
    def database(self) -> str:
        """The database URL with its default filled in."""
        return self.database_url or f"sqlite:///{self.data / 'shoal.db'}"

    @property
    def resources(self) -> str:
        """The storage of resources with its default filled in."""
        return self.resources_url or str(self.data / "resources")

    @property
    def secrets_key_file(self) -> Path:
        """The file with the key of the secrets."""
        return self.secrets_key or self.data / "secrets.key"

    @property
    def token_file(self) -> Path:
        """The file with the API's bearer token."""
        return self.data / "token"


S = TypeVar("S", bound=BaseSettings)


def load_settings(cls: type[S], section: str, data: Path) -> S:
    """Read the settings of ``cls`` for the data folder ``data``. Raises InvalidSettings."""
    file = Path(os.environ.get("SHOAL_CONFIG") or data / "shoal.toml")
    from_file = _read_section(file, section)
    prefix = cls.model_config.get("env_prefix", "")
    values = {
        key: value for key, value in from_file.items() if f"{prefix}{key}".upper() not in os.environ
    }
    if cls is ClusterSettings:
        values["data"] = data.expanduser().absolute()
    try:
        return cls(**values)
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise InvalidSettings(
            f"settings of section [{section}] (from {file} or {prefix}… variables) are wrong:\n"
            + "\n".join(lines)
        ) from error


def _read_section(file: Path, section: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(file.read_text())
    except FileNotFoundError:
        if "SHOAL_CONFIG" in os.environ:
            raise InvalidSettings(f"SHOAL_CONFIG names {file}, which does not exist") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSettings(f"cannot read the settings file {file}: {error}") from error
    found = content.get(section, {})
    if not isinstance(found, dict):
        raise InvalidSettings(f"{file}: [{section}] must be a table")
    return found


def require_encryption(url: str) -> None:
    """Return if what is sent to a URL is encrypted, or stays on this machine. Raises ValueError."""
    parts = urlsplit(url)
    if not parts.hostname or parts.username or parts.password:
        raise ValueError(f"{url!r} is not an https:// address")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise ValueError(f"{url!r} is not https://, so others could read and change what it says")
