"""Totals, workflows and tasks in a window beside the window before."""

from datetime import date, datetime
from typing import Any

from pydantic import Field

from shoal.api.schemas.common import Answer, Page
from shoal.api.schemas.insight.window import OF_DAYS, WindowOut

COST: dict[str, Any] = {
    "attempts": 230,
    "cpu_s": 8700.0,
    "memory_gb_s": 4100.0,
    "slot_s": 14300.0,
}
_RATE = "Null: there were none."


class TotalsOut(Answer):
    """All runs that ended, and all attempts that ended, in some days."""

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

    day: date


class SummaryOut(WindowOut):
    """All that the caller sees, added up: by day, in the window, and in the window before."""

    total: TotalsOut = Field(description="Of the window.")
    before: TotalsOut = Field(description="Of the window before.")
    daily: list[DayTotalsOut] = Field(description="Days of the window that have results.")


class RunValuesOut(Answer):
    """A workflow in a window."""

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


class CostOut(Answer):
    """What attempts have used. What was not measured counts 0."""

    attempts: int
    cpu_s: float = Field(description="Processor time.")
    memory_gb_s: float = Field(
        description="The highest resident memory in 10⁹ bytes, times the duration."
    )
    slot_s: float = Field(description="Seconds in which they had a slot of a worker.")


class RunDayOut(Answer):
    """A workflow on one day, for a sparkline."""

    day: date
    runs: int
    failed: int
    late: int
    duration_p50_s: float | None
    duration_p95_s: float | None


class PredictionOut(Answer):
    """How good baselines were: runs of the last 7 days, each predicted from the days before it."""

    runs: int
    error_p50_s: float | None = Field(description="The median of |real - p50|.")
    error_share_p50: float | None = Field(
        description="The median of that, divided by the real duration."
    )
    within_p95: float | None = Field(description="The share that took no longer than p95.")
    late_share: float | None = Field(description="The share that took longer than `late_after_s`.")


class WorkflowTrendOut(Answer):
    """A workflow in the window and in the one before."""

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


class TaskValuesOut(Answer):
    """A task in a window."""

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


class CriticalOut(Answer):
    """How a task was on critical paths: a run's end has waited for it."""

    runs: int = Field(description="On whose critical path it was.")
    runs_of_days: int = Field(description="All runs of the workflow on those days.")
    share: float | None = Field(description="`runs` / `runs_of_days`.")
    own_p50_s: float | None = Field(description=OF_DAYS)
    gain_mean_s: float | None = Field(
        description="How much earlier a run would have ended had it taken no time."
    )
    gain_max_s: float | None
    gain_sum_s: float | None


class FlappingOut(Answer):
    """How its outcome has changed from run to run, as of the newest day: of the last 20 runs."""

    runs: int
    changes: int = Field(description="Runs in which it ended otherwise than in the one before.")
    failed_rate: float | None
    retried_rate: float | None = Field(
        description="The share that succeeded after attempts that had not."
    )
    last_seen: datetime | None


class TaskDayOut(Answer):
    """A task on one day, for a sparkline."""

    day: date
    attempts: int
    failed: int
    duration_p50_s: float | None
    duration_p95_s: float | None


class TaskTrendOut(Answer):
    """A task in the window and in the one before."""

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

    project: str
    workflow: str
