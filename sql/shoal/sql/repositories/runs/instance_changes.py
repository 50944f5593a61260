"""Storing decisions: the statements behind ``Instances.save``."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Table, bindparam, func, insert, select, update

from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.states import WorkflowState
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import StaleRow
from shoal.sql.repositories.events import INSERT_EVENT, NewEvent
from shoal.sql.repositories.runs.attempts import changing_values, new_values
from shoal.sql.schema.tables import IS_FINAL, task_instance, workflow_instance
from shoal.sql.schema.types import UtcDateTime
from shoal.sql.statements.json_columns import parent_json

Change = tuple[Run, Decision]
_Row = dict[str, Any]
NewIds = dict[tuple[int, str, int], int]  # (instance id, task, attempt number) -> task instance id

_IDS_PER_QUERY = 500
_MOST_AT_ONCE = 500  # attempts whose rows are made in the event loop's own thread

INSERT_ATTEMPT = insert(task_instance)
# The columns to set are those that the rows of values name. A terminal state is final.
_UPDATE_ATTEMPT = update(task_instance).where(task_instance.c.id == bindparam("row_id"), ~IS_FINAL)
_FIRST_START = bindparam("first_start", type_=UtcDateTime())
_FIRST_SUCCESS = bindparam("first_success", type_=UtcDateTime())
_UPDATE_INSTANCE = (
    update(workflow_instance)
    .where(
        workflow_instance.c.id == bindparam("row_id"),
        workflow_instance.c.state == bindparam("previous"),
    )
    # A recovered instance keeps the time of its first start, and of its first success.
    .values(
        started_at=func.coalesce(workflow_instance.c.started_at, _FIRST_START),
        succeeded_at=func.coalesce(workflow_instance.c.succeeded_at, _FIRST_SUCCESS),
    )
)


class InstanceChanges:
    """Writes what ``decide`` wants, for many runs in a handful of statements."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def save(self, changes: Sequence[Change], at: datetime) -> NewIds:
        """Store decisions that were made, and already applied, to these runs.

        Returns the ids of the attempts that were new. Raises StaleRow if an attempt is final in
        the database, or an instance is not in the state from which its decision leads: then
        roll back and load the runs again. The caller has fenced the partitions.
        """
        new = list(_new(changes))
        ids: Sequence[int] = []
        if new:
            [ids] = await self._connection.reserve_ids({task_instance: len(new)})
        if sum(len(decision.attempts) for _, decision in changes) > _MOST_AT_ONCE:
            made = await asyncio.to_thread(_Rows, changes, new, ids, at)
        else:
            made = _Rows(changes, new, ids, at)
        _, changed_attempts, changed_instances, _ = await self._connection.change(
            [
                (INSERT_ATTEMPT, made.new_attempts),
                (_UPDATE_ATTEMPT, made.attempts),
                (_UPDATE_INSTANCE, made.instances),
                (INSERT_EVENT, made.events),
            ]
        )
        await self._require(task_instance, made.attempts, changed_attempts)
        await self._require(workflow_instance, made.instances, changed_instances)
        await self._update_marks(changes)
        return made.new_ids

    async def _update_marks(self, changes: Sequence[Change]) -> None:
        """Write what changes beside the state: what was reached, the parent."""
        for run, decision in changes:
            values: dict[str, Any] = {}
            if decision.warned_at is not None:
                values["warned_at"] = decision.warned_at
            if decision.late_at is not None:
                values["late_at"] = decision.late_at
            if decision.parent is not None:
                values["parent"] = parent_json(decision.parent)
                values["parent_task_id"] = decision.parent.task_instance_id
            if values:
                statement = update(workflow_instance).where(workflow_instance.c.id == run.id)
                await self._connection.execute(statement.values(**values))

    async def _require(self, table: Table, rows: Sequence[_Row], changed: int) -> None:
        """Raise StaleRow unless a guarded update has changed every row."""
        if changed != len(rows):
            wanted = {row["row_id"]: str(row["state"]) for row in rows}
            raise StaleRow(table.name, await self._differing(table, wanted) or wanted)

    async def _differing(self, table: Table, wanted: Mapping[int, str]) -> set[int]:
        """Return the rows that do not have the state they should have been given."""
        stored: dict[int, str] = {}
        for chunk in batched(wanted, _IDS_PER_QUERY):
            query = select(table.c.id, table.c.state).where(table.c.id.in_(chunk))
            stored.update({row.id: row.state for row in await self._connection.rows(query)})
        return {row_id for row_id, state in wanted.items() if stored.get(row_id) != state}


class _Rows:
    """The rows of attempts, instances and events. Made on any thread."""

    def __init__(
        self,
        changes: Sequence[Change],
        new: Sequence[tuple[Run, Attempt]],
        ids: Sequence[int],
        at: datetime,
    ) -> None:
        """``new``: the attempts that get ``ids``."""
        self.new_attempts = list(_new_rows(new, ids))
        keys = [(run.id, attempt.task, attempt.number) for run, attempt in new]
        self.new_ids: NewIds = dict(zip(keys, ids, strict=True))
        self.events = [vars(event) for one in changes for event in events_of(one, self.new_ids, at)]
        self.attempts = list(_attempts(changes))
        self.instances = list(_instances(changes))


def _new(changes: Iterable[Change]) -> Iterator[tuple[Run, Attempt]]:
    """Yield the attempts that have no ids yet, each with its run."""
    for run, decision in changes:
        for attempt in decision.attempts.values():
            if attempt.id is None:
                yield run, attempt


def _new_rows(new: Sequence[tuple[Run, Attempt]], ids: Sequence[int]) -> Iterator[_Row]:
    plans = {run.id: run.plan for run, _ in new}  # each searched once
    positions = {
        run_id: {task: i for i, task in enumerate(plan.tasks)} for run_id, plan in plans.items()
    }
    for (run, attempt), row_id in zip(new, ids, strict=True):
        yield new_values(row_id, run, positions[run.id][attempt.task], attempt)


def _attempts(changes: Iterable[Change]) -> Iterator[_Row]:
    """Yield the values for ``_UPDATE_ATTEMPT``."""
    for _, decision in changes:
        for attempt in decision.attempts.values():
            if attempt.id is not None:
                yield {"row_id": attempt.id, **changing_values(attempt)}


def _instances(changes: Iterable[Change]) -> Iterator[_Row]:
    """Yield the values for ``_UPDATE_INSTANCE``."""
    for run, decision in changes:
        if decision.state is not None:
            succeeded = decision.state is WorkflowState.SUCCEEDED
            yield {
                "row_id": run.id,
                "previous": decision.previous,
                "state": decision.state,
                "reason": decision.reason,
                "first_start": decision.started_at,
                "finished_at": decision.finished_at,  # None again when it is recovered
                "first_success": decision.finished_at if succeeded else None,
            }


def events_of(change: Change, new_ids: NewIds, at: datetime) -> Iterator[NewEvent]:
    """Yield the events of a decision; ``new_ids``: of its new attempts."""
    run, decision = change
    spec = run.plan.spec
    if decision.timed_out:
        data = _compact(workflow=spec.name, timeout_s=spec.timeout)
        yield NewEvent(at, "instance.overdue", spec.project, data, run.id)
    if decision.late_at is not None and run.deadline_at is not None:
        data = {"workflow": spec.name, "deadline_at": run.deadline_at.isoformat()}
        yield NewEvent(at, "instance.late", spec.project, data, run.id)
    if decision.state is not None:
        data = _compact(
            workflow=spec.name,
            version=run.version,
            state=decision.state,
            previous=decision.previous,
            reason=decision.reason,
        )
        yield NewEvent(at, "instance.state", spec.project, data, run.id)
    for attempt in decision.attempts.values():
        data = _compact(
            workflow=spec.name,
            task=attempt.task,
            attempt=attempt.number,
            state=attempt.state,
            worker=attempt.worker,
            reason=attempt.reason,
            exit_code=attempt.exit_code,
            forced=attempt.forced or None,
        )
        attempt_id = attempt.id or new_ids[run.id, attempt.task, attempt.number]
        kind = "task.state" if (attempt.task, attempt.number) in decision.moved else "task.detail"
        yield NewEvent(at, kind, spec.project, data, run.id, attempt_id)
        if attempt.task in decision.overdue:
            data = _compact(
                workflow=spec.name,
                task=attempt.task,
                attempt=attempt.number,
                timeout_s=run.plan.tasks[attempt.task].timeout,
            )
            yield NewEvent(at, "task.overdue", spec.project, data, run.id, attempt_id)


def _compact(**values: Any) -> dict[str, Any]:
    """Return the values that are there."""
    return {name: value for name, value in values.items() if value is not None}
