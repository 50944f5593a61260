"""Roll-ups, as readers see them: the rows of one batch for each job and day.

A batch counts as a whole, or not at all: each method is one statement for each of its answers, so
it sees a day as it was before or after a change, never in between.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Row, Select, Text, or_, select, tuple_, type_coerce

from shoal.core.access.authorization import Visible
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.repositories.insight.batches import ARE_AGGREGATES
from shoal.sql.schema.tables import project as projects
from shoal.sql.schema.tables import rollup, rollup_day
from shoal.sql.statements.rows import (
    OnUnreadable,
    leave_out,
    readable,
    refuse,
    require_numbers,
)
from shoal.sql.statements.value_sets import Among, AmongPairs, numbers, pairs

_D, _R = rollup_day.c, rollup.c
_PAIRS_PER_QUERY = 500
_AT_ONCE = 200  # blocks that are read in the event loop's own thread
_DAYS = select(_D.job, _D.day, _D.rows, _D.digest, _D.stored_at).order_by(_D.day.desc(), _D.job)
_BLOCKS = (
    # As its text: this reads JSON five times as fast as what columns of JSON are read with.
    select(_D.day, _R.project, _R.workflow, _R.place, type_coerce(_R.body, Text).label("body"))
    .select_from(rollup_day.join(rollup, _R.batch == _D.batch))
    .where(_R.place >= 0)
    .order_by(_D.day, _R.project, _R.workflow, _R.place)
)
_AGGREGATES = (
    select(_D.day, type_coerce(_R.body, Text).label("body"))
    .select_from(rollup_day.join(rollup, _R.batch == _D.batch))
    .where(ARE_AGGREGATES)
    .order_by(_R.place.desc())
)


@dataclass(frozen=True)
class RollupDay:
    """A result that there is. ``digest``: the SHA-256 of its file."""

    job: str
    day: date
    rows: int
    digest: str
    stored_at: datetime


@dataclass(frozen=True)
class RollupBlock:
    """All rows of a workflow in one result; of what is of no project, both names are empty.

    A row has the columns of the job (``docs/insight.md``) but for day, project and workflow. Times
    are ISO 8601 with Z, days are ISO 8601, numbers are numbers, NULL is None.
    """

    day: date
    project: str
    workflow: str
    rows: Sequence[Mapping[str, Any]]


class Rollups:
    """Reads ``rollup_day`` and ``rollup``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def days(self, job: str | None = None) -> list[RollupDay]:
        """Return the results that there are, of one job or of all, the newest day first."""
        query = _DAYS if job is None else _DAYS.where(_D.job == job)
        return readable(await self._connection.rows(query), _day, "roll-up", leave_out, "day")

    async def newest(self, job: str) -> RollupDay | None:
        """Return the newest result of a job; None: there is none."""
        row = await self._connection.first(_DAYS.where(_D.job == job).limit(1))
        return None if row is None else readable([row], _day, "roll-up", key="day")[0]

    async def blocks(
        self,
        job: str,
        first: date,
        last: date,
        visible: Visible,
        project: str | None = None,
        workflow: str | None = None,
    ) -> list[RollupBlock]:
        """Return the results of workflows for some days, by day, project and workflow.

        Both days are included. Only of projects whose ids are visible, None: of all, also those
        that were deleted since; of one project or workflow if these are named.
        """
        query = _between(job, first, last).where(_R.project != "")
        values: dict[str, Any] = {}
        if visible is not None:
            names = select(projects.c.name).where(Among(projects.c.id, numbers("visible")))
            query = query.where(_R.project.in_(names))
            values["visible"] = sorted(visible)
        if project is not None:
            query = query.where(_R.project == project)
        if workflow is not None:
            query = query.where(_R.workflow == workflow)
        return await self._blocks(query, values, leave_out)

    async def of_workflows(
        self,
        job: str,
        first: date,
        names: Collection[tuple[str, str]],
        last: date | None = None,
    ) -> list[RollupBlock]:
        """Return the results of workflows for a day, or up to another one, which is included.

        ``names`` are of project and workflow.
        """
        query = _between(job, first, last or first).where(
            AmongPairs(_R.project, _R.workflow, pairs("names"))
        )
        found: list[RollupBlock] = []
        for some in batched(sorted(set(names)), _PAIRS_PER_QUERY):
            found += await self._blocks(query, {"names": some}, leave_out)
        return found

    async def aggregates(self, job: str, day: date) -> list[Any] | None:
        """Return the aggregates of a result, in parts; None: there are none, or they are damaged.

        A part has the names of its columns, and then a list of values for each row.
        """
        query = _AGGREGATES.where(_D.job == job, _D.day == day.isoformat())
        rows = await self._connection.rows(query)
        if not rows:
            return None
        parts = await asyncio.to_thread(
            readable, rows, _aggregates, "aggregates of a roll-up", leave_out, "day"
        )
        return parts if len(parts) == len(rows) else None

    async def names(
        self,
        job: str,
        day: date,
        visible: Visible,
        limit: int,
        *,
        with_cluster: bool,
        project: str | None = None,
        after: tuple[str, str] | None = None,
    ) -> list[tuple[str, str]]:
        """Return the project and workflow of so many blocks of a result, in their order.

        ``with_cluster``: also of what is of no project, whose names are empty; ``after``: of those
        behind.
        """
        query = (
            select(_R.project, _R.workflow)
            .select_from(rollup_day.join(rollup, _R.batch == _D.batch))
            .where(_D.job == job, _D.day == day.isoformat(), _R.place == 0)
            .order_by(_R.project, _R.workflow)
            .limit(limit)
        )
        values: dict[str, Any] = {}
        if visible is not None:
            seen = select(projects.c.name).where(Among(projects.c.id, numbers("visible")))
            query = query.where(or_(_R.project == "", _R.project.in_(seen)))
            values["visible"] = sorted(visible)
        if not with_cluster:
            query = query.where(_R.project != "")
        if project is not None:
            query = query.where(_R.project == project)
        if after is not None:
            query = query.where(tuple_(_R.project, _R.workflow) > tuple_(*after))
        rows = await self._connection.rows(query, values)
        return [(row.project, row.workflow) for row in rows]

    async def of_cluster(self, job: str, first: date, last: date) -> list[RollupBlock]:
        """Return what is of no project, by day; both days are included."""
        query = _between(job, first, last).where(_R.project == "")
        return await self._blocks(query, {}, refuse)

    async def _blocks(
        self, query: Select[Any], values: Mapping[str, Any], on_unreadable: OnUnreadable
    ) -> list[RollupBlock]:
        rows = await self._connection.rows(query, values)
        if len(rows) <= _AT_ONCE:
            return _joined(readable(rows, _part, "roll-up", on_unreadable, "day"))
        # Of thousands of workflows: the event loop's own thread does other things meanwhile.
        return _joined(
            await asyncio.to_thread(readable, rows, _part, "roll-up", on_unreadable, "day")
        )


def _between(job: str, first: date, last: date) -> Select[Any]:
    days = _D.day.between(first.isoformat(), last.isoformat())
    return _BLOCKS.where(_D.job == job, days)


def _day(row: Row[Any]) -> RollupDay:
    require_numbers(row, "rows")
    return RollupDay(row.job, date.fromisoformat(row.day), row.rows, row.digest, row.stored_at)


def _part(row: Row[Any]) -> RollupBlock:
    rows = _rows(from_json(row.body))
    return RollupBlock(date.fromisoformat(row.day), row.project, row.workflow, rows)


def _aggregates(row: Row[Any]) -> list[list[Any]]:
    rows = from_json(row.body)
    if not isinstance(rows, list) or not all(isinstance(each, list) for each in rows):
        raise ValueError("column body holds rows that are not lists")
    return rows


def _rows(body: Any) -> list[dict[str, Any]]:
    """Return the rows of a block: objects, or the names of columns, and then lists of values."""
    if isinstance(body, list) and body and isinstance(body[0], list):
        names, *rows = body
        return [dict(zip(names, values, strict=True)) for values in rows]
    if not isinstance(body, list) or not all(isinstance(each, dict) for each in body):
        raise ValueError("column body holds rows that are not objects")
    return body


def _joined(parts: Iterable[RollupBlock]) -> list[RollupBlock]:
    """Join the parts of blocks that were divided; parts of one block follow each other."""
    return [
        RollupBlock(*key, [row for part in some for row in part.rows])
        for key, some in groupby(parts, _key)
    ]


def _key(part: RollupBlock) -> tuple[date, str, str]:
    return part.day, part.project, part.workflow
