"""Views over the days of a window and of the one before it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from shoal.api.operations.insight.reading import (
    CostBlock,
    DayCache,
    Name,
    Seen,
    cost_block,
    of_seen,
    rows_of,
    run_day,
    task_day,
)
from shoal.core.access.judging import Visible
from shoal.core.insight.costs import CostBy, CostGroup, CostName, cost_groups
from shoal.core.insight.days import Cost, TaskDay, costs_of
from shoal.core.insight.failures import FailureDay, FailureGroup, failure_groups
from shoal.core.insight.trends import (
    Critical,
    TaskTrend,
    Totals,
    WorkflowSort,
    WorkflowTrend,
    critical_of,
    task_trends,
    workflow_trends,
)
from shoal.core.insight.windows import Window
from shoal.sql import UnitOfWork

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Summary:
    """Totals of a window, of the one before, and of each day. ``there``: days with results."""

    there: Sequence[date]
    total: Totals
    before: Totals
    daily: Mapping[date, Totals]


@dataclass(frozen=True)
class Workflows:
    """Workflows, sorted."""

    there: Sequence[date]
    trends: Sequence[WorkflowTrend]


@dataclass(frozen=True)
class Tasks:
    """The tasks of one workflow. ``critical``, ``flapping``: by task."""

    there: Sequence[date]
    trends: Sequence[TaskTrend]
    critical: Mapping[str, Critical]
    flapping: Mapping[str, Row]


@dataclass(frozen=True)
class Costs:
    """What was used, in all and by name."""

    there: Sequence[date]
    total: Cost
    before: Cost
    groups: Sequence[CostGroup]


_NO_TOTALS = Totals.of((), ())
#: What there is without results.
NO_SUMMARY = Summary((), _NO_TOTALS, _NO_TOTALS, {})
NO_WORKFLOWS = Workflows((), ())
NO_TASKS = Tasks((), (), {}, {})
NO_COSTS = Costs((), Cost(), Cost(), ())
NO_FAILURES: tuple[Sequence[date], Sequence[FailureGroup]] = ((), ())


def both(window: Window) -> Window:
    """Return the window together with the one before it."""
    return Window(window.before.first, window.last)


async def days_there(uow: UnitOfWork, job: str, window: Window) -> list[date]:
    """Return the days of a window, and of the one before, that have a result of a job."""
    results = await uow.rollups.days(job)
    return [one.day for one in results if both(window).has(one.day)]


async def summary(uow: UnitOfWork, cache: DayCache, window: Window, which: Seen) -> Summary:
    """Return the totals."""
    runs = await cache.days(uow, "workflow_days", both(window), run_day)
    tasks = await cache.days(uow, "task_days", both(window), task_day)

    def made() -> Summary:
        run_days = [*of_seen(runs, which)]
        task_days = [*of_seen(tasks, which)]

        def of(days: Window) -> Totals:
            return Totals.of(
                (run for day, _, run in run_days if days.has(day)),
                (task for day, _, task in task_days if days.has(day)),
            )

        there = sorted(runs.keys() | tasks.keys())
        daily = {day: of(Window(day, day)) for day in there if window.has(day)}
        return Summary(there, of(window), of(window.before), daily)

    return await asyncio.to_thread(made)


async def workflows(
    uow: UnitOfWork, cache: DayCache, window: Window, which: Seen, sort: WorkflowSort
) -> Workflows:
    """Return the workflows of a window."""
    runs = await cache.days(uow, "workflow_days", both(window), run_day)
    tasks = await cache.days(uow, "task_days", both(window), task_day)
    costs = await cache.days(uow, "costs", both(window), cost_block)

    def made() -> list[WorkflowTrend]:
        used = ((day, name, block.total) for day, name, block in of_seen(costs, which))
        return workflow_trends(window, of_seen(runs, which), of_seen(tasks, which), used, sort)

    trends = await asyncio.to_thread(made)
    return Workflows(sorted(runs.keys() | tasks.keys()), trends)


async def predictions(uow: UnitOfWork, names: Sequence[Name]) -> dict[Name, Row]:
    """Return how good the baselines of some workflows were, from the newest result."""
    newest = await uow.rollups.newest("baseline_errors") if names else None
    if newest is None:
        return {}
    blocks = await uow.rollups.of_workflows("baseline_errors", newest.day, names)
    return {(one.project, one.workflow): row for one in blocks for row in one.rows}


async def tasks(
    uow: UnitOfWork, window: Window, visible: Visible, project: str, workflow: str
) -> Tasks:
    """Return the tasks of a workflow; nothing of one that is not visible."""
    whole = both(window)
    where = (visible, project, workflow)
    rows = await rows_of(uow, "task_days", whole, *where, _named_task)
    paths = await rows_of(uow, "critical_days", window, *where, _critical)
    there = await days_there(uow, "task_days", window)
    flapping = []
    if (newest := await uow.rollups.newest("flapping")) is not None:
        days = Window(newest.day, newest.day)
        flapping = await rows_of(uow, "flapping", days, *where, _of_task)
    trends = task_trends(window, ((day, *named) for day, _, named in rows))
    by_task: dict[str, list[Row]] = {}
    for _, _, (task, row) in paths:
        by_task.setdefault(task, []).append(row)
    return Tasks(
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
    uow: UnitOfWork, window: Window, visible: Visible, project: str | None, workflow: str | None
) -> tuple[Sequence[date], Sequence[FailureGroup]]:
    """Return the days that have results, and the groups of failures."""
    rows = await rows_of(uow, "failures", window, visible, project, workflow, FailureDay.of)
    there = await days_there(uow, "failures", window)
    return there, await asyncio.to_thread(failure_groups, rows)


def _task_cost(row: Row) -> tuple[str, str, Cost]:
    return row["task"], row["label"], Cost.of(row)


async def costs(
    uow: UnitOfWork, cache: DayCache, window: Window, which: Seen, by: CostBy, visible: Visible
) -> Costs:
    """Return what was used. By task it reads the rows of what ``which`` names."""
    whole = both(window)
    days = await cache.days(uow, "costs", whole, cost_block)
    by_task = []
    if by is CostBy.TASK:
        where = (visible, which.project, which.workflow)
        by_task = await rows_of(uow, "costs", whole, *where, _task_cost)

    def named() -> list[tuple[date, CostName, Cost]]:
        if by is CostBy.TASK:
            return [
                (day, (*name, task), cost)
                for day, name, (task, label, cost) in by_task
                if label == "" and which.has(name)
            ]
        found: list[tuple[date, CostName, Cost]] = []
        block: CostBlock
        for day, name, block in of_seen(days, which):
            match by:
                case CostBy.PROJECT:
                    found.append((day, name[:1], block.total))
                case CostBy.WORKFLOW:
                    found.append((day, name, block.total))
                case _:
                    found += [(day, label, cost) for label, cost in block.labels.items()]
        return found

    def made() -> Costs:
        used = [(day, block.total) for day, _, block in of_seen(days, which)]
        total = costs_of(cost for day, cost in used if window.has(day))
        before = costs_of(cost for day, cost in used if window.before.has(day))
        return Costs(sorted(days), total, before, cost_groups(window, named(), total))

    return await asyncio.to_thread(made)
