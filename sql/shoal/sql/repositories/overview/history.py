"""What has happened, newest first: events, commands and takeovers as one list.

Each of the three is walked along its own ids, which rise with time, a bounded part for each page.
What one of them has not been looked through for yet is not overtaken by the others: so the list is
in the order of time, although a page may be short.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, Table, Text, func, or_, select, type_coerce

from shoal.core.access.authorization import Visible
from shoal.core.runs.filters import Between, HistoryFilter
from shoal.sql.driver.connection import Connection
from shoal.sql.schema import tables
from shoal.sql.schema.tables import command, event, takeover, workflow, workflow_instance
from shoal.sql.schema.types import UnreadableValue

LOOKED_THROUGH = 5_000  # rows of each table, for one page
COMMAND, TAKEOVER = "command", "partition.takeover"


@dataclass(frozen=True)
class Happened:
    """One thing. ``id``: of its kind; ``by``: who asked for it."""

    at: datetime
    kind: str
    id: int
    project: str | None = None
    instance_id: int | None = None
    task_instance_id: int | None = None
    by: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


#: Below which id each table is gone on with, in the order of ``_SOURCES``; 0: it is done.
Place = tuple[int, int, int]


@dataclass
class _Part:
    """What a page has found in one table: rising ``eldest`` first would be read last."""

    found: list[tuple[datetime, Happened]]  # with the time that it is put in order by
    horizon: datetime | None  # older things may follow; None: nothing does
    low: int  # below which to go on once all of ``found`` is shown


class History:
    """Reads ``event``, ``command`` and ``takeover``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def page(
        self,
        wanted: HistoryFilter,
        visible: Visible,
        place: Place | None,
        limit: int,
        *,
        with_takeovers: bool,
    ) -> tuple[list[Happened], Place | None]:
        """Return what happened before a place, and the next place; None: that was all.

        ``with_takeovers``: of all partitions, unless a project, workflow or run is named.
        """
        names = await self._names(visible)
        walks = [
            (event, event.c.at, self._events(wanted, names), _event),
            (command, command.c.created_at, await self._commands(wanted, visible), _command),
            (takeover, takeover.c.at, await self._takeovers(wanted, with_takeovers), _takeover),
        ]
        before = list(place) if place is not None else []
        for table, at, conditions, _ in walks if place is None else ():
            before.append(0 if conditions is None else await self._start(table, at, wanted.at))
        parts = []
        for (table, at, conditions, read), start in zip(walks, before, strict=True):
            if conditions is None or start == 0:
                parts.append(_Part([], None, 0))
            else:
                part = await self._part(table, at, conditions, read, wanted, start, limit)
                parts.append(part)
        return _merged(parts, before, limit)

    async def _part(
        self,
        table: Table,
        at: ColumnElement[datetime],
        conditions: Sequence[ColumnElement[bool]],
        read: Callable[[Row[Any]], Happened],
        wanted: HistoryFilter,
        start: int,
        limit: int,
    ) -> _Part:
        """Return what one table has below an id, as far as a page looks."""
        bottom = 0
        if wanted.instance_id is None:  # of ids there may be long gaps
            above = select(table.c.id).where(table.c.id < start).order_by(table.c.id.desc())
            bottom = await self._connection.scalar(above.offset(LOOKED_THROUGH).limit(1)) or 0
        query = _selected(table).where(table.c.id < start, table.c.id > bottom, *conditions)
        rows = await self._connection.rows(query.order_by(table.c.id.desc()).limit(limit + 1))
        if len(rows) > limit:
            bottom = rows[-1].id
        below = select(table.c.id, at.label("at")).where(table.c.id <= bottom)
        last = await self._connection.first(below.order_by(table.c.id.desc()).limit(1))
        horizon = None if last is None or isinstance(last.at, UnreadableValue) else last.at
        is_over = last is None or (
            wanted.at.since is not None and horizon is not None and horizon < wanted.at.since
        )
        items = [read(row) for row in rows[:limit] if not isinstance(row.at, UnreadableValue)]
        # Clocks differ a little: whatever has the greater id is not older here. So all that was
        # found lies on this side of the horizon, and each page gets on.
        eldest = horizon or datetime.min.replace(tzinfo=UTC)
        _, *rising = accumulate((one.at for one in reversed(items)), max, initial=eldest)
        placed = list(zip(reversed(rising), items, strict=True))
        inside = [one for one in placed if _is_within(one[1].at, wanted.at)]
        return _Part(inside, None if is_over else horizon, 0 if is_over else bottom + 1)

    async def _start(self, table: Table, at: ColumnElement[datetime], period: Between) -> int:
        """Return an id below which everything from before the period's end is: a few steps."""
        newest = await self._connection.scalar(
            select(table.c.id).order_by(table.c.id.desc()).limit(1)
        )
        if newest is None or period.until is None:
            return int(newest or 0) + 1 if newest else 0
        low, high = 0, int(newest) + 1
        while high - low > LOOKED_THROUGH:
            middle = (low + high) // 2
            query = select(table.c.id, at.label("at")).where(table.c.id <= middle)
            row = await self._connection.first(query.order_by(table.c.id.desc()).limit(1))
            if row is None or isinstance(row.at, UnreadableValue) or row.at < period.until:
                low = middle
            else:
                high = middle
        return min(high + LOOKED_THROUGH, int(newest) + 1)

    async def _names(self, visible: Visible) -> list[str] | None:
        if visible is None:
            return None
        query = select(tables.project.c.name).where(tables.project.c.id.in_(sorted(visible)))
        return [row.name for row in await self._connection.rows(query)]

    def _events(
        self, wanted: HistoryFilter, names: Sequence[str] | None
    ) -> Sequence[ColumnElement[bool]] | None:
        kinds = wanted.kind - {COMMAND, TAKEOVER}
        if wanted.kind and not kinds:
            return None
        found: list[ColumnElement[bool]] = []
        if kinds:
            found.append(event.c.kind.in_(sorted(kinds)))
        if names is not None:
            found.append(event.c.project.in_(names))
        if wanted.project is not None:
            found.append(event.c.project == wanted.project)
        if wanted.instance_id is not None:
            found.append(event.c.workflow_instance_id == wanted.instance_id)
        if wanted.workflow is not None:
            # In JSON a quotation mark that is not escaped begins or ends a text.
            named = f'"workflow":{json.dumps(wanted.workflow, ensure_ascii=False)}'
            stored = type_coerce(event.c.data, Text)
            found.append(func.replace(stored, named, "") != stored)
        return found

    async def _commands(
        self, wanted: HistoryFilter, visible: Visible
    ) -> Sequence[ColumnElement[bool]] | None:
        if wanted.kind and COMMAND not in wanted.kind:
            return None
        found: list[ColumnElement[bool]] = []
        if visible is not None:
            found.append(workflow.c.project_id.in_(sorted(visible)))
        if wanted.project is not None:
            found.append(tables.project.c.name == wanted.project)
        if wanted.workflow is not None:
            found.append(workflow.c.name == wanted.workflow)
        if wanted.instance_id is not None:
            own = (
                select(workflow_instance.c.command_id)
                .where(workflow_instance.c.id == wanted.instance_id)
                .scalar_subquery()
            )
            found.append(or_(command.c.instance_id == wanted.instance_id, command.c.id == own))
        return found

    async def _takeovers(
        self, wanted: HistoryFilter, of_all: bool
    ) -> Sequence[ColumnElement[bool]] | None:
        if wanted.kind and TAKEOVER not in wanted.kind:
            return None
        if wanted.instance_id is not None:
            c = workflow_instance.c
            query = select(c.partition, c.created_at).where(c.id == wanted.instance_id)
            row = await self._connection.first(query)
            if row is None or isinstance(row.created_at, UnreadableValue):
                return None
            return [takeover.c.partition == row.partition, takeover.c.at >= row.created_at]
        is_of_all = wanted.project is None and wanted.workflow is None
        return [] if of_all and is_of_all else None


def _selected(table: Table) -> Select[Any]:
    if table is command:
        return (
            select(
                command.c.id,
                command.c.created_at.label("at"),
                command.c.type,
                command.c.state,
                command.c.reason,
                command.c.instance_id,
                command.c.result_instance_id,
                command.c.task,
                command.c.requested_by,
                command.c.handled_at,
                workflow.c.name.label("workflow"),
                tables.project.c.name.label("project"),
            )
            .join_from(command, workflow)
            .join(tables.project)
        )
    return select(table)


def _event(row: Row[Any]) -> Happened:
    return Happened(
        row.at,
        row.kind,
        row.id,
        row.project,
        row.workflow_instance_id,
        row.task_instance_id,
        data=row.data if isinstance(row.data, dict) else {},
    )


def _command(row: Row[Any]) -> Happened:
    handled_at = None if isinstance(row.handled_at, UnreadableValue) else row.handled_at
    data = {
        "type": row.type,
        "state": row.state,
        "reason": row.reason,
        "workflow": row.workflow,
        "task": row.task,
        "handled_at": None if handled_at is None else handled_at.isoformat(),
    }
    about = row.result_instance_id or row.instance_id
    return Happened(
        at=row.at,
        kind=COMMAND,
        id=row.id,
        project=row.project,
        instance_id=about,
        task_instance_id=None,
        by=row.requested_by,
        data=data,
    )


def _takeover(row: Row[Any]) -> Happened:
    names = ("partition", "epoch", "owner", "previous_owner")
    return Happened(row.at, TAKEOVER, row.id, data={name: getattr(row, name) for name in names})


def _is_within(at: datetime, period: Between) -> bool:
    return (period.since is None or at >= period.since) and (
        period.until is None or at < period.until
    )


def _merged(
    parts: Sequence[_Part], before: Sequence[int], limit: int
) -> tuple[list[Happened], Place | None]:
    """Put what the tables have into one order, as far as all were looked through."""
    horizon = max((one.horizon for one in parts if one.horizon is not None), default=None)
    every = [(at, source, one) for source, part in enumerate(parts) for at, one in part.found]
    every.sort(key=lambda item: (item[0], item[1], item[2].id), reverse=True)
    shown = [item for item in every if horizon is None or item[0] >= horizon][:limit]
    places = list(_places(parts, before, shown))
    done = all(one == 0 for one in places)
    return [item[2] for item in shown], None if done else (places[0], places[1], places[2])


def _places(
    parts: Sequence[_Part],
    before: Sequence[int],
    shown: Sequence[tuple[datetime, int, Happened]],
) -> Iterator[int]:
    for source, part in enumerate(parts):
        ids = [one.id for _, of, one in shown if of == source]
        if len(ids) == len(part.found):
            yield part.low
        else:
            yield min(ids, default=before[source])
