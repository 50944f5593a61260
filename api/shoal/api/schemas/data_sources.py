"""Data sources of projects."""

from datetime import datetime
from typing import Any

from pydantic import Field, SecretStr

from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.data_sources.kind import FieldNeed
from shoal.core.data_sources.spec import DataSourceSpec


class DataSourceOut(Answer):
    """A data source as it is defined. Its password is never returned."""

    project: str
    name: str
    kind: str
    host: str
    port: int | None = Field(description="Null: the default port of the kind.")
    database: str
    user: str
    options: dict[str, str | int | float | bool]
    shared_with: list[str] = Field(description="Other projects whose tasks may use it.")
    has_password: bool
    password_secret: str | None = Field(
        description="The secret of the project that is the password; null if it is none."
    )
    version: int = Field(description="Grows with each change.")
    created_at: datetime
    updated_at: datetime


class DataSourceIn(DataSourceSpec):
    """What can be set."""

    password: SecretStr | None = Field(
        default=None,
        description="Written, never read. Left out: the one that is there stays, if the server "
        "does. Null: there is none. `${secret.NAME}` is a secret of the project.",
    )

    @property
    def spec(self) -> DataSourceSpec:
        """Everything but the password."""
        return DataSourceSpec(**{name: getattr(self, name) for name in DataSourceSpec.model_fields})

    @property
    def keeps_password(self) -> bool:
        """Whether the request says nothing of the password."""
        return "password" not in self.model_fields_set


class DataSourceKindOut(Answer):
    """What a kind of data source takes: enough to make a form of it."""

    kind: str = Field(description="Its name, as data sources give it.")
    title: str
    port: int | None = Field(description="The default port; null: the data source is a file.")
    host: FieldNeed
    database: FieldNeed
    database_is: str
    user: FieldNeed
    password: FieldNeed
    credential: str = Field(description="What the password is called there.")
    options_schema: dict[str, Any] = Field(description="JSON Schema of `options`.")


class ProbeIn(RequestBody):
    """From where a data source is tried."""

    worker_group: str = Field(default="default", description="Any worker of it.", max_length=100)
    parameters: dict[str, str] = Field(
        default_factory=dict, description="What placeholders in the data source ask for."
    )


class ProbeOut(Answer):
    """What a worker has found."""

    ok: bool
    text: str = Field(description="What answered, or why it cannot be used.")
    worker: str
    took_s: float = Field(description="Seconds, the start of a process included.")
