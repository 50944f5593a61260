"""What a store is: the interface of plug-ins, and the settings that all of them have."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shoal.runtime.secret_stores.reference import path_problem, template_problem


class StoreSettings(BaseModel):
    """A table ``[cluster.secret_stores.NAME]``; a plug-in derives its own settings from it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str  # the name of its entry point
    # Which paths a project may read: a folder, which ends with /, or one path; {project} is it.
    paths: tuple[str, ...] = ("{project}/",)
    # What single projects may read besides, by their names; "*": all projects.
    projects: Mapping[str, tuple[str, ...]] = {}
    # The whole of one look.
    timeout_s: float = Field(default=5.0, gt=0, le=60)
    # What was read is used for so long: a new value counts that much later.
    cache_s: float = Field(default=10.0, ge=1, le=3600)
    # An attempt waits so long for a store that gives no answer; then it has failed.
    patience_s: float = Field(default=60.0, ge=0, le=3600)

    @field_validator("paths")
    @classmethod
    def _paths_are_of_one_project(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if problem := template_problem(one):
                raise ValueError(problem)
        return value

    @field_validator("projects")
    @classmethod
    def _projects_have_paths(
        cls, value: Mapping[str, tuple[str, ...]]
    ) -> Mapping[str, tuple[str, ...]]:
        for name, paths in value.items():
            for one in paths:
                if problem := path_problem(one):
                    raise ValueError(f"of {name}: {problem}")
        return value


S = TypeVar("S", bound=StoreSettings)


class SecretStore(ABC, Generic[S]):
    """One store of the settings, in one process.

    A plug-in is a class with ``Settings``, installed as an entry point of the group
    ``shoal.secret_stores``; the entry point's name is the ``kind`` of the settings.
    """

    Settings: ClassVar[type[StoreSettings]] = StoreSettings

    def __init__(self, name: str, settings: S) -> None:
        """``name``: that of the settings. Nothing is asked yet. Raises ShoalError."""
        self.name, self.settings = name, settings

    def field_problem(self, field: str | None) -> str | None:
        """Return what is wrong with the field of a reference; None if nothing is."""
        return None if field is None else f"the store {self.name} has no fields: leave #{field} out"

    @abstractmethod
    def read(self, path: str, field: str | None) -> str:
        """Return a secret. What may be read at all was checked before.

        Blocks, for ``settings.timeout_s`` at most; several threads may call it at once. Raises
        SecretRefused, StoreUnavailable; whatever else it raises counts as the latter. No text of
        an error holds a secret.
        """
