"""Find workflow instances by any mix of filters, a bounded part of the history at a time.

One filter, the one that leaves the fewest, is a walk along an index in the order of the list. What
the others leave of it is said by the database with each row, so that a page knows where to go on
even if nothing was left. So a page may be short although more follow; it never takes long.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, and_, func, not_, select, true

from shoal.core.access.authorization import Visible
from shoal.core.runs.filters import (
    MOST_COUNTED,
    MOST_RANKED,
    SIFTED,
    Between,
    Count,
    InstanceFilter,
    SortKey,
    SortOrder,
)
from shoal.core.runs.states import FINISHED_WORKFLOW, WorkflowState
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import TooManyToSort, UnreadableRow
from shoal.sql.repositories.search import conditions
from shoal.sql.repositories.search.ranking import Position, RankedPage, page_of_ranked
from shoal.sql.repositories.search.scope import InstanceScope, scope
from shoal.sql.schema import tables
from shoal.sql.schema.tables import instance_label, task_instance, workflow, workflow_instance
from shoal.sql.statements.index_walks import Conditions, behind, is_unreadable, walk
from shoal.sql.statements.rows import leave_out

_C, _L = workflow_instance.c, instance_label.c
_NEWEST = (_C.created_at, _C.id)
_BY_LOGICAL_TIME = (_C.logical_time, _C.id)
_BY_LABEL = (_L.created_at, _L.workflow_instance_id)
MOST_PARENT_TASKS = 1_000  # of the instance whose sub-workflows are listed


@dataclass(frozen=True)
class _Source:
    """An index to walk along: its order, its walks, and what it leaves to sift by."""

    order: tuple[Column[Any], Column[Any]]
    walks: Sequence[Conditions]
    sifts: Sequence[ColumnElement[bool]]


class InstanceSearch:
    """Searches ``workflow_instance`` for what a filter means, within what is visible."""

    def __init__(self, connection: Connection, wanted: InstanceFilter, visible: Visible) -> None:
        self._connection, self._visible = connection, visible
        self._wanted = _narrowed(wanted)

    async def page(self, order: SortOrder, after: Position | None, limit: int) -> RankedPage:
        """Return the next ids behind a position. Raises TooManyToSort."""
        source = await self._source(order.key)
        if order.is_ranked:
            return await self._ranked(source, order, after, limit)
        most = SIFTED if source.sifts else limit
        rows, is_all = await self._walked(source, order.is_rising, after, most)
        fit = [row for row in rows if row.fits]
        if len(fit) > limit:
            return RankedPage([_id(row) for row in fit[:limit]], _position(fit[limit - 1]))
        return RankedPage([_id(row) for row in fit], None if is_all else _position(rows[-1]))

    async def counts(self) -> dict[WorkflowState, Count]:
        """Return how many there are in each state, as far as they are counted.

        What has to be sifted is counted among the newest ``SIFTED``: then all are lower bounds
        once there are older ones.
        """
        source = await self._source(SortKey.CREATED)
        if not source.sifts and source.order == _NEWEST:
            return {state: await self._counted(source, state) for state in WorkflowState}
        also = [_C.state.label("state")]
        rows, is_all = await self._walked(source, False, None, SIFTED, also)
        states = [row.state for row in rows if row.fits]
        found = {state: states.count(state) for state in WorkflowState}
        return {state: Count(number, not is_all) for state, number in found.items()}

    async def _counted(self, source: _Source, state: WorkflowState) -> Count:
        """Count along the index, no further than anybody wants to know."""
        number = 0
        if self._wanted.state and state not in self._wanted.state:
            return Count(0)
        for walk_ in await self._walks_of_state(state):
            few = select(_C.id).where(*walk_).limit(MOST_COUNTED + 1 - number).subquery()
            number += await self._connection.scalar(select(func.count()).select_from(few)) or 0
            if number > MOST_COUNTED:
                break
        return Count(min(number, MOST_COUNTED), number > MOST_COUNTED)

    async def _walks_of_state(self, state: WorkflowState) -> list[Conditions]:
        home = await self._home()
        period = list(_between(_C.created_at, self._wanted.created))
        if home is None:
            return [[_C.state == state, *period]]
        return [[home.column == i, _C.state == state, *period] for i in home.ids]

    # -- where to look -------------------------------------------------------------------------

    async def _home(self) -> InstanceScope | None:
        return await scope(
            self._connection, self._wanted.project, self._wanted.workflow, self._visible
        )

    async def _source(self, key: SortKey) -> _Source:
        wanted, home = self._wanted, await self._home()
        sifts = list(_sifts(wanted))
        if key is SortKey.LOGICAL:
            assert home is not None, "asked of one workflow"
            period = list(_between(_C.logical_time, wanted.logical))
            sifts += [*_of_states(wanted), *_between(_C.created_at, wanted.created)]
            walks = [[home.column == i, *period] for i in home.ids]
            return _Source(
                _BY_LOGICAL_TIME, walks, [*sifts, *conditions.labels(_C.id, wanted.labels)]
            )

        sifts += _between(_C.logical_time, wanted.logical)
        period = list(_between(_C.created_at, wanted.created))
        some = await self._selective(period)
        if some is None:
            sifts += conditions.labels(_C.id, wanted.labels)
            return _Source(_NEWEST, _newest(wanted, home, period), sifts)
        within = [] if home is None else [home.condition()]
        return _Source(some.order, some.walks, [*sifts, *some.sifts, *_of_states(wanted), *within])

    async def _selective(self, period: Conditions) -> _Source | None:
        """Return the walks of a filter that leaves few, whatever else is asked."""
        wanted = self._wanted
        labels = dict(wanted.labels)
        of_labels = list(conditions.labels(_C.id, labels))
        by_id: list[Conditions] = []
        if wanted.parent_id is not None:
            by_id = [[_C.parent_task_id == i] for i in await self._parent_tasks(wanted.parent_id)]
        elif wanted.backfill_id is not None:
            by_id = [[_C.backfill_id == wanted.backfill_id]]
        elif wanted.schedule_id is not None:
            by_id = [[_C.schedule_id == wanted.schedule_id]]
        elif valued := [one for one in labels.items() if one[1] is not None]:
            (key, value), *_ = valued
            join = _C.id == _L.workflow_instance_id
            given = _between(_L.created_at, wanted.created)
            one = [_L.key == key, _L.value == value, *given, join]
            walks = [[_L.project_id == i, *one] for i in await self._projects()]
            del labels[key]
            return _Source(_BY_LABEL, walks, list(conditions.labels(_C.id, labels)))
        else:
            return None
        return _Source(_NEWEST, [[*one, *period] for one in by_id], of_labels)

    async def _parent_tasks(self, instance_id: int) -> list[int]:
        """Return the attempts of an instance that may have started others."""
        t = task_instance.c
        query = (
            select(t.id)
            .where(t.workflow_instance_id == instance_id, t.type.in_(("SUB_WORKFLOW", "MAP")))
            .limit(MOST_PARENT_TASKS)
        )
        return [row.id for row in await self._connection.rows(query)]

    async def _projects(self) -> list[int]:
        """Return the projects whose labels are looked through."""
        if self._wanted.project is not None and self._wanted.workflow is None:
            home = await self._home()
            return list(home.ids) if home is not None else []
        if self._visible is not None:
            return sorted(self._visible)
        rows = await self._connection.rows(select(tables.project.c.id))
        return sorted(row.id for row in rows)

    # -- walking ------------------------------------------------------------------------------

    async def _walked(
        self,
        source: _Source,
        is_rising: bool,
        after: Position | None,
        most: int,
        also: Sequence[ColumnElement[Any]] = (),
    ) -> tuple[list[Row[Any]], bool]:
        """Return the first rows behind a position, and whether these are all."""
        begun = [] if after is None else [behind(source.order, after, is_rising)]
        walks = [[*one, *begun] for one in source.walks]
        columns = [and_(true(), *source.sifts).label("fits"), *also]
        wanted = most + 1
        while True:
            rows = await walk(
                self._connection, source.order, walks, wanted, also=columns, is_rising=is_rising
            )
            good = [row for row in rows if not is_unreadable(row)]
            if len(rows) < wanted or len(good) > most:
                for row in rows if len(good) < len(rows) else ():
                    if is_unreadable(row):
                        leave_out(UnreadableRow("workflow instance", _id(row), "no time is in it"))
                return good[:most], len(good) <= most
            wanted = 2 * wanted + most

    async def _ranked(
        self, source: _Source, order: SortOrder, after: Position | None, limit: int
    ) -> RankedPage:
        value = conditions.rank(order.key, workflow_instance).label("rank")
        rows, is_all = await self._walked(source, False, None, MOST_RANKED, [value])
        if not is_all:
            raise TooManyToSort(order.key, MOST_RANKED)
        ranked = [(row.rank, _id(row)) for row in rows if row.fits]
        return page_of_ranked(ranked, order.is_rising, after, limit)


def _position(row: Row[Any]) -> Position:
    value, row_id, *_ = tuple[Any, ...](row)
    return value, row_id


def _id(row: Row[Any]) -> int:
    return _position(row)[1]


def _newest(
    wanted: InstanceFilter, home: InstanceScope | None, period: Conditions
) -> list[Conditions]:
    states = sorted(wanted.state)
    if home is not None:
        pairs = product(home.ids, states or sorted(WorkflowState))
        return [[home.column == i, _C.state == state, *period] for i, state in pairs]
    if states:
        return [[_C.state == state, *period] for state in states]
    return [period]


def _of_states(wanted: InstanceFilter) -> list[ColumnElement[bool]]:
    return [_C.state.in_(sorted(wanted.state))] if wanted.state else []


def _between(column: Column[Any], interval: Between) -> Iterator[ColumnElement[bool]]:
    return conditions.between(column, interval)


def _narrowed(wanted: InstanceFilter) -> InstanceFilter:
    """Return the filter with the states that it implies: what goes on are few, and indexed."""
    if not wanted.late:
        return wanted
    open_ = (wanted.state or frozenset(WorkflowState)) - FINISHED_WORKFLOW
    return wanted.model_copy(update={"state": open_}) if open_ else wanted


def _sifts(wanted: InstanceFilter) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of what no index serves."""
    for column, value in (
        (_C.schedule_id, wanted.schedule_id),
        (_C.backfill_id, wanted.backfill_id),
        (_C.rerun_of, wanted.rerun_of),
        (_C.version, wanted.version),
    ):
        if value is not None:
            yield func.coalesce(column == value, False)
    if wanted.priorities:
        yield _C.priority.in_(sorted(wanted.priorities))
    yield from _between(_C.started_at, wanted.started)
    yield from _between(_C.finished_at, wanted.finished)
    yield from conditions.lasting(workflow_instance, wanted.lasting)
    if wanted.late is not None:
        yield (
            conditions.late(workflow_instance)
            if wanted.late
            else not_(conditions.late(workflow_instance))
        )
    if wanted.text is not None:
        named = select(workflow.c.name).where(workflow.c.id == _C.workflow_id).scalar_subquery()
        yield conditions.contains(wanted.text, named, _C.reason)
