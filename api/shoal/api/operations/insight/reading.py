"""Results of days, read once and kept as long as they are the same.

A result does not change without another digest, so a view over four weeks reads the day that is new
and keeps the others. Of a workflow's rows only what views need is kept, of all projects alike: what
a caller may not see is left out of each answer, by ``Seen``.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from shoal.api.web.legible import legible
from shoal.core.access.judging import Visible
from shoal.core.insight.days import RunDay, TaskDay, tasks_of
from shoal.core.insight.windows import Window
from shoal.sql import UnitOfWork
from shoal.sql.errors import UnreadableRow
from shoal.sql.repositories.insight.rollups import RollupBlock, RollupDay
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


def run_day(rows: Rows) -> RunDay:
    """Return what is kept of ``workflow_days``."""
    [row] = rows
    return _checked(RunDay.of(row))


def task_day(rows: Rows) -> TaskDay:
    """Return what is kept of ``task_days``: all tasks as one."""
    return _checked(tasks_of(TaskDay.of(row) for row in rows))


def _checked(day: D) -> D:
    """Return what is kept, if it has numbers alone. Raises TypeError."""
    sum(value for value in day if value is not None and not isinstance(value, tuple))
    return day


class DayCache:
    """What is kept of results, by job and day. One per process."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._count = 0
        self._kept: OrderedDict[tuple[str, date], tuple[str, dict[Name, Any]]] = OrderedDict()
        self._parts: dict[tuple[str, date], tuple[str, dict[Name, Any]]] = {}

    async def days(
        self, uow: UnitOfWork, job: str, window: Window, keep: Callable[[Rows], T]
    ) -> dict[date, dict[Name, T]]:
        """Return what is kept of each day of a window that has a result, of all projects."""
        found: dict[date, dict[Name, T]] = {}
        for result in await uow.rollups.days(job):
            if not window.has(result.day):
                continue
            key = (job, result.day)
            digest, values = self._kept.get(key, ("", {}))
            if digest != result.digest:
                blocks = await uow.rollups.blocks(job, result.day, result.day, None)
                kept = await asyncio.to_thread(_kept_of, blocks, job, keep)
                values = {name: value for _, name, value in kept}
                self._put(key, result.digest, values)
            else:
                self._kept.move_to_end(key)
            found[result.day] = values
        return found

    async def asked(
        self,
        uow: UnitOfWork,
        job: str,
        window: Window,
        which: Seen,
        keep: Callable[[Rows], T],
    ) -> dict[date, dict[Name, T]]:
        """Return what an answer is made from: all of each day, unless it is of one workflow."""
        if which.project is None or which.workflow is None:
            return await self.days(uow, job, window, keep)
        name = (which.project, which.workflow)
        return await self.of(uow, job, window, [name] if which.has(name) else [], keep)

    async def of(
        self,
        uow: UnitOfWork,
        job: str,
        window: Window,
        names: Collection[Name],
        keep: Callable[[Rows], T],
    ) -> dict[date, dict[Name, T]]:
        """Return what is kept of some workflows, for each day of a window that has a result.

        Of days that were not read as a whole these workflows alone are read, in one statement.
        """
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
            for day, name, value in await asyncio.to_thread(_kept_of, some, job, keep):
                parts[day][name] = value
        for day, part in parts.items():
            kept = ((name, part.get(name)) for name in names)
            found[day] = {name: value for name, value in kept if value is not None}
        return found

    def _part(self, job: str, result: RollupDay) -> dict[Name, Any]:
        """Return what was read of some workflows of a day; None: there was nothing of one."""
        if sum(len(part) for _, part in self._parts.values()) > self._most // 4:
            self._parts.clear()
        digest, part = self._parts.get((job, result.day), ("", {}))
        if digest != result.digest:
            part = {}
            self._parts[job, result.day] = (result.digest, part)
        return part

    def forget(self) -> None:
        """Keep nothing, as if the process had just begun."""
        self._kept.clear()
        self._parts.clear()
        self._count = 0

    def _put(self, key: tuple[str, date], digest: str, values: dict[Name, Any]) -> None:
        _, former = self._kept.pop(key, ("", {}))
        self._kept[key] = (digest, values)
        self._count += len(values) - len(former)
        while self._count > self._most and len(self._kept) > 1:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._count -= len(oldest)


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
    days: Mapping[date, Mapping[Name, T]], which: Seen
) -> Iterator[tuple[date, list[tuple[Name, T]]]]:
    """Yield what the answer is about, day by day."""
    for day, values in days.items():
        if which == _EVERYTHING:
            yield day, [*values.items()]
        else:
            yield day, [one for one in values.items() if which.has(one[0])]


_EVERYTHING = Seen(None)


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

    def of_block(rows: Rows) -> list[T]:
        return [keep(row) for row in rows]

    return [
        (day, name, value)
        for day, name, values in _kept_of(blocks, job, of_block)
        for value in values
    ]
