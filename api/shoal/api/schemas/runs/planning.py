"""What a run would be, what a task gets, how two runs differ, and when tasks worked."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Self

from pydantic import Field, StrictInt, model_validator

from shoal.api.schemas.authoring import LONGEST_TEXT
from shoal.api.schemas.commands import MAX_NAMED_TASKS, GivenPriority, ParameterValues
from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.access.authorization import Thing
from shoal.core.definition.fields import PriorityName
from shoal.core.definition.labels import Labels
from shoal.core.definition.selection import SelectionMode
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.core.timing.instant import LogicalTime

MOST_RENDERED = 200


class StartPreviewIn(RequestBody):
    """A start that is only thought of."""

    project: str = "default"
    workflow: str
    version: StrictInt | None = Field(default=None, ge=1, le=2**31 - 1)
    text: str | None = Field(
        default=None,
        max_length=LONGEST_TEXT,
        description="A definition that is not published, as one document of YAML, instead of a "
        "version. Needs `project.edit`.",
    )
    parameters: ParameterValues = Field(default={})
    logical_time: LogicalTime | None = Field(
        default=None,
        description="Null is now. From 0001-01-02T00:00:00Z to 9999-12-30T23:59:59Z.",
    )
    priority: GivenPriority = None
    tasks: list[str] | None = Field(default=None, min_length=1, max_length=MAX_NAMED_TASKS)
    mode: SelectionMode | None = Field(default=None, description="With `tasks`.")
    labels: Labels = Field(default={})
    render: list[str] | None = Field(
        default=None,
        max_length=MOST_RENDERED,
        description="Tasks whose params are rendered; null: the first 200 that would run.",
    )

    def things(self) -> Iterator[tuple[Thing, int | str]]:
        """Yield what the start would be about."""
        yield Thing.PROJECT, self.project

    @model_validator(mode="after")
    def _one_definition(self) -> Self:
        if self.text is not None and self.version is not None:
            raise ValueError("version and text do not go together: give the one or the other")
        return self


class RenderedOut(Answer):
    """What a task gets. Secrets are masked, always by the same."""

    params: dict[str, Any] = Field(description="With placeholders and dates filled in.")
    parameters: dict[str, str] = Field(description="All that it sees.")
    problem: str | None = Field(
        description="Why it cannot be rendered: an output of a task before it, perhaps."
    )


class PlannedTask(Answer):
    """A task of a run that there is not."""

    task: str
    type: str
    depends_on: list[str]
    worker_group: str
    runs: bool = Field(description="Whether it is enabled, and among the chosen tasks.")
    rendered: RenderedOut | None = Field(description="Null: it was not asked for.")


class StartPreview(Answer):
    """The run that a start would make."""

    project: str
    workflow: str
    version: int = Field(description="Of a text: what it would be if it was published now.")
    logical_time: datetime
    timezone: str
    priority: PriorityName
    parameters: dict[str, str] = Field(description="Of the run, as definitions.")
    labels: dict[str, str]
    tasks: list[PlannedTask]


class RunSide(Answer):
    """One of two runs."""

    instance_id: int
    version: int
    state: WorkflowState
    logical_time: datetime
    started_at: datetime | None
    seconds: float | None = Field(description="From start to end; null: not ended.")


class TaskSide(Answer):
    """The newest attempt of a task in one of two runs."""

    attempt: int
    state: TaskState
    seconds: float | None
    worker: str | None


class ValueChange(Answer):
    """A value that differs; null: it is not there."""

    name: str
    one: str | None
    other: str | None


class TaskChange(Answer):
    """A task in both runs; null: one has no such task."""

    task: str
    one: TaskSide | None
    other: TaskSide | None
    differs: bool = Field(description="Whether the states differ, or one run has no such task.")
    slower_s: float | None = Field(description="How much longer it took in the other run.")


class Comparison(Answer):
    """How two runs differ. Tasks come in the order of the other's definition."""

    one: RunSide
    other: RunSide
    parameters: list[ValueChange]
    labels: list[ValueChange]
    tasks: list[TaskChange]


class Bar(Answer):
    """One attempt in time."""

    task_instance_id: int
    task: str
    attempt: int
    state: TaskState
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    is_critical: bool


class Timeline(Answer):
    """When the attempts of an instance waited and worked."""

    started_at: datetime | None
    finished_at: datetime | None
    critical_path: list[str] = Field(
        description="The tasks whose ends the end of the run has waited for, so far."
    )
    critical_s: float = Field(description="How long these worked, together.")
    bars: list[Bar]
