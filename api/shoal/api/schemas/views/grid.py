"""The grid of a workflow, and the days of its calendar."""

from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, Field

from shoal.api.schemas.common import TIME, example
from shoal.core.runs.states import TaskState, WorkflowState

_TASK = {"name": "fetch", "type": "SHELL", "is_current": True}
_RUN = {
    "id": 17,
    "version": 4,
    "state": "FAILED",
    "logical_time": TIME,
    "run_number": 1,
    "backfill_id": None,
    "created_at": TIME,
    "started_at": TIME,
    "finished_at": TIME,
    "cells": "SF",
}
_LEGEND = {"cell": "F", "state": "FAILED", "means": "FAILED"}


class GridTask(BaseModel):
    """A column of cells."""

    model_config = example(_TASK)

    name: str
    type: str | None = Field(description="Null: the newest version does not have the task.")
    is_current: bool = Field(description="Whether the newest version has it.")


class GridRun(BaseModel):
    """A run with the states of its tasks."""

    model_config = example(_RUN)

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


class GridLegend(BaseModel):
    """What a character means. They never change; new ones may come."""

    model_config = example(_LEGEND)

    cell: str
    state: TaskState | None = Field(description="Of the task's newest attempt; null: it has none.")
    means: str


class GridOut(BaseModel):
    """Runs by tasks."""

    model_config = example(
        {
            "project": "flights",
            "workflow": "daily",
            "tasks": [_TASK, {"name": "report", "type": "PYTHON", "is_current": True}],
            "runs": [_RUN],
            "legend": [_LEGEND],
            "next": None,
        }
    )

    project: str
    workflow: str
    tasks: list[GridTask] = Field(
        description="In the order of the newest definition; then those that only older runs have."
    )
    runs: list[GridRun]
    legend: list[GridLegend]
    next: str | None = Field(description="Cursor of the runs before; null: there are none.")


_DAY: dict[str, Any] = {
    "date": "2026-11-21",
    "states": {"SUCCEEDED": 23},
    "missing": 1,
    "is_more": False,
}


class DayOut(BaseModel):
    """One day of a calendar."""

    model_config = example(_DAY)

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
