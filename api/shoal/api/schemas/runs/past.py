"""Runs of the past, out of the exported history."""

from datetime import datetime

from pydantic import Field

from shoal.api.schemas.common import Answer
from shoal.core.definition.fields import PriorityName
from shoal.core.runs.states import TaskState, WorkflowState


class PastInstanceOut(Answer):
    """A run that has ended, as it was exported."""

    id: int
    project: str
    workflow: str
    version: int
    state: WorkflowState
    reason: str | None = Field(description="Its first 2,000 characters.")
    trigger: str = Field(description="schedule, backfill, parent, rerun, or request.")
    schedule_id: int | None
    backfill_id: int | None
    parent_instance_id: int | None = Field(description="The run whose sub-workflow it was.")
    priority: PriorityName
    logical_time: datetime
    created_at: datetime
    admitted_at: datetime | None
    started_at: datetime | None
    finished_at: datetime
    deadline_at: datetime | None
    late_at: datetime | None = Field(description="When it was noticed to be late.")
    labels: dict[str, str]
    in_database: bool = Field(
        description="Whether it is in the database, too: /instances/{id} shows it as it is now."
    )


class PastAttemptOut(Answer):
    """An attempt that has ended, as it was exported."""

    id: int = Field(description="The id of the task instance.")
    task: str
    type: str
    worker_group: str
    worker: str | None
    attempt: int
    state: TaskState
    reason: str | None
    exit_code: int | None
    forced: bool = Field(description="Whether it was forced to count as a success.")
    waiting_since: datetime | None
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime
    cpu_s: float | None
    max_rss_kb: int | None
    error_line: str | None
    fingerprint: str | None


class PastTaskOut(Answer):
    """A task of the version that the run was of."""

    name: str
    type: str
    worker_group: str
    depends_on: list[str]


class PastInstanceDetail(PastInstanceOut):
    """A run of the past with its attempts and its plan."""

    attempts: list[PastAttemptOut] = Field(description="In the order in which they were made.")
    attempts_left_out: int = Field(description="So many earlier ones are not shown.")
    tasks: list[PastTaskOut] | None = Field(
        description="The plan of its version; null: the history does not have it."
    )
