"""When runs of a workflow began and ended, and whether one has come that is waited for."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from shoal.core.alerts.conditions import WatchedRun
from shoal.core.runs.states import WorkflowState
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import UnreadableRow
from shoal.sql.schema.tables import workflow_instance
from shoal.sql.schema.types import UnreadableValue

_I = workflow_instance.c
_LOOKED_AT = 50  # of the newest successes, for the one that ended last
_JUDGED = (WorkflowState.SUCCEEDED, WorkflowState.FAILED)


class Punctuality:
    """Reads ``workflow_instance`` for conditions of alerts; each query walks along an index."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def has_begun(self, workflow_id: int, since: datetime) -> bool:
        """Say whether a run for a logical time after ``since`` has begun."""
        return await self._is_there(workflow_id, since, _I.started_at.is_not(None))

    async def has_succeeded(self, workflow_id: int, since: datetime) -> bool:
        """Say whether a run for a logical time after ``since`` has succeeded."""
        return await self._is_there(workflow_id, since, _I.state == WorkflowState.SUCCEEDED)

    async def _is_there(
        self, workflow_id: int, since: datetime, condition: ColumnElement[bool]
    ) -> bool:
        query = select(_I.id).where(
            _I.workflow_id == workflow_id,
            _I.logical_time > since,
            condition,
        )
        return await self._connection.first(query.limit(1)) is not None

    async def begins(self, workflow_id: int, limit: int) -> list[WatchedRun]:
        """Return the last runs that have begun, without backfills.

        The one with the latest logical time comes first.
        """
        query = select(_I.logical_time, _I.started_at.label("at")).where(
            _I.workflow_id == workflow_id, _I.started_at.is_not(None), _I.backfill_id.is_(None)
        )
        return await self._past(query, limit)

    async def ends(self, workflow_id: int, limit: int) -> list[WatchedRun]:
        """Return the last runs that have succeeded, without backfills.

        The one with the latest logical time comes first.
        """
        query = select(_I.logical_time, _I.finished_at.label("at")).where(
            _I.workflow_id == workflow_id,
            _I.state == WorkflowState.SUCCEEDED,
            _I.finished_at.is_not(None),
            _I.backfill_id.is_(None),
        )
        return await self._past(query, limit)

    async def _past(self, query: Select[Any], limit: int) -> list[WatchedRun]:
        ordered = query.order_by(_I.logical_time.desc(), _I.id.desc())
        rows = await self._connection.rows(ordered.limit(limit))
        return [
            WatchedRun(row.logical_time, row.at)
            for row in rows
            if not isinstance(row.logical_time, UnreadableValue)
            and not isinstance(row.at, UnreadableValue)
        ]

    async def last_success(self, workflow_id: int) -> datetime | None:
        """Return when a run has succeeded last; None: none ever has.

        Raises UnreadableRow if one of the newest has no readable end: it may be the last.
        """
        newest = (
            select(_I.finished_at)
            .where(_I.workflow_id == workflow_id, _I.state == WorkflowState.SUCCEEDED)
            .order_by(_I.created_at.desc(), _I.id.desc())
            .limit(_LOOKED_AT)
            .subquery()
        )
        found: datetime | UnreadableValue | None = await self._connection.scalar(
            select(func.max(newest.c.finished_at))
        )
        if isinstance(found, UnreadableValue):
            raise UnreadableRow("the last success of workflow", workflow_id, found.reason, -1)
        return found

    async def outcomes(self, workflow_id: int, limit: int) -> list[bool]:
        """Return whether the last runs have succeeded that ended, the newest first."""
        ended: list[tuple[datetime, int, bool]] = []
        for state in _JUDGED:
            query = (
                select(_I.created_at, _I.id)
                .where(_I.workflow_id == workflow_id, _I.state == state)
                .order_by(_I.created_at.desc(), _I.id.desc())
                .limit(limit)
            )
            rows = await self._connection.rows(query)
            ended += [
                (row.created_at, row.id, state is WorkflowState.SUCCEEDED)
                for row in rows
                if not isinstance(row.created_at, UnreadableValue)
            ]
        return [is_success for _, _, is_success in sorted(ended, reverse=True)[:limit]]
