"""Find attempts by state, worker and what they belong to, a bounded part of the history at a time.

Attempts have indices of their state and of their worker, not of their project and workflow: those
would cost every state change. So a search by several of these is sifted: the newest
attempts by the one, and of these the ones that fulfil the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sqlalchemy import Row, select

from shoal.core.runs.states import FINISHED_TASK, TaskState
from shoal.sql.driver.connection import Connection
from shoal.sql.repositories.runs.scope import Scope
from shoal.sql.schema.tables import IS_NO_PAST_LOOK, task_instance, workflow_instance
from shoal.sql.statements.among import Among, numbers
from shoal.sql.statements.walks import Conditions, walk_newest

SIFTED = 1_000  # attempts that one call reads, at most
_LISTED = frozenset(TaskState) - {TaskState.RESCHEDULED}
_FEW = 100  # instances may have so few attempts that all are read

_T, _I = task_instance.c, workflow_instance.c
_SIFTED_BY = (_T.workflow_instance_id, _T.state, _T.worker)


@dataclass(frozen=True)
class TaskSearch:
    """What is searched; None means that any will do, no ``states`` any but RESCHEDULED."""

    connection: Connection
    states: frozenset[TaskState]
    worker: str | None
    home: Scope | None

    async def newest(self, before_id: int | None, limit: int) -> tuple[list[int], int | None]:
        """Return up to ``limit`` ids below ``before_id``, falling, and where to continue.

        None: nowhere, these are the last.
        """
        below = [] if before_id is None else [_T.id < before_id]
        rows = await self._of_few_instances(below)
        if rows is not None:
            ids, is_all = [row.id for row in rows if self._fits(row)], True
        else:
            sifts = self.home is not None or (self.worker is not None and bool(self.states))
            most = SIFTED if sifts else limit + 1
            walks = self._walks(below)
            rows = await walk_newest(self.connection, [_T.id], walks, most, also=_SIFTED_BY)
            ids, is_all = await self._sifted(rows), len(rows) < most
        if len(ids) > limit:
            return ids[:limit], ids[limit - 1]
        return ids, None if is_all else rows[-1].id

    def _walks(self, below: Conditions) -> list[Conditions]:
        """By state, or by worker: open attempts are fewer than what a worker has ever run."""
        is_open = bool(self.states) and self.states.isdisjoint(FINISHED_TASK)
        if self.worker is not None and not is_open:
            return [[_T.worker == self.worker, *below]]  # sifted by ``_fits``
        if self.states:
            return [[_T.state == state, *below] for state in sorted(self.states)]
        return [[IS_NO_PAST_LOOK, *below]]

    def _fits(self, row: Row[Any]) -> bool:
        wanted = row.state in (self.states or _LISTED)
        return wanted and self.worker in (None, row.worker)

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

    async def _of_few_instances(self, below: Conditions) -> Sequence[Row[Any]] | None:
        """Return all attempts of the home, newest first, if that has few instances."""
        if self.home is None:
            return None
        query = select(_I.id).where(self.home.condition()).limit(_FEW + 1)
        ids = [row.id for row in await self.connection.rows(query)]
        if len(ids) > _FEW:
            return None
        query = (
            select(_T.id, *_SIFTED_BY)
            .where(Among(_T.workflow_instance_id, numbers("ids")), *below)
            .limit(SIFTED + 1)
        )
        rows = await self.connection.rows(query, {"ids": ids})
        return None if len(rows) > SIFTED else sorted(rows, key=itemgetter(0), reverse=True)
