"""Runs of the past, out of the exported history."""

from datetime import datetime

from pydantic import BaseModel, Field

from shoal.api.schemas.common import TIME, PriorityName, example
from shoal.core.runs.states import TaskState, WorkflowState

_RUN = {
    "id": 17,
    "project": "flights",
    "workflow": "daily",
    "version": 4,
    "state": "FAILED",
    "reason": "1 task failed",
    "trigger": "schedule",
    "schedule_id": 3,
    "backfill_id": None,
    "parent_instance_id": None,
    "priority": "MEDIUM",
    "logical_time": TIME,
    "created_at": TIME,
    "admitted_at": TIME,
    "started_at": TIME,
    "finished_at": TIME,
    "deadline_at": None,
    "late_at": None,
    "labels": {"team": "flights"},
    "in_database": False,
}
_ATTEMPT = {
    "id": 91,
    "task": "report",
    "type": "PYTHON",
    "worker_group": "default",
    "worker": "host-1f2e3d4c",
    "attempt": 1,
    "state": "FAILED",
    "reason": "exit code 1",
    "exit_code": 1,
    "forced": False,
    "waiting_since": TIME,
    "queued_at": TIME,
    "started_at": TIME,
    "finished_at": TIME,
    "cpu_s": 1.5,
    "max_rss_kb": 20480,
    "error_line": "ValueError: no rows",
    "fingerprint": "5f3a9c0b1d2e4f60",
}
_TASK = {"name": "report", "type": "PYTHON", "worker_group": "default", "depends_on": ["fetch"]}


class PastInstanceOut(BaseModel):
    """A run that has ended, as it was exported."""

    model_config = example(_RUN)

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


class PastAttemptOut(BaseModel):
    """An attempt that has ended, as it was exported."""

    model_config = example(_ATTEMPT)

    id: int = Field(description="That of the task instance.")
    task: str
    type: str
    worker_group: str
    worker: str | None
    attempt: int
    state: TaskState
    reason: str | None
    exit_code: int | None
    forced: bool = Field(description="Whether somebody has taken it for a success.")
    waiting_since: datetime | None
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime
    cpu_s: float | None
    max_rss_kb: int | None
    error_line: str | None
    fingerprint: str | None


class PastTaskOut(BaseModel):
    """A task of the version that the run was of."""

    model_config = example(_TASK)

    name: str
    type: str
    worker_group: str
    depends_on: list[str]


class PastInstanceDetail(PastInstanceOut):
    """A run of the past with its attempts and its plan."""

    model_config = example(
        {**_RUN, "attempts": [_ATTEMPT], "attempts_left_out": 0, "tasks": [_TASK]}
    )

    attempts: list[PastAttemptOut] = Field(description="In the order in which they were made.")
    attempts_left_out: int = Field(description="So many earlier ones are not shown.")
    tasks: list[PastTaskOut] | None = Field(
        description="The plan of its version; null: the history does not have it."
    )
