"""Creating workflow instances, with an attempt of every task.

However many tasks there are, the event loop has its turn every few milliseconds: what is made of
many rows is made in a thread.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert

from shoal.core.runs.records import NewInstance
from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.states import WorkflowState
from shoal.sql.driver.connection import Connection
from shoal.sql.repositories.events import INSERT_EVENT, NewEvent
from shoal.sql.repositories.plans import PlanCache, StoredPlan
from shoal.sql.repositories.runs.attempts import new_values
from shoal.sql.repositories.runs.instance_changes import INSERT_ATTEMPT, events_of
from shoal.sql.repositories.runs.labels import INSERT_LABEL, label_values
from shoal.sql.schema.tables import task_instance, workflow_instance
from shoal.sql.statements.json_columns import parent_json, selection_json

_MOST_AT_ONCE = 500  # tasks whose rows are made in the event loop's own thread
_INSERT_INSTANCE = insert(workflow_instance)


@dataclass(frozen=True)
class ReservedInstances:
    """New instances with the ids that they are to have; nothing of them is stored yet."""

    new: Sequence[NewInstance]
    plans: Sequence[StoredPlan]
    runs: Sequence[Run]  # one for each of ``new``, with a WAITING attempt of every task

    @property
    def are_many(self) -> bool:
        """Whether they have too many tasks for one step of the event loop."""
        return sum(len(run.attempts) for run in self.runs) > _MOST_AT_ONCE


class NewInstances:
    """Writes new rows of ``workflow_instance``, together with the attempts that belong to each."""

    def __init__(self, connection: Connection, plans: PlanCache) -> None:
        self._connection = connection
        self._plans = plans

    async def reserve(self, new: Sequence[NewInstance]) -> ReservedInstances:
        """Allot ids to instances and their attempts; return them as runs, nothing stored.

        Attempt ids ascend in the order of the tasks in the definition. Raises NotFound for an
        unknown version.
        """
        if not new:
            return ReservedInstances((), (), ())
        plans = await self._plans.get(self._connection, [(n.workflow_id, n.version) for n in new])
        of = [plans[one.workflow_id, one.version] for one in new]
        tasks = sum(len(one.plan.tasks) for one in of)
        ids, task_ids = await self._connection.reserve_ids(
            {workflow_instance: len(new), task_instance: tasks}
        )
        if tasks > _MOST_AT_ONCE:
            runs = await asyncio.to_thread(_new_runs, new, of, ids, task_ids)
        else:
            runs = _new_runs(new, of, ids, task_ids)
        return ReservedInstances(new, of, runs)

    async def insert(self, reserved: ReservedInstances, begun: Mapping[int, Decision]) -> None:
        """Store reserved instances, in the same transaction.

        ``begun``: first decisions by instance id. They are applied to the runs already, and stored
        with them as ``save`` would do afterwards; they must end nothing and have no new attempts.
        Raises AlreadyExists if a command has an instance already.
        """
        if not reserved.new:
            return
        if reserved.are_many:  # nothing else knows these runs yet
            rows = await asyncio.to_thread(_new_rows, reserved, begun)
        else:
            rows = _new_rows(reserved, begun)
        instances, attempts, events = rows
        labels = [row for one in _labelled(reserved) for row in one]
        await self._connection.change(
            [
                (_INSERT_INSTANCE, instances),
                (INSERT_LABEL, labels),
                (INSERT_ATTEMPT, attempts),
                (INSERT_EVENT, events),
            ]
        )


def _new_runs(
    new: Sequence[NewInstance],
    plans: Sequence[StoredPlan],
    ids: Iterable[int],
    task_ids: Iterable[int],
) -> list[Run]:
    free = iter(task_ids)
    of = zip(new, ids, plans, strict=True)
    return [_new_run(one, row_id, plan, free) for one, row_id, plan in of]


_Rows = list[dict[str, Any]]


def _new_rows(
    reserved: ReservedInstances, begun: Mapping[int, Decision]
) -> tuple[_Rows, _Rows, _Rows]:
    """Return the rows of instances, attempts and events. On any thread."""
    of = zip(reserved.new, reserved.runs, reserved.plans, strict=True)
    instances = [_instance_values(one, run, plan) for one, run, plan in of]
    attempts = [row for run in reserved.runs for row in _task_values(run)]
    events = [_created(run) for run in reserved.runs]
    for run in reserved.runs:
        if (decision := begun.get(run.id)) is not None:
            events.extend(events_of((run, decision), {}, run.created_at))
    return instances, attempts, [vars(one) for one in events]


def _new_run(new: NewInstance, row_id: int, stored: StoredPlan, task_ids: Iterable[int]) -> Run:
    # In this order: zip takes from the tasks first and leaves the ids alone at their end.
    attempts = {
        task: Attempt(task, 1, id=task_id)
        for task, task_id in zip(stored.plan.tasks, task_ids, strict=False)
    }
    return Run(
        id=row_id,
        plan=stored.plan,
        state=WorkflowState.QUEUED,
        partition=new.partition,
        attempts=attempts,
        created_at=new.created_at,
        logical_time=new.logical_time,
        parameters=dict(new.parameters),
        priority=new.priority,
        version=new.version,
        timezone=new.timezone,
        startup=dict(new.startup),
        selected=stored.selected(new.selection),
        parent=new.parent,
        backfill_id=new.backfill_id,
        admitted_at=new.admitted_at,
        deadline_at=new.deadline_at,
    )


def _instance_values(new: NewInstance, run: Run, stored: StoredPlan) -> dict[str, Any]:
    return {
        **{name: value for name, value in vars(new).items() if name != "labels"},
        "id": run.id,
        "project_id": stored.project_id,
        "state": run.state,
        "reason": run.reason,
        "started_at": run.started_at,
        "parameters": dict(new.parameters),
        "startup": dict(new.startup) or None,
        "selection": selection_json(new.selection),
        "parent": parent_json(new.parent),
        "root_id": None if new.parent is None else new.parent.root,
        "parent_task_id": None if new.parent is None else new.parent.task_instance_id,
    }


def _labelled(reserved: ReservedInstances) -> Iterable[list[dict[str, Any]]]:
    for new, run, plan in zip(reserved.new, reserved.runs, reserved.plans, strict=True):
        yield label_values(run.id, plan.project_id, new.created_at, new.labels)


def _task_values(run: Run) -> Iterable[dict[str, Any]]:
    for position, task in enumerate(run.plan.tasks):
        attempt = run.attempts[task]
        assert attempt.id is not None, "ids are reserved before"
        yield new_values(attempt.id, run, position, attempt)


def _created(run: Run) -> NewEvent:
    spec = run.plan.spec
    data = {"workflow": spec.name, "version": run.version, "state": WorkflowState.QUEUED}
    return NewEvent(run.created_at, "instance.state", spec.project, data, run.id)
