"""The grid of a workflow, and the days of its calendar."""

from datetime import date, datetime

from pydantic import Field

from shoal.api.schemas.common import Answer
from shoal.core.runs.states import TaskState, WorkflowState


class GridTask(Answer):
    """A column of cells."""

    name: str
    type: str | None = Field(description="Null: the newest version does not have the task.")
    is_current: bool = Field(description="Whether the newest version has it.")


class GridRun(Answer):
    """A run with the states of its tasks."""

    id: int
    version: int = Field(description="Where it differs from the run beside it, the version did.")
    state: WorkflowState
    logical_time: datetime
    run_number: int
    backfill_id: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cells: str = Field(description="One character for each of `tasks`: see `legend`.")


class GridLegend(Answer):
    """What a character means. They never change; new ones may come."""

    cell: str
    state: TaskState | None = Field(description="Of the task's newest attempt; null: it has none.")
    means: str


class GridOut(Answer):
    """Runs by tasks."""

    project: str
    workflow: str
    tasks: list[GridTask] = Field(
        description="In the order of the newest definition; then those that only older runs have."
    )
    runs: list[GridRun]
    legend: list[GridLegend]
    next: str | None = Field(description="Cursor of the runs before; null: there are none.")


class DayOut(Answer):
    """One day of a calendar."""

    date: date
    states: dict[WorkflowState, int] = Field(
        description="Logical times of the day by the state of the newest run for each. States "
        "without any are missing."
    )
    missing: int = Field(
        description="Fire times, of the schedules as they are now, that have passed without a run. "
        "What a schedule did before its times were changed, or while it was off, is not known, nor "
        "is what was purged: none are missing then."
    )
    is_more: bool = Field(description="Whether these numbers are what was counted, of more.")
