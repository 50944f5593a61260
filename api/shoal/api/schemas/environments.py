"""Environments of the cluster."""

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from shoal.api.schemas.common import Answer
from shoal.core.definition.environments import EnvironmentSpec


class EnvironmentOut(Answer):
    """An environment as it is defined."""

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

    uncounted: ClassVar[frozenset[str]] = frozenset({"workflows"})

    workflows: list[str] = Field(
        description="PROJECT/NAME of those whose newest version names it: it cannot be deleted."
    )


class EnvironmentIn(EnvironmentSpec):
    """What can be set. What is left out is empty."""

    @property
    def spec(self) -> EnvironmentSpec:
        """The definition."""
        return EnvironmentSpec(**{name: getattr(self, name) for name in type(self).model_fields})
