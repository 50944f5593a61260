"""Results of days, read once and kept as long as they are the same.

A result does not change without another digest, so a view over four weeks reads the day that is new
and keeps the others. Of a workflow's rows only what views need is kept, of all projects alike: what
a caller may not see is left out of each answer, by ``WorkflowScope``.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from shoal.api.web.answers import legible
from shoal.core.access.authorization import Visible
from shoal.core.insight.aggregates import Aggregation, Name, Rows, Values
from shoal.core.insight.days import CostBlock
from shoal.core.insight.windows import DayWindow
from shoal.sql import UnitOfWork
from shoal.sql.errors import UnreadableRow
from shoal.sql.repositories.insight.rollups import RollupBlock, RollupDay
from shoal.sql.statements.rows import leave_out

T = TypeVar("T")

MOST_KEPT = 250_000  # values of workflows; some 550 bytes each, and half of that for each label


@dataclass(frozen=True)
class WorkflowScope:
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
) -> WorkflowScope:
    """Return which workflows an answer is about: ``visible`` are ids of projects; None: all."""
    names = None if visible is None else await uow.projects.names(visible)
    return WorkflowScope(names, project, workflow)


class DayCache:
    """What is kept of results, by job and day. One per process."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._count = 0
        self._kept: OrderedDict[tuple[str, date], tuple[str, dict[Name, Any]]] = OrderedDict()
        self._parts: dict[tuple[str, date], tuple[str, dict[Name, Any]]] = {}
        self._parts_count = 0

    async def days(
        self, uow: UnitOfWork, aggregation: Aggregation[T], window: DayWindow
    ) -> dict[date, dict[Name, T]]:
        """Return what is kept of each day of a window that has a result, of all projects."""
        found: dict[date, dict[Name, T]] = {}
        for result in await uow.rollups.days(aggregation.job):
            if not window.has(result.day):
                continue
            key = (aggregation.job, result.day)
            digest, values = self._kept.get(key, ("", {}))
            if digest != result.digest:
                values = await _whole_day(uow, aggregation, result.day)
                self._put(key, result.digest, values)
            else:
                self._kept.move_to_end(key)
            found[result.day] = values
        return found

    async def asked(
        self, uow: UnitOfWork, aggregation: Aggregation[T], window: DayWindow, which: WorkflowScope
    ) -> dict[date, dict[Name, T]]:
        """Return what an answer is made from: all of each day, unless it is of one workflow."""
        if which.project is None or which.workflow is None:
            return await self.days(uow, aggregation, window)
        name = (which.project, which.workflow)
        return await self.of(uow, aggregation, window, [name] if which.has(name) else [])

    async def of(
        self,
        uow: UnitOfWork,
        aggregation: Aggregation[T],
        window: DayWindow,
        names: Collection[Name],
    ) -> dict[date, dict[Name, T]]:
        """Return what is kept of some workflows, for each day of a window that has a result.

        Of days that were not read as a whole these workflows alone are read, in one statement.
        """
        job = aggregation.job
        found: dict[date, dict[Name, T]] = {}
        parts: dict[date, dict[Name, T | None]] = {}
        for result in await uow.rollups.days(job):
            if window.has(result.day):
                digest, values = self._kept.get((job, result.day), ("", {}))
                found[result.day] = {name: values[name] for name in names if name in values}
                if digest != result.digest:
                    parts[result.day] = self._part(job, result)
        missing = {name for part in parts.values() for name in names if name not in part}
        if missing:
            first, last = min(parts), max(parts)
            blocks = await uow.rollups.of_workflows(job, first, missing, last)
            some = [block for block in blocks if block.day in parts]
            for part in parts.values():
                part.update(dict.fromkeys(missing))
                self._parts_count += len(missing)
            for day, name, value in await asyncio.to_thread(_kept_of, some, job, aggregation.of):
                parts[day][name] = value
                self._parts_count += _labels([value])
        for day, part in parts.items():
            kept = ((name, part.get(name)) for name in names)
            found[day] = {name: value for name, value in kept if value is not None}
        return found

    def _part(self, job: str, result: RollupDay) -> dict[Name, Any]:
        """Return what was read of some workflows of a day; None: there was nothing of one."""
        if self._parts_count > self._most // 4:
            self._parts.clear()
            self._parts_count = 0
        digest, part = self._parts.get((job, result.day), ("", {}))
        if digest != result.digest:
            part = {}
            self._parts[job, result.day] = (result.digest, part)
        return part

    def forget(self) -> None:
        """Keep nothing, as if the process had just begun."""
        self._kept.clear()
        self._parts.clear()
        self._count = self._parts_count = 0

    def _put(self, key: tuple[str, date], digest: str, values: dict[Name, Any]) -> None:
        _, former = self._kept.pop(key, ("", {}))
        self._kept[key] = (digest, values)
        self._count += _size(values) - _size(former)
        while self._count > self._most and len(self._kept) > 1:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._count -= _size(oldest)


def _size(values: Mapping[Name, Any]) -> int:
    return len(values) + _labels(values.values())


def _labels(values: Iterable[Any]) -> int:
    """Return how many values the labels of costs are worth: a workflow may have thousands."""
    return sum(len(one.labels) for one in values if isinstance(one, CostBlock)) // 2


async def _whole_day(uow: UnitOfWork, aggregation: Aggregation[T], day: date) -> dict[Name, T]:
    """Return what is kept of a result: its aggregates, or without them what its rows tell."""
    parts = await uow.rollups.aggregates(aggregation.job, day)
    if parts is not None:
        stored = await asyncio.to_thread(_stored, parts, aggregation, day)
        if stored is not None:
            return stored
    blocks = await uow.rollups.blocks(aggregation.job, day, day, None)
    kept = await asyncio.to_thread(_kept_of, blocks, aggregation.job, aggregation.of)
    return {name: value for _, name, value in kept}


def _stored(
    parts: Sequence[Sequence[Values]], aggregation: Aggregation[T], day: date
) -> dict[Name, T] | None:
    try:
        with legible("roll-up", f"aggregates of {aggregation.job} of {day}"):
            return aggregation.values(parts)
    except UnreadableRow as error:
        leave_out(error)
        return None


def _kept_of(
    blocks: Iterable[RollupBlock], job: str, keep: Callable[[Rows], T]
) -> list[tuple[date, Name, T]]:
    found = []
    for block in blocks:
        name = (block.project, block.workflow)
        try:
            with legible("roll-up", f"{job} of {block.day}, {'/'.join(name)}"):
                found.append((block.day, name, keep(block.rows)))
        except UnreadableRow as error:
            leave_out(error)
    return found


def of_seen(
    days: Mapping[date, Mapping[Name, T]], which: WorkflowScope
) -> dict[date, Mapping[Name, T]]:
    """Return what the answer is about, by day."""
    if which == _EVERYTHING:
        return dict(days)
    return {
        day: {name: one for name, one in values.items() if which.has(name)}
        for day, values in days.items()
    }


_EVERYTHING = WorkflowScope(None)


async def rows_of(
    uow: UnitOfWork,
    job: str,
    window: DayWindow,
    visible: Visible,
    project: str | None,
    workflow: str | None,
    keep: Callable[[Mapping[str, Any]], T],
) -> list[tuple[date, Name, T]]:
    """Return what is kept of each row of a window, of projects that are visible."""
    blocks = await uow.rollups.blocks(job, window.first, window.last, visible, project, workflow)

    def of_block(rows: Rows) -> list[T]:
        return [keep(row) for row in rows]

    return [
        (day, name, value)
        for day, name, values in _kept_of(blocks, job, of_block)
        for value in values
    ]
