"""Environments of the cluster."""

from datetime import datetime
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from shoal.api.schemas.common import TIME, example
from shoal.core.definition.environments import EnvironmentSpec

_SPEC: dict[str, Any] = {
    "description": "Python 3.12 with the libraries of the analysts",
    "variables": {"OMP_NUM_THREADS": "2"},
    "python": "/opt/venvs/ml",
    "setup": "ulimit -v 8000000",
    "worker_groups": ["default", "gpu"],
}
_ENVIRONMENT = {"name": "ml", **_SPEC, "version": 3, "created_at": TIME, "updated_at": TIME}


class EnvironmentOut(BaseModel):
    """An environment as it is defined."""

    model_config = example(_ENVIRONMENT)

    name: str
    description: str
    variables: dict[str, str]
    python: str
    setup: str
    worker_groups: list[str] = Field(description="Whose workers have it; none: all.")
    version: int = Field(description="Grows with each change.")
    created_at: datetime
    updated_at: datetime


class EnvironmentDetail(EnvironmentOut):
    """An environment, and who names it."""

    model_config = example({**_ENVIRONMENT, "workflows": ["flights/daily"]})
    uncounted: ClassVar[frozenset[str]] = frozenset({"workflows"})

    workflows: list[str] = Field(
        description="PROJECT/NAME of those whose newest version names it: it cannot be deleted."
    )


class EnvironmentIn(EnvironmentSpec):
    """What can be set. What is left out is empty."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_SPEC]})

    @property
    def spec(self) -> EnvironmentSpec:
        """The definition."""
        return EnvironmentSpec(**{name: getattr(self, name) for name in type(self).model_fields})
