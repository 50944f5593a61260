"""Workflow instances, task instances and logs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, computed_field

from shoal.api.schemas.common import Answer, SaidOut
from shoal.core.definition.fields import PriorityName
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.core.runs.why import reasons


class ParentOut(Answer):
    """The SUB_WORKFLOW or MAP task that an instance works for."""

    instance_id: int
    task_instance_id: int
    index: int = Field(description="Which item of a MAP, from 0.")
    depth: int = Field(description="How deep it is nested, from 1.")


def _without_outputs(detail: Any) -> Any:
    """Leave out what children gave on: it may be much, and each child has it."""
    if not isinstance(detail, Mapping) or "children" not in detail:
        return detail
    children = {
        index: {name: value for name, value in child.items() if name != "outputs"}
        for index, child in detail["children"].items()
    }
    return {**detail, "children": children}


EXPECTED_END = (
    "When it will end, as far as its past tells; never before now. In lists by the runs before it, "
    "of one run by its open tasks, where each has a past. Null: it has ended, has not begun, is "
    "held, or has no baseline."
)
LATE_AFTER = (
    "From then on it takes longer than is usual for it; null: it has ended, has not begun, or has "
    "no baseline."
)

Detail = Annotated[
    dict[str, Any],
    BeforeValidator(_without_outputs),
    Field(
        description="Of a task that the master runs: the `chosen` tasks, the `items` and the "
        "`children` that work for them, the runs it has found."
    ),
]


class InstanceOut(Answer):
    """One run of a workflow."""

    id: int
    project: str
    workflow: str
    version: int
    state: WorkflowState
    reason: str | None = Field(description="Why it is in its state, in English.")
    priority: PriorityName
    parameters: dict[str, str]
    logical_time: datetime = Field(description="The instant the run is for.")
    timezone: str = Field(description="Zone of date expressions.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deadline_at: datetime | None = Field(
        description="When it should have ended, by the deadline of its workflow; null: no such "
        "time."
    )
    is_late: bool = Field(description="Whether that has passed and it has not ended.")
    expected_end_at: datetime | None = Field(description=EXPECTED_END)
    late_after_at: datetime | None = Field(description=LATE_AFTER)
    rerun_of: int | None = Field(description="The instance that this one runs again.")
    run_number: int
    command_id: int
    parent: ParentOut | None = Field(description="None: not a sub-workflow.")
    task_counts: dict[TaskState, int] = Field(description="Newest attempts by state.")
    labels: dict[str, str]
    schedule_id: int | None = Field(description="The schedule that fired it.")
    backfill_id: int | None = Field(description="The backfill that it belongs to.")

    @computed_field(description="The reason for programs; null: there is none, or text alone.")  # type: ignore[prop-decorator]
    @property
    def reason_said(self) -> SaidOut | None:
        """The reason with its code."""
        return SaidOut.of(reasons.of_instance(self.state, self.reason))


class TaskOut(Answer):
    """One attempt of one task."""

    id: int
    workflow_instance_id: int
    project: str
    workflow: str
    task: str
    type: str
    attempt: int
    state: TaskState
    worker_group: str
    worker: str | None
    reason: str | None = Field(description="Why it is in its state, in English.")
    exit_code: int | None
    due_at: datetime | None = Field(
        description="Not before; while a delay runs, or until the next look."
    )
    looks: int = Field(
        description="Earlier attempts that did not find what the task waits for, since its last "
        "start or failure."
    )
    waiting_since: datetime | None = Field(description="When the first of these looks began.")
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    environment: str | None = Field(
        description="NAME@VERSION of the environment that it runs in; null: none, or not yet."
    )
    cpu_s: float | None = Field(
        description="Processor time of all its processes on the worker, in seconds; null: it had "
        "none, or has not ended."
    )
    max_rss_kb: int | None = Field(
        description="Largest resident size of any one of them, in KiB, never below 10 MB or so."
    )
    error_line: str | None = Field(
        description="What its log says of the failure, in one line; null: nothing, or it has not "
        "failed."
    )
    fingerprint: str | None = Field(
        description="The same of error lines that differ in numbers, ids, times, paths and quoted "
        "texts alone."
    )

    @computed_field(description="The reason for programs; null: there is none, or text alone.")  # type: ignore[prop-decorator]
    @property
    def reason_said(self) -> SaidOut | None:
        """The reason with its code."""
        return SaidOut.of(reasons.of_attempt(self.state, self.reason))


class TaskDetail(TaskOut):
    """One attempt with what it has given on."""

    detail: Detail
    outputs: dict[str, str] = Field(description="What the tasks behind it see as parameters.")


class InstanceTask(TaskOut):
    """An attempt and its place in the graph."""

    depends_on: list[str]
    detail: Detail


class InstanceDetail(InstanceOut):
    """A run with its tasks in the order of the definition."""

    tasks: list[InstanceTask]


class ProgressOut(Answer):
    """How far a running task is, as its work says."""

    task_instance_id: int
    done: float = Field(description="In `unit`.")
    total: float | None = Field(description="What `done` will be at the end, if that is known.")
    unit: str = Field(description="Such as rows, stages or bytes.")
    label: str = Field(description="What is being done.")
    at: datetime = Field(description="When this was so, by the worker's clock.")


class LogOut(Answer):
    """A range of a log as text. Offsets are bytes."""

    data: str = Field(description="UTF-8; other bytes are replaced by U+FFFD.")
    offset: int = Field(description="Where `data` starts.")
    next_offset: int = Field(description="Where to continue.")
    size: int = Field(description="Of the whole log now.")
    finished: bool = Field(description="Whether the log is complete.")
