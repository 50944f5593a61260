"""Labels of runs, and counts of lists."""

from typing import Annotated, Any

from pydantic import Field, TypeAdapter, field_validator

from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.definition.labels import LONGEST_VALUE, MOST_LABELS, MOST_OF_RUN, Labels
from shoal.core.runs.states import TaskState, WorkflowState

_LABELS: TypeAdapter[dict[str, str]] = TypeAdapter(Labels)


class LabelChanges(RequestBody):
    """New values of labels; null removes one."""

    labels: dict[str, Annotated[str, Field(max_length=LONGEST_VALUE)] | None] = Field(
        min_length=1, max_length=MOST_OF_RUN
    )

    @field_validator("labels")
    @classmethod
    def _usable(cls, labels: dict[str, Any]) -> dict[str, Any]:
        keys = list(labels)
        for first in range(0, len(keys), MOST_LABELS):
            _LABELS.validate_python({k: labels[k] or "" for k in keys[first : first + MOST_LABELS]})
        return labels

    def changes(self) -> dict[str, str | None]:
        """Return the values by key; None: remove it."""
        return dict(self.labels)


class LabelsOut(Answer):
    """All labels of an instance."""

    labels: dict[str, str]


class CountOut(Answer):
    """A number that is not counted for ever."""

    count: int
    is_more: bool = Field(description="Whether there are at least so many, and perhaps more.")


class InstanceCounts(Answer):
    """How many instances a filter means. States without any are missing."""

    total: CountOut
    states: dict[WorkflowState, CountOut]


class TaskCounts(Answer):
    """How many attempts a filter means. States without any are missing."""

    total: CountOut
    states: dict[TaskState, CountOut]
