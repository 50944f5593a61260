"""Data sources of projects."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from shoal.api.schemas.common import TIME, example
from shoal.core.data_sources.kind import Need
from shoal.core.data_sources.spec import DataSourceSpec

_SPEC: dict[str, Any] = {
    "kind": "postgresql",
    "host": "db.example.org",
    "port": 5432,
    "database": "sales",
    "user": "etl",
    "options": {"sslmode": "verify-full", "connect_timeout": 5},
    "shared_with": [],
}
_SOURCE = {
    "project": "flights",
    "name": "warehouse",
    **_SPEC,
    "has_password": True,
    "password_secret": None,
    "version": 3,
    "created_at": TIME,
    "updated_at": TIME,
}


class DataSourceOut(BaseModel):
    """A data source as it is defined. Its password is shown to nobody."""

    model_config = example(_SOURCE)

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

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{**_SPEC, "password": "correct horse battery"}]},
    )

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


class DataSourceKindOut(BaseModel):
    """What a kind of data source takes: enough to make a form of it."""

    model_config = example(
        {
            "kind": "postgresql",
            "title": "PostgreSQL",
            "port": 5432,
            "host": "required",
            "database": "required",
            "database_is": "name of a database",
            "user": "required",
            "password": "optional",
            "credential": "password",
            "options_schema": {
                "type": "object",
                "properties": {"connect_timeout": {"type": "integer", "default": 10}},
                "additionalProperties": False,
            },
        }
    )

    kind: str = Field(description="Its name, as data sources give it.")
    title: str
    port: int | None = Field(description="The default port; null: the data source is a file.")
    host: Need
    database: Need
    database_is: str
    user: Need
    password: Need
    credential: str = Field(description="What the password is called there.")
    options_schema: dict[str, Any] = Field(description="JSON Schema of `options`.")


class ProbeIn(BaseModel):
    """From where a data source is tried."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"worker_group": "default", "parameters": {}}]},
    )

    worker_group: str = Field(default="default", description="Any worker of it.", max_length=100)
    parameters: dict[str, str] = Field(
        default_factory=dict, description="What placeholders in the data source ask for."
    )


class ProbeOut(BaseModel):
    """What a worker has found."""

    model_config = example(
        {"ok": True, "text": "PostgreSQL 15.14", "worker": "host-1f2e3d4c", "took_s": 0.4}
    )

    ok: bool
    text: str = Field(description="What answered, or why it cannot be used.")
    worker: str
    took_s: float = Field(description="Seconds, the start of a process included.")
