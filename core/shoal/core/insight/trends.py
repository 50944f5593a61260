"""Workflows and tasks in a window beside the window before, and all of them added up."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from shoal.core.insight.days import (
    TRIGGERS,
    Cost,
    CostBlock,
    RunDay,
    TaskDay,
    costs_of,
    mean_of,
    runs_of,
    tasks_of,
)
from shoal.core.insight.windows import (
    DayWindow,
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
        run, task = list(runs), list(tasks)
        counts = {name: sum(map(attrgetter(name), run)) for name in _RUNS}
        of_tasks = {name: sum(map(attrgetter(name), task)) for name in _ATTEMPTS}
        triggers = [*map(attrgetter("by_trigger"), run)]
        attempts = of_tasks["attempts"]
        return cls(
            **counts,
            failure_rate=rate(counts["failed"], counts["runs"]),
            late_rate=rate(counts["late"], counts["runs"]),
            by_trigger={
                name: sum(map(itemgetter(place), triggers)) for place, name in enumerate(TRIGGERS)
            },
            duration_mean_s=mean_of(run, "duration_mean"),
            admission_mean_s=mean_of(run, "admission_mean"),
            attempts=attempts,
            failed_attempts=of_tasks["failed"],
            lost_attempts=of_tasks["lost"],
            retries=of_tasks["retries"],
            retry_rate=rate(of_tasks["retries"], attempts),
            wait_mean_s=mean_of(task, "wait_mean"),
            busy_s=added(map(attrgetter("busy_s"), task)),
            cpu_s=added(map(attrgetter("cpu_s"), task)),
        )


_RUNS = ("runs", "succeeded", "failed", "stopped", "late")
_ATTEMPTS = ("attempts", "failed", "lost", "retries")


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
            runs=run.runs,
            succeeded=run.succeeded,
            failed=run.failed,
            stopped=run.stopped,
            failure_rate=rate(run.failed, run.runs),
            late=run.late,
            late_rate=rate(run.late, run.runs),
            duration_p50_s=run.duration_p50,
            duration_p95_s=run.duration_p95,
            duration_mean_s=run.duration_mean,
            duration_max_s=run.duration_max,
            admission_p50_s=run.admission_p50,
            admission_p95_s=run.admission_p95,
            admission_mean_s=run.admission_mean,
            wait_p50_s=task.wait_p50,
            wait_p95_s=task.wait_p95,
            wait_mean_s=task.wait_mean,
            critical_p50_s=run.critical_p50,
            attempts=task.attempts,
            retries=task.retries,
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
            attempts=one.attempts,
            succeeded=one.succeeded,
            failed=one.failed,
            lost=one.lost,
            killed=one.killed,
            skipped=one.skipped,
            failure_rate=rate(one.failed, one.attempts),
            retries=one.retries,
            retry_rate=rate(one.retries, one.attempts),
            duration_p50_s=one.duration_p50,
            duration_p95_s=one.duration_p95,
            duration_mean_s=one.duration_mean,
            duration_max_s=one.duration_max,
            wait_p50_s=one.wait_p50,
            wait_p95_s=one.wait_p95,
            wait_mean_s=one.wait_mean,
            busy_s=one.busy_s,
            cpu_s=one.cpu_s,
            max_rss_kb=one.max_rss_kb,
        )


class WorkflowSort(StrEnum):
    """What comes first in a list of workflows."""

    SLOWER = "slower"  # by how much the median of the duration has grown
    WAITS = "waits"  # the mean waits of a run for its admission and of an attempt in the queue
    FAILURES = "failures"  # runs that failed
    LATE = "late"  # runs that were late
    COST = "cost"  # seconds of slots


@dataclass(frozen=True)
class Results:
    """What is kept of some results, by day and by name."""

    runs: Mapping[date, Mapping[Name, RunDay]]
    tasks: Mapping[date, Mapping[Name, TaskDay]]
    costs: Mapping[date, Mapping[Name, CostBlock]]

    @property
    def days(self) -> list[date]:
        """The days that have a result about runs."""
        return sorted(self.runs)


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


def workflow_order(
    window: DayWindow, results: Results, has: Callable[[Name], bool], sort: WorkflowSort
) -> list[Name]:
    """Return the workflows with runs that ended in the window or the one before, sorted.

    ``has``: whether one is asked for. What is not known comes last.
    """
    names = [name for name in set().union(*results.runs.values()) if has(name)]
    values = _values(window, results, sort)

    def place(name: Name) -> tuple[bool, float, Name]:
        value = values.get(name)
        return value is None, -(value or 0.0), name

    return sorted(names, key=place)


def workflow_trend(window: DayWindow, results: Results, name: Name) -> WorkflowTrend:
    """Return one workflow."""
    runs, runs_before = _divided(window, _of(results.runs, name))
    tasks, tasks_before = _divided(window, _of(results.tasks, name))
    costs, costs_before = _divided(window, _of(results.costs, name))
    return WorkflowTrend(
        *name,
        RunValues.of(runs.values(), tasks.values()),
        RunValues.of(runs_before.values(), tasks_before.values()),
        costs_of(block.total for block in costs.values()),
        costs_of(block.total for block in costs_before.values()),
        runs,
    )


def _values(window: DayWindow, results: Results, sort: WorkflowSort) -> Mapping[Name, float | None]:
    """Return by what workflows are sorted: only that, as there may be thousands."""
    if sort is WorkflowSort.COST:
        return _sums(window, results.costs, lambda block: block.total.slot_s)
    if sort is WorkflowSort.FAILURES:
        return _sums(window, results.runs, attrgetter("failed"))
    if sort is WorkflowSort.LATE:
        return _sums(window, results.runs, attrgetter("late"))
    if sort is WorkflowSort.WAITS:
        admission = _means(window, results.runs, "admission_mean")
        queue = _means(window, results.tasks, "wait_mean")
        names = admission.keys() | queue.keys()
        return {name: admission.get(name, 0.0) + queue.get(name, 0.0) for name in names}
    now = _means(window, results.runs, "duration_p50")
    before = _means(window.before, results.runs, "duration_p50")
    return {name: now[name] - before[name] for name in now.keys() & before.keys()}


def _sums(
    window: DayWindow, days: Mapping[date, Mapping[Name, T]], value: Callable[[T], float]
) -> dict[Name, float]:
    found: dict[Name, float] = {}
    for day, values in days.items():
        if window.has(day):
            for name, one in values.items():
                found[name] = found.get(name, 0.0) + value(one)
    return found


def _means(
    window: DayWindow, days: Mapping[date, Mapping[Name, Any]], field: str
) -> dict[Name, float]:
    sums: dict[Name, list[float]] = {}
    get = attrgetter(field)
    for day, values in days.items():
        if not window.has(day):
            continue
        for name, one in values.items():
            value, weight = get(one), one[0]  # the number of runs or attempts
            if value is not None and weight:
                of = sums.setdefault(name, [0.0, 0.0])
                of[0] += value * weight
                of[1] += weight
    return {name: total / weights for name, (total, weights) in sums.items()}


def _of(days: Mapping[date, Mapping[Name, T]], name: Name) -> Iterator[tuple[date, T]]:
    for day, values in days.items():
        if (found := values.get(name)) is not None:
            yield day, found


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
    window: DayWindow, rows: Iterable[tuple[date, tuple[str, str], TaskDay]]
) -> list[TaskTrend]:
    """Return the tasks of one workflow, by (task, type), what has taken longest in all first."""
    by_task: dict[tuple[str, str], list[tuple[date, TaskDay]]] = {}
    for day, name, value in rows:
        by_task.setdefault(name, []).append((day, value))
    found = []
    for name, days in by_task.items():
        now, before = _divided(window, days)
        values = TaskValues.of(now.values()), TaskValues.of(before.values())
        found.append(TaskTrend(*name, *values, now))
    return sorted(found, key=lambda one: (-(one.now.busy_s or 0.0), one.task, one.type))


def _divided(
    window: DayWindow, days: Iterable[tuple[date, T]]
) -> tuple[dict[date, T], dict[date, T]]:
    """Return by day what is of the window, and what is of the window before."""
    found: tuple[dict[date, T], dict[date, T]] = {}, {}
    before = window.before
    for day, value in days:
        if window.has(day):
            found[0][day] = value
        elif before.has(day):
            found[1][day] = value
    return found


def critical_of(rows: Sequence[Mapping[str, float]]) -> Critical:
    """Return several days of a task in ``critical_days`` as one."""
    runs = int(sum(row["runs"] for row in rows))
    of_days = int(sum(row["runs_of_day"] for row in rows))
    weights = [row["runs"] for row in rows]
    gain_sum = added(row["gain_sum_s"] for row in rows)
    return Critical(
        runs=runs,
        runs_of_days=of_days,
        share=rate(runs, of_days),
        own_p50_s=weighted(
            (row["own_p50_s"], weight) for row, weight in zip(rows, weights, strict=True)
        ),
        gain_mean_s=None if gain_sum is None else rate(gain_sum, runs),
        gain_max_s=highest(row["gain_max_s"] for row in rows),
        gain_sum_s=gain_sum,
    )
