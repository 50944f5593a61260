"""Totals, workflows and tasks in a window beside the window before."""

from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, Field

from shoal.api.schemas.common import TIME, Page, example
from shoal.api.schemas.insight.window import OF_DAYS, WINDOW, WindowOut

_TOTALS: dict[str, Any] = {
    "runs": 1200,
    "succeeded": 1170,
    "failed": 24,
    "stopped": 6,
    "failure_rate": 0.02,
    "late": 12,
    "late_rate": 0.01,
    "by_trigger": {"schedule": 1100, "backfill": 60, "parent": 0, "rerun": 10, "request": 30},
    "duration_mean_s": 312.5,
    "admission_mean_s": 1.5,
    "attempts": 9600,
    "failed_attempts": 96,
    "lost_attempts": 2,
    "retries": 72,
    "retry_rate": 0.0075,
    "wait_mean_s": 0.8,
    "busy_s": 512000.0,
    "cpu_s": 400100.5,
}
_RUNS: dict[str, Any] = {
    "runs": 28,
    "succeeded": 27,
    "failed": 1,
    "stopped": 0,
    "failure_rate": 0.0357,
    "late": 2,
    "late_rate": 0.0714,
    "duration_p50_s": 480.0,
    "duration_p95_s": 840.0,
    "duration_mean_s": 512.0,
    "duration_max_s": 912.0,
    "admission_p50_s": 0.2,
    "admission_p95_s": 1.5,
    "admission_mean_s": 0.4,
    "wait_p50_s": 0.1,
    "wait_p95_s": 4.0,
    "wait_mean_s": 0.6,
    "critical_p50_s": 470.0,
    "attempts": 230,
    "retries": 4,
}
_TASKS: dict[str, Any] = {
    "attempts": 30,
    "succeeded": 28,
    "failed": 2,
    "lost": 0,
    "killed": 0,
    "skipped": 0,
    "failure_rate": 0.0667,
    "retries": 2,
    "retry_rate": 0.0667,
    "duration_p50_s": 300.0,
    "duration_p95_s": 610.0,
    "duration_mean_s": 330.0,
    "duration_max_s": 700.0,
    "wait_p50_s": 0.1,
    "wait_p95_s": 4.0,
    "wait_mean_s": 0.6,
    "busy_s": 9900.0,
    "cpu_s": 8700.0,
    "max_rss_kb": 420000,
}
COST: dict[str, Any] = {
    "attempts": 230,
    "cpu_s": 8700.0,
    "memory_gb_s": 4100.0,
    "slot_s": 14300.0,
}
_RUN_DAY: dict[str, Any] = {
    "day": "2026-11-21",
    "runs": 1,
    "failed": 0,
    "late": 0,
    "duration_p50_s": 480.0,
    "duration_p95_s": 480.0,
}
_TASK_DAY: dict[str, Any] = {
    "day": "2026-11-21",
    "attempts": 1,
    "failed": 0,
    "duration_p50_s": 300.0,
    "duration_p95_s": 300.0,
}
_PREDICTION: dict[str, Any] = {
    "runs": 7,
    "error_p50_s": 31.0,
    "error_share_p50": 0.064,
    "within_p95": 0.95,
    "late_share": 0.0,
}
_WORKFLOW: dict[str, Any] = {
    "project": "flights",
    "workflow": "daily",
    "now": _RUNS,
    "before": _RUNS,
    "duration_change_s": 60.0,
    "duration_ratio": 1.14,
    "cost": COST,
    "cost_before": COST,
    "prediction": _PREDICTION,
    "daily": [_RUN_DAY],
}
_CRITICAL: dict[str, Any] = {
    "runs": 20,
    "runs_of_days": 28,
    "share": 0.714,
    "own_p50_s": 300.0,
    "gain_mean_s": 180.0,
    "gain_max_s": 260.0,
    "gain_sum_s": 3600.0,
}
_FLAPPING: dict[str, Any] = {
    "runs": 20,
    "changes": 6,
    "failed_rate": 0.2,
    "retried_rate": 0.1,
    "last_seen": TIME,
}
_TASK: dict[str, Any] = {
    "task": "report",
    "type": "PYTHON",
    "now": _TASKS,
    "before": _TASKS,
    "duration_change_s": 12.0,
    "duration_ratio": 1.04,
    "critical": _CRITICAL,
    "flapping": _FLAPPING,
    "daily": [_TASK_DAY],
}
_RATE = "Null: there were none."


class TotalsOut(BaseModel):
    """All runs that ended, and all attempts that ended, in some days."""

    model_config = example(_TOTALS)

    runs: int
    succeeded: int
    failed: int
    stopped: int
    failure_rate: float | None = Field(description=f"`failed` / `runs`. {_RATE}")
    late: int = Field(description="Runs that passed their deadline.")
    late_rate: float | None = Field(description=f"`late` / `runs`. {_RATE}")
    by_trigger: dict[str, int] = Field(
        description="Runs by what started them: `schedule`, `backfill`, `parent`, `rerun`, "
        "`request`."
    )
    duration_mean_s: float | None = Field(description="Of runs, from the start to the end.")
    admission_mean_s: float | None = Field(
        description="Of runs, from the creation to the admission."
    )
    attempts: int = Field(description="Without those skipped and without looks.")
    failed_attempts: int
    lost_attempts: int = Field(description="Whose worker had gone.")
    retries: int = Field(description="Attempts with a number above 1.")
    retry_rate: float | None = Field(description=f"`retries` / `attempts`. {_RATE}")
    wait_mean_s: float | None = Field(description="Of attempts, in the queue.")
    busy_s: float | None = Field(description="Durations of all attempts added up.")
    cpu_s: float | None = Field(description="Their processor time; null: none was measured.")


class DayTotalsOut(TotalsOut):
    """The totals of one day."""

    model_config = example({"day": "2026-11-21", **_TOTALS})

    day: date


class SummaryOut(WindowOut):
    """All that the caller sees, added up: by day, in the window, and in the window before."""

    model_config = example(
        {
            **WINDOW,
            "total": _TOTALS,
            "before": _TOTALS,
            "daily": [{"day": "2026-11-21", **_TOTALS}],
        }
    )

    total: TotalsOut = Field(description="Of the window.")
    before: TotalsOut = Field(description="Of the window before.")
    daily: list[DayTotalsOut] = Field(description="Days of the window that have results.")


class RunValuesOut(BaseModel):
    """A workflow in a window."""

    model_config = example(_RUNS)

    runs: int
    succeeded: int
    failed: int
    stopped: int
    failure_rate: float | None = Field(description=f"`failed` / `runs`. {_RATE}")
    late: int
    late_rate: float | None = Field(description=f"`late` / `runs`. {_RATE}")
    duration_p50_s: float | None = Field(description=f"From the start to the end. {OF_DAYS}")
    duration_p95_s: float | None = Field(description=OF_DAYS)
    duration_mean_s: float | None
    duration_max_s: float | None
    admission_p50_s: float | None = Field(
        description=f"From the creation to the admission. {OF_DAYS}"
    )
    admission_p95_s: float | None = Field(description=OF_DAYS)
    admission_mean_s: float | None
    wait_p50_s: float | None = Field(
        description=f"Of the attempts of its tasks, in the queue: the mean of the tasks' "
        f"percentiles. {OF_DAYS}"
    )
    wait_p95_s: float | None = Field(description=OF_DAYS)
    wait_mean_s: float | None
    critical_p50_s: float | None = Field(
        description=f"The own times of a run's critical path, added up. {OF_DAYS}"
    )
    attempts: int
    retries: int


class CostOut(BaseModel):
    """What attempts have used. What was not measured counts 0."""

    model_config = example(COST)

    attempts: int
    cpu_s: float = Field(description="Processor time.")
    memory_gb_s: float = Field(
        description="The highest resident memory in 10⁹ bytes, times the duration."
    )
    slot_s: float = Field(description="Seconds in which they had a slot of a worker.")


class RunDayOut(BaseModel):
    """A workflow on one day, for a sparkline."""

    model_config = example(_RUN_DAY)

    day: date
    runs: int
    failed: int
    late: int
    duration_p50_s: float | None
    duration_p95_s: float | None


class PredictionOut(BaseModel):
    """How good baselines were: runs of the last 7 days, each predicted from the days before it."""

    model_config = example(_PREDICTION)

    runs: int
    error_p50_s: float | None = Field(description="The median of |real - p50|.")
    error_share_p50: float | None = Field(
        description="The median of that, divided by the real duration."
    )
    within_p95: float | None = Field(description="The share that took no longer than p95.")
    late_share: float | None = Field(description="The share that took longer than `late_after_s`.")


class WorkflowTrendOut(BaseModel):
    """A workflow in the window and in the one before."""

    model_config = example(_WORKFLOW)

    project: str
    workflow: str
    now: RunValuesOut
    before: RunValuesOut
    duration_change_s: float | None = Field(
        description="By how much `duration_p50_s` has grown; null: one of them is not known."
    )
    duration_ratio: float | None = Field(description="How many times as long it is.")
    cost: CostOut
    cost_before: CostOut
    prediction: PredictionOut | None = Field(description="Null: there was nothing to predict.")
    daily: list[RunDayOut] = Field(description="Days of the window on which runs ended.")


class WorkflowTrendsPage(WindowOut, Page[WorkflowTrendOut]):
    """A page of workflows."""

    model_config = example({**WINDOW, "items": [_WORKFLOW], "next": None})


class TaskValuesOut(BaseModel):
    """A task in a window."""

    model_config = example(_TASKS)

    attempts: int = Field(description="That ended, without those skipped and without looks.")
    succeeded: int
    failed: int
    lost: int
    killed: int
    skipped: int
    failure_rate: float | None = Field(description=f"`failed` / `attempts`. {_RATE}")
    retries: int
    retry_rate: float | None = Field(description=f"`retries` / `attempts`. {_RATE}")
    duration_p50_s: float | None = Field(description=OF_DAYS)
    duration_p95_s: float | None = Field(description=OF_DAYS)
    duration_mean_s: float | None
    duration_max_s: float | None
    wait_p50_s: float | None = Field(description=f"In the queue. {OF_DAYS}")
    wait_p95_s: float | None = Field(description=OF_DAYS)
    wait_mean_s: float | None
    busy_s: float | None
    cpu_s: float | None
    max_rss_kb: int | None


class CriticalOut(BaseModel):
    """How a task was on critical paths: a run's end has waited for it."""

    model_config = example(_CRITICAL)

    runs: int = Field(description="On whose critical path it was.")
    runs_of_days: int = Field(description="All runs of the workflow on those days.")
    share: float | None = Field(description="`runs` / `runs_of_days`.")
    own_p50_s: float | None = Field(description=OF_DAYS)
    gain_mean_s: float | None = Field(
        description="How much earlier a run would have ended had it taken no time."
    )
    gain_max_s: float | None
    gain_sum_s: float | None


class FlappingOut(BaseModel):
    """How its outcome has changed from run to run, as of the newest day: of the last 20 runs."""

    model_config = example(_FLAPPING)

    runs: int
    changes: int = Field(description="Runs in which it ended otherwise than in the one before.")
    failed_rate: float | None
    retried_rate: float | None = Field(
        description="The share that succeeded after attempts that had not."
    )
    last_seen: datetime | None


class TaskDayOut(BaseModel):
    """A task on one day, for a sparkline."""

    model_config = example(_TASK_DAY)

    day: date
    attempts: int
    failed: int
    duration_p50_s: float | None
    duration_p95_s: float | None


class TaskTrendOut(BaseModel):
    """A task in the window and in the one before."""

    model_config = example(_TASK)

    task: str
    type: str
    now: TaskValuesOut
    before: TaskValuesOut
    duration_change_s: float | None = Field(
        description="By how much `duration_p50_s` has grown; null: one of them is not known."
    )
    duration_ratio: float | None = Field(description="How many times as long it is.")
    critical: CriticalOut | None = Field(description="Null: it was on no critical path.")
    flapping: FlappingOut | None = Field(description="Null: its outcome did not change.")
    daily: list[TaskDayOut] = Field(description="Days of the window on which attempts ended.")


class TaskTrendsPage(WindowOut, Page[TaskTrendOut]):
    """A page of the tasks of a workflow, what was busy for longest first."""

    model_config = example(
        {**WINDOW, "project": "flights", "workflow": "daily", "items": [_TASK], "next": None}
    )

    project: str
    workflow: str
