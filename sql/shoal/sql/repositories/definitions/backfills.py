"""Backfills and their runs."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, and_, bindparam, func, insert, select, update

from shoal.core.access.authorization import Visible
from shoal.core.backfill.plan import BackfillPlan, Past
from shoal.core.backfill.request import Backfill, BackfillRequest, BackfillRunState, BackfillState
from shoal.core.backfill.window import BackfillRun, DayOutcome
from shoal.core.definition.selection import Selection
from shoal.core.runs.commands import Command, CommandState
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.states import FINISHED_WORKFLOW, WorkflowState
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import NotFound, StaleRow
from shoal.sql.repositories.events import Events, NewEvent
from shoal.sql.schema import tables
from shoal.sql.schema.tables import (
    IS_ACTIVE_BACKFILL,
    backfill,
    backfill_run,
    command,
    workflow,
    workflow_instance,
)
from shoal.sql.statements.json_columns import selection_of
from shoal.sql.statements.quarantined import is_quarantined
from shoal.sql.statements.rows import OnUnreadable, enough, readable, record_of, refuse

_BackfillList = list[Backfill]
_RunList = list[BackfillRun]
_NamedRunList = list[tuple[BackfillRun, str, str]]  # with project and workflow
_TIMES_PER_QUERY = 500
_UPDATE_RUN = update(backfill_run).where(
    backfill_run.c.backfill_id == bindparam("of_backfill"),
    backfill_run.c.position == bindparam("at_position"),
)


class BackfillRepository:
    """The ``backfill`` and ``backfill_run`` tables. Written by the partition's owner alone."""

    def __init__(self, connection: Connection, events: Events) -> None:
        self._connection = connection
        self._events = events

    async def create(
        self, asked: Command, request: BackfillRequest, plan: BackfillPlan, at: datetime
    ) -> Backfill:
        """Store the backfill that a command asks for, with all its runs."""
        [[row_id]] = await self._connection.reserve_ids({backfill: 1})
        await self._connection.execute(
            insert(backfill).values(
                id=row_id,
                workflow_id=asked.workflow_id,
                partition=asked.partition,
                command_id=asked.id,
                state=BackfillState.RUNNING,
                request=request.stored(),
                requested_by=asked.requested_by,
                created_at=at,
            )
        )
        rows = [
            {
                "backfill_id": row_id,
                "position": run.position,
                "workflow_id": run.workflow_id,
                "logical_time": run.logical_time,
                "state": BackfillRunState.SKIPPED if run.skipped else BackfillRunState.WAITING,
                "tries": 0,
                "reason": run.skipped,
            }
            for run in plan.runs
        ]
        await self._connection.execute(insert(backfill_run), rows)
        await self._connection.execute(
            update(command).where(command.c.id == asked.id).values(backfill_id=row_id)
        )
        created = await self.get(row_id)
        await self._events.add([_event(created, at)])
        return created

    async def get(self, backfill_id: int, *, lock: bool = False) -> Backfill:
        """Return a backfill; ``lock`` keeps others from changing it. Raises NotFound."""
        query = _backfills().where(backfill.c.id == backfill_id)
        if lock:
            query = query.with_for_update(of=backfill)
        row = await self._connection.first(query)
        if row is None:
            raise NotFound("backfill", backfill_id)
        return readable([row], _backfill, "backfill")[0]

    async def set_state(
        self, before: Backfill, state: BackfillState, reason: str | None, at: datetime, ended: bool
    ) -> None:
        """Move a backfill on. Raises StaleRow if it is not in the state that was read."""
        result = await self._connection.execute(
            update(backfill)
            .where(backfill.c.id == before.id, backfill.c.state == before.state)
            .values(state=state, reason=reason, finished_at=at if ended else None)
        )
        if result.rowcount != 1:
            raise StaleRow("backfill", [before.id])
        if state is not before.state:
            await self._events.add([_event(await self.get(before.id), at)])

    async def active(self, partitions: Collection[int]) -> dict[int, int]:
        """Return the partition of each backfill there that has not ended, oldest first."""
        query = (
            select(backfill.c.id, backfill.c.partition)
            .where(IS_ACTIVE_BACKFILL, backfill.c.partition.in_(sorted(partitions)))
            .order_by(backfill.c.id)
        )
        return {row.id: row.partition for row in await self._connection.rows(query)}

    async def partitions_of(self, ids: Collection[int]) -> dict[int, int]:
        """Return the partition of each backfill; those that do not exist are missing."""
        query = select(backfill.c.id, backfill.c.partition).where(backfill.c.id.in_(sorted(ids)))
        return {row.id: row.partition for row in await self._connection.rows(query)}

    async def list(
        self,
        *,
        project: str | None = None,
        workflow_name: str | None = None,
        states: Collection[BackfillState] = (),
        before_id: int | None = None,
        limit: int = 50,
        visible: Visible = None,
    ) -> _BackfillList:
        """Return backfills, newest first, continuing below ``before_id``."""
        query = _backfills().order_by(backfill.c.id.desc())
        if project is not None:
            query = query.where(tables.project.c.name == project)
        if workflow_name is not None:
            query = query.where(workflow.c.name == workflow_name)
        if states:
            query = query.where(backfill.c.state.in_(sorted(states)))
        if before_id is not None:
            query = query.where(backfill.c.id < before_id)
        if visible is not None:
            query = query.where(workflow.c.project_id.in_(sorted(visible)))
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _backfill, "backfill", limit
        )

    # -- runs --------------------------------------------------------------------------------

    async def runs(
        self,
        backfill_id: int,
        states: Collection[BackfillRunState] = (),
        limit: int | None = None,
    ) -> _RunList:
        """Return the runs of a backfill in their order; no ``states``: in any of them."""
        r = backfill_run.c
        query = select(backfill_run).where(r.backfill_id == backfill_id).order_by(r.position)
        if states:
            query = query.where(r.state.in_(sorted(states)))
        if limit is not None:
            query = query.limit(limit)
        rows = await self._connection.rows(query)
        return readable(rows, _run, "run of a backfill", key="position")

    async def some_runs(
        self,
        backfill_id: int,
        states: Collection[BackfillRunState] = (),
        after: int | None = None,
        limit: int = 50,
        visible: Visible = None,
    ) -> _NamedRunList:
        """Return runs behind the position ``after``, each with its project and workflow.

        A backfill may run workflows of other projects, too: of these only what is visible.
        """
        r = backfill_run.c
        query = (
            select(
                backfill_run,
                workflow.c.name.label("workflow"),
                tables.project.c.name.label("project"),
            )
            .join_from(backfill_run, workflow)
            .join(tables.project)
            .where(r.backfill_id == backfill_id)
            .order_by(r.position)
        )
        if states:
            query = query.where(r.state.in_(sorted(states)))
        if after is not None:
            query = query.where(r.position > after)
        if visible is not None:
            query = query.where(workflow.c.project_id.in_(sorted(visible)))
        return await enough(
            lambda most: self._connection.rows(query.limit(most)),
            lambda row: (_run(row), row.project, row.workflow),
            "run of a backfill",
            limit,
            key="position",
        )

    async def workflow_ids(self, backfill_id: int) -> set[int]:
        """Return the workflows that a backfill runs."""
        r = backfill_run.c
        query = select(r.workflow_id).where(r.backfill_id == backfill_id).distinct()
        return {row.workflow_id for row in await self._connection.rows(query)}

    async def project_ids(self, backfill_id: int) -> set[int]:
        """Return the ids of the projects whose workflows a backfill runs."""
        query = (
            select(workflow.c.project_id)
            .join_from(backfill_run, workflow)
            .where(backfill_run.c.backfill_id == backfill_id)
            .distinct()
        )
        return {row.project_id for row in await self._connection.rows(query)}

    async def counts(
        self, ids: Collection[int], on_unreadable: OnUnreadable = refuse
    ) -> dict[int, dict[BackfillRunState, int]]:
        """Return how many runs of each backfill are in each state that there is."""
        r = backfill_run.c
        query = (
            select(r.backfill_id, r.state, func.count().label("runs"))
            .where(r.backfill_id.in_(sorted(ids)))
            .group_by(r.backfill_id, r.state)
        )
        counts: dict[int, dict[BackfillRunState, int]] = {one: {} for one in ids}
        rows = await self._connection.rows(query)

        def read(row: Row[Any]) -> tuple[int, BackfillRunState, int]:
            return row.backfill_id, BackfillRunState(row.state), row.runs

        found = readable(rows, read, "run of a backfill", on_unreadable, key="backfill_id")
        for backfill_id, state, runs in found:
            counts[backfill_id][state] = runs
        return counts

    async def outcomes(
        self, backfill_id: int, states: Collection[BackfillRunState]
    ) -> dict[int, DayOutcome]:
        """Return what has become of the newest tries of the runs in these states, by position."""
        r, i = backfill_run.c, workflow_instance.c
        query = (
            select(
                r.position,
                command.c.state.label("command"),
                command.c.reason.label("refusal"),
                command.c.result_instance_id,
                i.state.label("instance"),
                i.partition,
                i.reason,
                is_quarantined(i.id, ItemKind.INSTANCE).label("is_quarantined"),
            )
            .join_from(backfill_run, command, command.c.id == r.command_id)
            .outerjoin(workflow_instance, i.id == command.c.result_instance_id)
            .where(r.backfill_id == backfill_id, r.state.in_(sorted(states)))
        )
        return {
            row.position: DayOutcome(
                CommandState(row.command),
                row.result_instance_id,
                None if row.instance is None else WorkflowState(row.instance),
                row.partition,
                row.refusal if row.instance is None else row.reason,
                bool(row.is_quarantined),
            )
            for row in await self._connection.rows(query)
        }

    async def save(self, backfill_id: int, changed: Sequence[BackfillRun]) -> None:
        """Store runs that have changed. The caller holds the lock of the backfill."""
        if not changed:
            return
        rows = [
            {
                "of_backfill": backfill_id,
                "at_position": run.position,
                "state": run.state,
                "tries": run.tries,
                "command_id": run.command_id,
                "instance_id": run.instance_id,
                "reason": run.reason,
            }
            for run in changed
        ]
        result = await self._connection.execute(_UPDATE_RUN, rows)
        if result.rowcount != len(rows):
            raise StaleRow("backfill_run", [run.position for run in changed])

    # -- what ran before ---------------------------------------------------------------------

    async def past(
        self, workflow_id: int, times: Collection[datetime], selection: Selection | None
    ) -> dict[tuple[int, datetime], Past]:
        """Return what earlier runs for these logical times have come to; none: left out.

        Runs of chosen tasks count only if the same ones are chosen now.
        """
        i = workflow_instance.c
        found: dict[tuple[int, datetime], Past] = {}
        for chunk in batched(sorted(times), _TIMES_PER_QUERY):
            query = select(i.logical_time, i.state, i.selection).where(
                and_(i.workflow_id == workflow_id, i.logical_time.in_(chunk))
            )
            for row in await self._connection.rows(query):
                if selection_of(row.selection) in (None, selection):
                    key = (workflow_id, row.logical_time)
                    found[key] = _better(found.get(key, Past.FAILED), WorkflowState(row.state))
        return found


def _better(past: Past, state: WorkflowState) -> Past:
    if past is Past.SUCCEEDED or state is WorkflowState.SUCCEEDED:
        return Past.SUCCEEDED
    return past if state in FINISHED_WORKFLOW else Past.RUNNING


def _backfills() -> Select[Any]:
    return (
        select(
            backfill,
            workflow.c.name.label("workflow"),
            tables.project.c.name.label("project"),
        )
        .join_from(backfill, workflow)
        .join(tables.project)
    )


def _backfill(row: Row[Any]) -> Backfill:
    return record_of(
        Backfill, row, state=BackfillState(row.state), request=BackfillRequest.read(row.request)
    )


def _run(row: Row[Any]) -> BackfillRun:
    return record_of(BackfillRun, row, state=BackfillRunState(row.state))


def _event(of: Backfill, at: datetime) -> NewEvent:
    data: Mapping[str, Any] = {"backfill_id": of.id, "workflow": of.workflow, "state": of.state}
    if of.reason is not None:
        data = {**data, "reason": of.reason}
    return NewEvent(at, "backfill.state", of.project, data)
