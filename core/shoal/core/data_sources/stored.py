"""Data sources as they are stored: with a password that nobody reads."""

from dataclasses import dataclass, field
from datetime import datetime

from shoal.core.data_sources.spec import DataSourceSpec


@dataclass(frozen=True)
class StoredPassword:
    """How a data source has its password: as ciphertext, by the name of a secret, or not at all."""

    ciphertext: str | None = field(default=None, repr=False)
    secret: str | None = None

    def __bool__(self) -> bool:
        return self.ciphertext is not None or self.secret is not None


@dataclass(frozen=True)
class StoredDataSource:
    """A data source of a project. ``version`` grows with each change."""

    project: str
    name: str
    spec: DataSourceSpec
    password: StoredPassword
    version: int
    created_at: datetime
    updated_at: datetime
