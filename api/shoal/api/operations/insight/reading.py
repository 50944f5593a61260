"""Results of days, read once and kept as long as they are the same.

A result does not change without another digest, so a view over four weeks reads the day that is new
and keeps the others. Of a workflow's rows only what views need is kept, of all projects alike: what
a caller may not see is left out of each answer, by ``Seen``.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any, TypeVar

from shoal.api.web.legible import legible
from shoal.core.access.judging import Visible
from shoal.core.insight.days import Cost, RunDay, TaskDay, costs_of, tasks_of
from shoal.core.insight.windows import Window
from shoal.sql import UnitOfWork
from shoal.sql.errors import UnreadableRow
from shoal.sql.repositories.insight.rollups import RollupBlock
from shoal.sql.statements.reading import leave_out

T = TypeVar("T")
D = TypeVar("D", RunDay, TaskDay)
Name = tuple[str, str]  # project and workflow
Rows = Sequence[Mapping[str, Any]]

MOST_KEPT = 200_000  # values of workflows; some 500 bytes each


@dataclass(frozen=True)
class Seen:
    """Which workflows an answer is about. ``projects``: those the caller may see; None: all."""

    projects: frozenset[str] | None
    project: str | None = None
    workflow: str | None = None

    def has(self, name: Name) -> bool:
        """Whether the answer may, and should, have it."""
        return (
            (self.projects is None or name[0] in self.projects)
            and self.project in (None, name[0])
            and self.workflow in (None, name[1])
        )


async def seen(
    uow: UnitOfWork, visible: Visible, project: str | None, workflow: str | None = None
) -> Seen:
    """Return which workflows an answer is about: ``visible`` are ids of projects; None: all."""
    names = None if visible is None else await uow.projects.names(visible)
    return Seen(names, project, workflow)


@dataclass(frozen=True)
class CostBlock:
    """What a workflow has used on a day. ``labels``: of the runs that had them."""

    total: Cost
    labels: Mapping[tuple[str, str], Cost]


def run_day(rows: Rows) -> RunDay:
    """Return what is kept of ``workflow_days``."""
    [row] = rows
    return _checked(RunDay.of(row))


def task_day(rows: Rows) -> TaskDay:
    """Return what is kept of ``task_days``: all tasks as one."""
    return _checked(tasks_of(TaskDay.of(row) for row in rows))


def cost_block(rows: Rows) -> CostBlock:
    """Return what is kept of ``costs``."""
    labels: dict[tuple[str, str], list[Cost]] = {}
    for row in rows:
        labels.setdefault((row["label"], row["value"]), []).append(Cost.of(row))
    total = costs_of(labels.pop(("", ""), ()))
    return CostBlock(total, {label: costs_of(some) for label, some in labels.items()})


def _checked(day: D) -> D:
    """Return what is kept, if it has numbers alone. Raises TypeError."""
    sum(value for value in day if value is not None and not isinstance(value, tuple))
    return day


class DayCache:
    """What is kept of results, by job and day. One per process."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._count = 0
        self._kept: OrderedDict[tuple[str, date], tuple[str, list[tuple[Name, Any]]]] = (
            OrderedDict()
        )

    async def days(
        self, uow: UnitOfWork, job: str, window: Window, keep: Callable[[Rows], T]
    ) -> dict[date, list[tuple[Name, T]]]:
        """Return what is kept of each day of a window that has a result, of all projects."""
        found: dict[date, list[tuple[Name, T]]] = {}
        for result in await uow.rollups.days(job):
            if not window.has(result.day):
                continue
            key = (job, result.day)
            digest, values = self._kept.get(key, ("", []))
            if digest != result.digest:
                blocks = await uow.rollups.blocks(job, result.day, result.day, None)
                values = await asyncio.to_thread(_kept_of, blocks, job, keep)
                self._put(key, result.digest, values)
            else:
                self._kept.move_to_end(key)
            found[result.day] = values
        return found

    def _put(self, key: tuple[str, date], digest: str, values: list[tuple[Name, Any]]) -> None:
        _, former = self._kept.pop(key, ("", []))
        self._kept[key] = (digest, values)
        self._count += len(values) - len(former)
        while self._count > self._most and len(self._kept) > 1:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._count -= len(oldest)


def _kept_of(
    blocks: Iterable[RollupBlock], job: str, keep: Callable[[Rows], T]
) -> list[tuple[Name, T]]:
    found = []
    for block in blocks:
        name = (block.project, block.workflow)
        try:
            with legible("roll-up", f"{job} of {block.day}, {'/'.join(name)}"):
                found.append((name, keep(block.rows)))
        except UnreadableRow as error:
            leave_out(error)
    return found


def of_seen(
    days: Mapping[date, Iterable[tuple[Name, T]]], which: Seen
) -> Iterator[tuple[date, Name, T]]:
    """Yield what the answer is about."""
    for day, values in days.items():
        for name, value in values:
            if which.has(name):
                yield day, name, value


async def rows_of(
    uow: UnitOfWork,
    job: str,
    window: Window,
    visible: Visible,
    project: str | None,
    workflow: str | None,
    keep: Callable[[Mapping[str, Any]], T],
) -> list[tuple[date, Name, T]]:
    """Return what is kept of each row of a window, of projects that are visible."""
    blocks = await uow.rollups.blocks(job, window.first, window.last, visible, project, workflow)
    by_day = {day: [*some] for day, some in groupby(blocks, key=lambda one: one.day)}

    def of_block(rows: Rows) -> list[T]:
        return [keep(row) for row in rows]

    return [
        (day, name, value)
        for day, some in by_day.items()
        for name, values in _kept_of(some, job, of_block)
        for value in values
    ]
