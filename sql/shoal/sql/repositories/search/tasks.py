"""Find attempts by any mix of filters, a bounded part of the history at a time.

Attempts have indices of their state, their worker, their instance and their fingerprint, not of
their project and workflow: those would cost every state change. So a search by several of these is
sifted: the newest attempts by the one, and of these the ones that fulfil the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, or_, select, true

from shoal.core.runs import filters
from shoal.core.runs.filters import Count, SortOrder, TaskFilter
from shoal.core.runs.states import FINISHED_TASK, TaskState
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import TooManyToSort
from shoal.sql.repositories.search import conditions
from shoal.sql.repositories.search.ranking import Position, RankedPage, page_of_ranked
from shoal.sql.repositories.search.scope import InstanceScope
from shoal.sql.schema.tables import IS_NO_PAST_LOOK, task_instance, workflow_instance
from shoal.sql.statements.index_walks import Conditions, walk
from shoal.sql.statements.value_sets import Among, numbers

SIFTED = 1_000  # attempts that one call reads, at most
_LISTED = frozenset(TaskState) - {TaskState.RESCHEDULED}
_FEW = 100  # instances may have so few attempts that all are read

_T, _I = task_instance.c, workflow_instance.c
_SIFTED_BY = (_T.workflow_instance_id, _T.state, _T.worker)


@dataclass(frozen=True)
class TaskSearch:
    """What is searched, and within which instances; None: all."""

    connection: Connection
    wanted: TaskFilter
    home: InstanceScope | None

    async def page(self, order: SortOrder, after: Position | None, limit: int) -> RankedPage:
        """Return the next ids behind a position. Raises TooManyToSort.

        In the order of CREATED, a position is that of the id alone.
        """
        if order.is_ranked:
            return await self._ranked(order, after, limit)
        begun = [] if after is None else [_behind(after[1], order.is_rising)]
        most = SIFTED if self._is_sifted() else limit + 1
        rows, is_all = await self._candidates(begun, order.is_rising, most)
        ids = await self._sifted(rows)
        if len(ids) > limit:
            return RankedPage(ids[:limit], (0, ids[limit - 1]))
        return RankedPage(ids, None if is_all else (0, rows[-1].id))

    async def counts(self) -> dict[TaskState, Count]:
        """Return how many of the newest candidates are in each state; more if there are older."""
        most = filters.SIFTED
        rows, is_all = await self._candidates([], False, most, [])
        fit = set(await self._sifted(rows))
        states = [row.state for row in rows if row.id in fit]
        wanted = self.wanted.state or _LISTED
        return {
            state: Count(states.count(state), not is_all and state in wanted) for state in TaskState
        }

    async def _ranked(self, order: SortOrder, after: Position | None, limit: int) -> RankedPage:
        rank = conditions.rank(order.key, task_instance).label("rank")
        rows, is_all = await self._candidates([], False, filters.MOST_RANKED, [rank])
        if not is_all:
            raise TooManyToSort(order.key, filters.MOST_RANKED)
        fit = set(await self._sifted(rows))
        ranked = [(row.rank, row.id) for row in rows if row.id in fit]
        return page_of_ranked(ranked, order.is_rising, after, limit)

    # -- what is looked at ---------------------------------------------------------------------

    async def _candidates(
        self,
        begun: Conditions,
        is_rising: bool,
        most: int,
        also: Sequence[ColumnElement[Any]] = (),
    ) -> tuple[Sequence[Row[Any]], bool]:
        """Return ``most`` attempts at most, and whether these are all there are."""
        columns = (*_SIFTED_BY, and_(true(), *self._conditions()).label("fits"), *also)
        rows = await self._of_few_instances(begun, is_rising, columns)
        if rows is not None:
            return rows, True
        walks = self._walks(begun)
        rows = await walk(self.connection, [_T.id], walks, most, also=columns, is_rising=is_rising)
        return rows, len(rows) < most

    def _walks(self, begun: Conditions) -> list[Conditions]:
        """By fingerprint, which only failures have, else by state or by worker.

        Open attempts are fewer than what a worker has ever run.
        """
        states, worker = self.wanted.state, self.wanted.worker
        if self.wanted.instance_id is not None:
            return [[_T.workflow_instance_id == self.wanted.instance_id, *begun]]
        if self.wanted.fingerprint is not None:
            return [[_T.fingerprint == self.wanted.fingerprint, *begun]]
        is_open = bool(states) and states.isdisjoint(FINISHED_TASK)
        if worker is not None and not is_open:
            return [[_T.worker == worker, *begun]]  # sifted by ``_fits``
        if states:
            return [[_T.state == state, *begun] for state in sorted(states)]
        return [[IS_NO_PAST_LOOK, *begun]]

    # -- what is left of it --------------------------------------------------------------------

    def _is_sifted(self) -> bool:
        wanted = self.wanted
        is_of_both = wanted.worker is not None and bool(wanted.state)
        is_limited = self.home is not None or wanted.instance_id is not None
        return is_limited or is_of_both or any(True for _ in self._conditions())

    def _conditions(self) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions that no walk is made of."""
        wanted = self.wanted
        for column, value in (
            (_T.task, wanted.task),
            (_T.type, wanted.type),
            (_T.worker_group, wanted.worker_group),
            (_T.fingerprint, wanted.fingerprint),
        ):
            if value is not None:
                yield column == value
        if (environment := wanted.environment) is not None:
            named = _T.environment.startswith(f"{environment}@", autoescape=True)
            yield func.coalesce(or_(_T.environment == environment, named), False)
        yield from conditions.between(_T.started_at, wanted.started)
        yield from conditions.between(_T.finished_at, wanted.finished)
        yield from conditions.lasting(task_instance, wanted.lasting)
        yield from conditions.labels(_T.workflow_instance_id, wanted.labels)
        if wanted.text is not None:
            yield conditions.contains(wanted.text, _T.task, _T.reason)

    def _fits(self, row: Row[Any]) -> bool:
        wanted = self.wanted
        return (
            bool(row.fits)
            and row.state in (wanted.state or _LISTED)
            and wanted.worker in (None, row.worker)
            and wanted.instance_id in (None, row.workflow_instance_id)
        )

    async def _sifted(self, rows: Sequence[Row[Any]]) -> list[int]:
        fit = [row for row in rows if self._fits(row)]
        if self.home is None:
            return [row.id for row in fit]
        # Without a condition on the home: its index would be the longer way.
        query = select(_I.id, self.home.column.label("home")).where(Among(_I.id, numbers("ids")))
        homes = {
            row.id: row.home
            for row in await self.connection.rows(
                query, {"ids": {row.workflow_instance_id for row in fit}}
            )
        }
        return [row.id for row in fit if homes[row.workflow_instance_id] in self.home.ids]

    async def _of_few_instances(
        self, begun: Conditions, is_rising: bool, columns: Sequence[ColumnElement[Any]]
    ) -> Sequence[Row[Any]] | None:
        """Return all attempts of the home in their order, if that has few instances."""
        if self.home is None or self.wanted.instance_id is not None:
            return None
        query = select(_I.id).where(self.home.condition()).limit(_FEW + 1)
        ids = [row.id for row in await self.connection.rows(query)]
        if len(ids) > _FEW:
            return None
        query = (
            select(_T.id, *columns)
            .where(Among(_T.workflow_instance_id, numbers("ids")), *begun)
            .limit(SIFTED + 1)
        )
        rows = await self.connection.rows(query, {"ids": ids})
        if len(rows) > SIFTED:
            return None
        return sorted(rows, key=itemgetter(0), reverse=not is_rising)


def _behind(row_id: int, is_rising: bool) -> ColumnElement[bool]:
    return _T.id > row_id if is_rising else _T.id < row_id
