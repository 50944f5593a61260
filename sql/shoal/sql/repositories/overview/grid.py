"""The states of all tasks of many runs, one character each."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select

from shoal.core.runs.cells import NO_TASK, cell
from shoal.core.runs.states import WorkflowState
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.schema.tables import IS_NO_PAST_LOOK, task_instance, workflow_instance
from shoal.sql.schema.types import UnreadableValue
from shoal.sql.statements.value_sets import Among, numbers

ROWS_AT_ONCE = 5_000  # of attempts, read by one query as a rule


@dataclass(frozen=True)
class Cells:
    """``tasks``: the columns. ``runs``: by instance, a character for each column."""

    tasks: Sequence[str]
    runs: Mapping[int, str]


class RunGrid:
    """Reads ``task_instance`` and ``workflow_instance`` for grids and calendars."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def cells(self, ids: Sequence[int], tasks: Sequence[str]) -> Cells:
        """Return the states of the newest attempts.

        ``tasks``: the first columns; those that only these runs have come behind them.
        """
        columns = {name: column for column, name in enumerate(tasks)}
        lines: dict[int, dict[int, str]] = {one: {} for one in ids}
        for some in batched(ids, max(1, ROWS_AT_ONCE // max(1, len(tasks)))):
            rows = await self._connection.fetch(_ATTEMPTS, {"ids": list(some)})
            _fill(lines, columns, rows)
            await asyncio.sleep(0)  # a quick query gives other tasks no turn
        made = await asyncio.to_thread(_lines, lines, len(columns))
        return Cells(list(columns), made)

    async def newest(
        self, workflow_id: int, start: datetime, end: datetime, most: int
    ) -> tuple[dict[datetime, WorkflowState], bool]:
        """Return the state of the newest run for each logical time, and whether these are all.

        ``start`` <= logical time < ``end``. No more than ``most`` runs are read, earliest first.
        """
        query = (
            select(_I.logical_time, _I.state)
            .where(_I.workflow_id == workflow_id, _I.logical_time >= start, _I.logical_time < end)
            .order_by(_I.logical_time, _I.id)
            .limit(most + 1)
        )
        rows = await self._connection.rows(query)
        found: dict[datetime, WorkflowState] = {}
        for row in rows[:most]:
            if not isinstance(row.logical_time, UnreadableValue) and row.state in _STATES:
                found[row.logical_time] = WorkflowState(row.state)
        return found, len(rows) <= most

    async def kept_since(self, workflow_id: int) -> datetime | None:
        """Return when the oldest run that is kept was created; None: there is none."""
        firsts = []
        for state in WorkflowState:
            query = (
                select(_I.created_at)
                .where(_I.workflow_id == workflow_id, _I.state == state)
                .order_by(_I.created_at, _I.id)
                .limit(1)
            )
            firsts.append(await self._connection.scalar(query))
        return min((one for one in firsts if isinstance(one, datetime)), default=None)


_I, _T = workflow_instance.c, task_instance.c
_STATES = frozenset(map(str, WorkflowState))
_ATTEMPTS = (
    select(_T.workflow_instance_id, _T.task, _T.state, _T.forced)
    .where(Among(_T.workflow_instance_id, numbers("ids")), IS_NO_PAST_LOOK)
    .order_by(_T.workflow_instance_id, _T.position, _T.attempt)
)


def _fill(
    lines: Mapping[int, dict[int, str]], columns: dict[str, int], rows: Sequence[Row[Any]]
) -> None:
    """Write what each row says; of a task's attempts the last one counts."""
    for row in rows:
        column = columns.setdefault(row.task, len(columns))
        lines[row.workflow_instance_id][column] = cell(row.state, bool(row.forced))


def _lines(lines: Mapping[int, Mapping[int, str]], width: int) -> dict[int, str]:
    made: dict[int, str] = {}
    for instance_id, known in lines.items():
        made[instance_id] = "".join([known.get(column, NO_TASK) for column in range(width)])
    return made
