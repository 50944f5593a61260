"""Views over the days of a window and of the one before it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from shoal.api.operations.insight.day_results import (
    DayCache,
    WorkflowScope,
    of_seen,
    rows_of,
)
from shoal.core.access.authorization import Visible
from shoal.core.insight.aggregates import COSTS, RUN_DAYS, TASK_DAYS, Name
from shoal.core.insight.costs import CostBy, CostGroup, CostName, Named, cost_groups
from shoal.core.insight.days import Cost, CostBlock, TaskDay, costs_of
from shoal.core.insight.failures import FailureDay, FailureGroup, failure_groups
from shoal.core.insight.trends import (
    Critical,
    Results,
    TaskTrend,
    Totals,
    WorkflowSort,
    WorkflowTrend,
    critical_of,
    task_trends,
    workflow_order,
    workflow_trend,
)
from shoal.core.insight.windows import DayWindow
from shoal.sql import UnitOfWork

Row = Mapping[str, Any]


@dataclass(frozen=True)
class WindowSummary:
    """Totals of a window, of the one before, and of each day. ``there``: days with results."""

    there: Sequence[date]
    total: Totals
    before: Totals
    daily: Mapping[date, Totals]


@dataclass(frozen=True)
class WindowWorkflows:
    """Workflows, by their names in the order that was asked for."""

    there: Sequence[date]
    results: Results
    order: Sequence[Name]


@dataclass(frozen=True)
class WindowTasks:
    """The tasks of one workflow. ``critical``, ``flapping``: by task."""

    there: Sequence[date]
    trends: Sequence[TaskTrend]
    critical: Mapping[str, Critical]
    flapping: Mapping[str, Row]


@dataclass(frozen=True)
class WindowCosts:
    """What was used, in all and by name."""

    there: Sequence[date]
    total: Cost
    before: Cost
    groups: Sequence[CostGroup]


_NO_TOTALS = Totals.of((), ())
#: What there is without results.
NO_SUMMARY = WindowSummary((), _NO_TOTALS, _NO_TOTALS, {})
NO_WORKFLOWS = WindowWorkflows((), Results({}, {}, {}), ())
NO_TASKS = WindowTasks((), (), {}, {})
NO_COSTS = WindowCosts((), Cost(), Cost(), ())
NO_FAILURES: tuple[Sequence[date], Sequence[FailureGroup]] = ((), ())


def both(window: DayWindow) -> DayWindow:
    """Return the window together with the one before it."""
    return DayWindow(window.before.first, window.last)


async def days_there(uow: UnitOfWork, job: str, window: DayWindow) -> list[date]:
    """Return the days of a window, and of the one before, that have a result of a job."""
    results = await uow.rollups.days(job)
    return [one.day for one in results if both(window).has(one.day)]


async def summary(
    uow: UnitOfWork, cache: DayCache, window: DayWindow, which: WorkflowScope
) -> WindowSummary:
    """Return the totals."""
    runs = await cache.asked(uow, RUN_DAYS, both(window), which)
    tasks = await cache.asked(uow, TASK_DAYS, both(window), which)

    def made() -> WindowSummary:
        run_days = {day: some.values() for day, some in of_seen(runs, which).items()}
        task_days = {day: some.values() for day, some in of_seen(tasks, which).items()}

        def of(days: DayWindow) -> Totals:
            return Totals.of(
                (one for day, some in run_days.items() if days.has(day) for one in some),
                (one for day, some in task_days.items() if days.has(day) for one in some),
            )

        there = sorted(runs.keys() | tasks.keys())
        daily = {day: of(DayWindow(day, day)) for day in there if window.has(day)}
        return WindowSummary(there, of(window), of(window.before), daily)

    return await asyncio.to_thread(made)


async def workflows(
    uow: UnitOfWork, cache: DayCache, window: DayWindow, which: WorkflowScope, sort: WorkflowSort
) -> WindowWorkflows:
    """Return the workflows of a window."""
    whole = both(window)
    results = Results(await cache.asked(uow, RUN_DAYS, whole, which), {}, {})
    if sort is WorkflowSort.WAITS:
        results = replace(results, tasks=await cache.asked(uow, TASK_DAYS, whole, which))
    if sort is WorkflowSort.COST:
        results = replace(results, costs=await cache.asked(uow, COSTS, whole, which))
    order = await asyncio.to_thread(workflow_order, window, results, which.has, sort)
    return WindowWorkflows(results.days, results, order)


async def trends(
    uow: UnitOfWork,
    cache: DayCache,
    window: DayWindow,
    found: WindowWorkflows,
    names: Sequence[Name],
) -> list[WorkflowTrend]:
    """Return some of the workflows, with their tasks and what they cost."""
    whole = both(window)
    results = replace(
        found.results,
        tasks=await cache.of(uow, TASK_DAYS, whole, names),
        costs=await cache.of(uow, COSTS, whole, names),
    )
    return [workflow_trend(window, results, name) for name in names]


async def predictions(uow: UnitOfWork, names: Sequence[Name]) -> dict[Name, Row]:
    """Return how good the baselines of some workflows were, from the newest result."""
    newest = await uow.rollups.newest("baseline_errors") if names else None
    if newest is None:
        return {}
    blocks = await uow.rollups.of_workflows("baseline_errors", newest.day, names)
    return {(one.project, one.workflow): row for one in blocks for row in one.rows}


async def tasks(
    uow: UnitOfWork, window: DayWindow, visible: Visible, project: str, workflow: str
) -> WindowTasks:
    """Return the tasks of a workflow; nothing of one that is not visible."""
    whole = both(window)
    where = (visible, project, workflow)
    rows = await rows_of(uow, "task_days", whole, *where, _named_task)
    paths = await rows_of(uow, "critical_days", window, *where, _critical)
    there = await days_there(uow, "task_days", window)
    flapping = []
    if (newest := await uow.rollups.newest("flapping")) is not None:
        days = DayWindow(newest.day, newest.day)
        flapping = await rows_of(uow, "flapping", days, *where, _of_task)
    trends = task_trends(window, ((day, *named) for day, _, named in rows))
    by_task: dict[str, list[Row]] = {}
    for _, _, (task, row) in paths:
        by_task.setdefault(task, []).append(row)
    return WindowTasks(
        there,
        trends,
        {task: critical_of(some) for task, some in by_task.items()},
        {task: row for _, _, (task, row) in flapping},
    )


def _named_task(row: Row) -> tuple[tuple[str, str], TaskDay]:
    return (row["task"], row["type"]), TaskDay.of(row)


def _of_task(row: Row) -> tuple[str, Row]:
    return row["task"], row


def _critical(row: Row) -> tuple[str, Row]:
    critical_of([row])  # what cannot be read shows now, and only its workflow lacks it
    return _of_task(row)


async def failures(
    uow: UnitOfWork, window: DayWindow, visible: Visible, project: str | None, workflow: str | None
) -> tuple[Sequence[date], Sequence[FailureGroup]]:
    """Return the days that have results, and the groups of failures."""
    rows = await rows_of(uow, "failures", window, visible, project, workflow, FailureDay.of)
    there = await days_there(uow, "failures", window)
    return there, await asyncio.to_thread(failure_groups, rows)


def _task_cost(row: Row) -> tuple[str, str, Cost]:
    return row["task"], row["label"], Cost.of(row)


async def costs(
    uow: UnitOfWork,
    cache: DayCache,
    window: DayWindow,
    which: WorkflowScope,
    by: CostBy,
    visible: Visible,
) -> WindowCosts:
    """Return what was used. By task it reads the rows of what ``which`` names."""
    whole = both(window)
    days = await cache.asked(uow, COSTS, whole, which)
    tasks: dict[date, list[tuple[CostName, Cost]]] = {}
    if by is CostBy.TASK:
        where = (visible, which.project, which.workflow)
        rows = await rows_of(uow, "costs", whole, *where, _task_cost)
        for day, name, (task, label, cost) in rows:
            if label == "" and which.has(name):
                tasks.setdefault(day, []).append(((*name, task), cost))

    def made() -> WindowCosts:
        used = of_seen(days, which)

        def of(some: DayWindow) -> Cost:
            blocks = (block for day in used if some.has(day) for block in used[day].values())
            return costs_of(block.total for block in blocks)

        total, before = of(window), of(window.before)
        named = tasks if by is CostBy.TASK else {day: _named(by, used[day]) for day in used}
        return WindowCosts(sorted(days), total, before, cost_groups(window, named, total))

    return await asyncio.to_thread(made)


def _named(by: CostBy, some: Mapping[Name, CostBlock]) -> Named:
    """Return what a day has used by name; not by task."""
    match by:
        case CostBy.PROJECT:
            return ((name[:1], block.total) for name, block in some.items())
        case CostBy.WORKFLOW:
            return ((name, block.total) for name, block in some.items())
        case _:
            return (one for block in some.values() for one in block.labels.items())
