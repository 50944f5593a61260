"""Workflows and tasks in a window beside the window before, and all of them added up."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TypeVar

from shoal.core.insight.days import (
    TRIGGERS,
    Cost,
    RunDay,
    TaskDay,
    costs_of,
    runs_of,
    tasks_of,
)
from shoal.core.insight.windows import (
    Window,
    added,
    difference,
    highest,
    rate,
    ratio,
    weighted,
)

T = TypeVar("T")
Name = tuple[str, str]  # project and workflow


@dataclass(frozen=True)
class Totals:
    """All runs that ended, and all attempts, of some days. ``by_trigger``: what started the runs.

    Rates are NULL where there was nothing; sums of seconds where nothing was measured.
    """

    runs: int
    succeeded: int
    failed: int
    stopped: int
    failure_rate: float | None
    late: int
    late_rate: float | None
    by_trigger: Mapping[str, int]
    duration_mean_s: float | None
    admission_mean_s: float | None
    attempts: int
    failed_attempts: int
    lost_attempts: int
    retries: int
    retry_rate: float | None
    wait_mean_s: float | None
    busy_s: float | None
    cpu_s: float | None

    @classmethod
    def of(cls, runs: Iterable[RunDay], tasks: Iterable[TaskDay]) -> "Totals":
        """Add up days, workflows, or both."""
        run, task = runs_of(runs), tasks_of(tasks)
        return cls(
            run.runs,
            run.succeeded,
            run.failed,
            run.stopped,
            rate(run.failed, run.runs),
            run.late,
            rate(run.late, run.runs),
            dict(zip(TRIGGERS, run.by_trigger, strict=True)),
            run.duration_mean,
            run.admission_mean,
            task.attempts,
            task.failed,
            task.lost,
            task.retries,
            rate(task.retries, task.attempts),
            task.wait_mean,
            task.busy_s,
            task.cpu_s,
        )


@dataclass(frozen=True)
class RunValues:
    """A workflow in a window."""

    runs: int
    succeeded: int
    failed: int
    stopped: int
    failure_rate: float | None
    late: int
    late_rate: float | None
    duration_p50_s: float | None
    duration_p95_s: float | None
    duration_mean_s: float | None
    duration_max_s: float | None
    admission_p50_s: float | None
    admission_p95_s: float | None
    admission_mean_s: float | None
    wait_p50_s: float | None
    wait_p95_s: float | None
    wait_mean_s: float | None
    critical_p50_s: float | None
    attempts: int
    retries: int

    @classmethod
    def of(cls, runs: Iterable[RunDay], tasks: Iterable[TaskDay]) -> "RunValues":
        """Return the values of several days."""
        run, task = runs_of(runs), tasks_of(tasks)
        return cls(
            run.runs,
            run.succeeded,
            run.failed,
            run.stopped,
            rate(run.failed, run.runs),
            run.late,
            rate(run.late, run.runs),
            run.duration_p50,
            run.duration_p95,
            run.duration_mean,
            run.duration_max,
            run.admission_p50,
            run.admission_p95,
            run.admission_mean,
            task.wait_p50,
            task.wait_p95,
            task.wait_mean,
            run.critical_p50,
            task.attempts,
            task.retries,
        )

    @property
    def waits_s(self) -> float:
        """How long a run waits for its admission and an attempt in the queue, on average."""
        return (self.admission_mean_s or 0.0) + (self.wait_mean_s or 0.0)


@dataclass(frozen=True)
class TaskValues:
    """A task in a window."""

    attempts: int
    succeeded: int
    failed: int
    lost: int
    killed: int
    skipped: int
    failure_rate: float | None
    retries: int
    retry_rate: float | None
    duration_p50_s: float | None
    duration_p95_s: float | None
    duration_mean_s: float | None
    duration_max_s: float | None
    wait_p50_s: float | None
    wait_p95_s: float | None
    wait_mean_s: float | None
    busy_s: float | None
    cpu_s: float | None
    max_rss_kb: float | None

    @classmethod
    def of(cls, days: Iterable[TaskDay]) -> "TaskValues":
        """Return the values of several days."""
        one = tasks_of(days)
        return cls(
            one.attempts,
            one.succeeded,
            one.failed,
            one.lost,
            one.killed,
            one.skipped,
            rate(one.failed, one.attempts),
            one.retries,
            rate(one.retries, one.attempts),
            one.duration_p50,
            one.duration_p95,
            one.duration_mean,
            one.duration_max,
            one.wait_p50,
            one.wait_p95,
            one.wait_mean,
            one.busy_s,
            one.cpu_s,
            one.max_rss_kb,
        )


class WorkflowSort(StrEnum):
    """What comes first in a list of workflows."""

    SLOWER = "slower"  # by how much the median of the duration has grown
    WAITS = "waits"  # the mean waits of a run for its admission and of an attempt in the queue
    FAILURES = "failures"  # runs that failed
    LATE = "late"  # runs that were late
    COST = "cost"  # seconds of slots


@dataclass(frozen=True)
class WorkflowTrend:
    """A workflow in a window and in the one before. ``daily``: of the window, by day."""

    project: str
    workflow: str
    now: RunValues
    before: RunValues
    cost: Cost
    cost_before: Cost
    daily: Mapping[date, RunDay]

    @property
    def duration_change_s(self) -> float | None:
        """By how much the median of the duration has grown."""
        return difference(self.now.duration_p50_s, self.before.duration_p50_s)

    @property
    def duration_ratio(self) -> float | None:
        """How many times as long the median is."""
        return ratio(self.now.duration_p50_s, self.before.duration_p50_s)


#: Of a job: what is kept, by day, project and workflow.
RunDays = Iterable[tuple[date, Name, RunDay]]
TaskDays = Iterable[tuple[date, Name, TaskDay]]
CostDays = Iterable[tuple[date, Name, Cost]]


def workflow_trends(
    window: Window, runs: RunDays, tasks: TaskDays, costs: CostDays, sort: WorkflowSort
) -> list[WorkflowTrend]:
    """Return the workflows that have runs or attempts in the window or the one before, sorted."""
    by_run, by_task = _divided(window, runs), _divided(window, tasks)
    by_cost = _divided(window, costs)
    found = []
    for name in by_run.keys() | by_task.keys():
        run = by_run.get(name, ({}, []))
        task = by_task.get(name, ({}, []))
        cost = by_cost.get(name, ({}, []))
        found.append(
            WorkflowTrend(
                *name,
                RunValues.of(run[0].values(), task[0].values()),
                RunValues.of(run[1], task[1]),
                costs_of(cost[0].values()),
                costs_of(cost[1]),
                run[0],
            )
        )
    return sorted(found, key=lambda one: (*_place(one, sort), one.project, one.workflow))


def _place(trend: WorkflowTrend, sort: WorkflowSort) -> tuple[bool, float]:
    """Return where it stands: what is not known comes last."""
    value: float | None
    match sort:
        case WorkflowSort.SLOWER:
            value = trend.duration_change_s
        case WorkflowSort.WAITS:
            value = trend.now.waits_s
        case WorkflowSort.FAILURES:
            value = trend.now.failed
        case WorkflowSort.LATE:
            value = trend.now.late
        case WorkflowSort.COST:
            value = trend.cost.slot_s
    return value is None, -(value or 0.0)


@dataclass(frozen=True)
class Critical:
    """How a task was on critical paths in a window.

    ``share``: of the runs on whose path it was. ``gain``: seconds by which runs would have ended
    earlier had it taken no time.
    """

    runs: int
    runs_of_days: int
    share: float | None
    own_p50_s: float | None
    gain_mean_s: float | None
    gain_max_s: float | None
    gain_sum_s: float | None


@dataclass(frozen=True)
class TaskTrend:
    """A task in a window and in the one before. ``daily``: of the window, by day."""

    task: str
    type: str
    now: TaskValues
    before: TaskValues
    daily: Mapping[date, TaskDay]

    @property
    def duration_change_s(self) -> float | None:
        """By how much the median of the duration has grown."""
        return difference(self.now.duration_p50_s, self.before.duration_p50_s)

    @property
    def duration_ratio(self) -> float | None:
        """How many times as long the median is."""
        return ratio(self.now.duration_p50_s, self.before.duration_p50_s)


def task_trends(
    window: Window, rows: Iterable[tuple[date, tuple[str, str], TaskDay]]
) -> list[TaskTrend]:
    """Return the tasks of one workflow, by (task, type), what has taken longest in all first."""
    divided = _divided(window, rows)
    found = [
        TaskTrend(*name, TaskValues.of(now.values()), TaskValues.of(before), now)
        for name, (now, before) in divided.items()
    ]
    return sorted(found, key=lambda one: (-(one.now.busy_s or 0.0), one.task, one.type))


def _divided(
    window: Window, rows: Iterable[tuple[date, Name, T]]
) -> dict[Name, tuple[dict[date, T], list[T]]]:
    """Return by name what is of the window, by day, and what is of the window before."""
    found: dict[Name, tuple[dict[date, T], list[T]]] = {}
    before = window.before
    for day, name, value in rows:
        if window.has(day):
            found.setdefault(name, ({}, []))[0][day] = value
        elif before.has(day):
            found.setdefault(name, ({}, []))[1].append(value)
    return found


def critical_of(rows: Sequence[Mapping[str, float]]) -> Critical:
    """Return several days of a task in ``critical_days`` as one."""
    runs = int(sum(row["runs"] for row in rows))
    of_days = int(sum(row["runs_of_day"] for row in rows))
    weights = [row["runs"] for row in rows]
    gain_sum = added(row["gain_sum_s"] for row in rows)
    return Critical(
        runs,
        of_days,
        rate(runs, of_days),
        weighted((row["own_p50_s"], weight) for row, weight in zip(rows, weights, strict=True)),
        None if gain_sum is None else rate(gain_sum, runs),
        highest(row["gain_max_s"] for row in rows),
        gain_sum,
    )
