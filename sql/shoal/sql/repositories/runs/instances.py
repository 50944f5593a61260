"""Workflow instances: creating them, loading them as runs, listing them.

However many tasks there are, the event loop has its turn every few milliseconds: what is made of
many rows is made in a thread, and read in pages.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, insert, literal, select, tuple_

from shoal.core.definition.priority import Priority
from shoal.core.definition.selection import Selection
from shoal.core.runs.records import Instance, NewInstance
from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.states import FINISHED_WORKFLOW, TaskState, WorkflowState
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import NotFound, UnreadableRow
from shoal.sql.repositories.definitions.plans import PlanCache, StoredPlan
from shoal.sql.repositories.runs.attempts import new_values, newest
from shoal.sql.repositories.runs.events import INSERT_EVENT, NewEvent
from shoal.sql.repositories.runs.instance_changes import (
    INSERT_ATTEMPT,
    InstanceChanges,
    NewIds,
    events_of,
)
from shoal.sql.repositories.runs.scope import scope
from shoal.sql.schema import tables
from shoal.sql.schema.tables import IS_OPEN, task_instance, workflow, workflow_instance
from shoal.sql.statements.among import Among, numbers
from shoal.sql.statements.reading import (
    OnUnreadable,
    check_values,
    leave_out,
    readable,
    refuse,
    unreadable,
)
from shoal.sql.statements.shapes import (
    check_texts,
    parent_json,
    parent_of,
    selection_json,
    selection_of,
)
from shoal.sql.statements.walks import Conditions, walk_newest

_InstanceList = list[Instance]
_KIND = "workflow instance"
_IDS_PER_QUERY = 500
_ROWS_AT_ONCE = 1_000  # of attempts, read by one query
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


class Instances:
    """The ``workflow_instance`` table, together with the attempts that belong to each."""

    def __init__(self, connection: Connection, plans: PlanCache) -> None:
        self._connection = connection
        self._plans = plans
        self._changes = InstanceChanges(connection)

    async def create(self, new: Sequence[NewInstance]) -> list[Run]:
        """Store instances as ``reserve`` returns them; return their runs. Raises as both do."""
        reserved = await self.reserve(new)
        await self.insert(reserved, {})
        return list(reserved.runs)

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
        await self._connection.change(
            [
                (_INSERT_INSTANCE, instances),
                (INSERT_ATTEMPT, attempts),
                (INSERT_EVENT, events),
            ]
        )

    async def save(self, changes: Sequence[tuple[Run, Decision]], at: datetime) -> NewIds:
        """Store the decisions of several runs; see ``InstanceChanges.save``."""
        return await self._changes.save(changes, at)

    async def get(self, instance_id: int) -> Instance:
        """Return an instance. Raises NotFound."""
        row = await self._connection.first(
            _instances().where(workflow_instance.c.id == instance_id)
        )
        if row is None:
            raise NotFound(_KIND, instance_id)
        return readable([row], _instance, _KIND)[0]

    async def run(self, instance_id: int) -> Run:
        """Return an instance with the newest attempt of each task.

        Raises NotFound, and UnreadableRow for what this version cannot work with.
        """
        runs = await self._runs([workflow_instance.c.id == instance_id], refuse)
        if not runs:
            raise NotFound(_KIND, instance_id)
        return runs[0]

    async def homes(self, ids: Collection[int]) -> dict[int, tuple[int, int]]:
        """Return the workflow and the partition of instances, by id; unknown ones are missing."""
        c = workflow_instance.c
        found: dict[int, tuple[int, int]] = {}
        for chunk in batched(sorted(ids), _IDS_PER_QUERY):
            query = select(c.id, c.workflow_id, c.partition).where(c.id.in_(chunk))
            for row in await self._connection.rows(query):
                found[row.id] = (row.workflow_id, row.partition)
        return found

    async def ends(self, ids: Collection[int]) -> dict[int, datetime | None]:
        """Return when instances ended, None while they have not; unknown ones are missing."""
        c = workflow_instance.c
        found: dict[int, datetime | None] = {}
        for chunk in batched(sorted(ids), _IDS_PER_QUERY):
            query = select(c.id, c.state, c.finished_at).where(c.id.in_(chunk))
            for row in await self._connection.rows(query):
                found[row.id] = row.finished_at if row.state in FINISHED_WORKFLOW else None
        return found

    async def open_runs(self, partition: int, on_unreadable: OnUnreadable = refuse) -> list[Run]:
        """Return what the owner of a partition has to work on, by instance id.

        ``on_unreadable`` is told of what this version cannot work with.
        """
        return await self._runs(
            [workflow_instance.c.partition == partition, IS_OPEN], on_unreadable
        )

    async def _runs(
        self, conditions: Sequence[ColumnElement[bool]], on_unreadable: OnUnreadable
    ) -> list[Run]:
        """Two queries for all runs, one for versions that this process has not seen, or more."""
        rows = await self._connection.rows(
            select(workflow_instance).where(*conditions).order_by(workflow_instance.c.id)
        )
        if not rows:
            return []
        plans, unusable = await self._plans.sound(
            self._connection, {(r.workflow_id, r.version) for r in rows}
        )
        attempts = await self._attempts(conditions)
        runs: list[Run] = []
        made = 0  # attempts, since others had their turn
        for row in rows:
            key, some = (row.workflow_id, row.version), attempts.pop(row.id, [])
            made += len(some)
            try:
                if key in unusable:
                    raise UnreadableRow(_KIND, row.id, str(unusable[key]), row.partition)
                if len(some) > _MOST_AT_ONCE:
                    runs.append(await asyncio.to_thread(_run, row, plans[key], some))
                else:
                    runs.append(_run(row, plans[key], some))
            except Exception as error:  # noqa: BLE001 - of one instance: the others can be read
                on_unreadable(unreadable(_KIND, row, error))
            if made > _MOST_AT_ONCE:
                made = 0
                await asyncio.sleep(0)
        return runs

    async def _attempts(
        self, conditions: Iterable[ColumnElement[bool]]
    ) -> dict[int, list[Row[Any]]]:
        """Return the rows of all attempts by instance, in the order of its tasks, oldest first."""
        t = task_instance.c
        place = (t.workflow_instance_id, t.position, t.attempt)
        query = (
            select(task_instance)
            .join_from(workflow_instance, task_instance)
            .where(*conditions)
            .order_by(*place)
            .limit(_ROWS_AT_ONCE)
        )
        found: defaultdict[int, list[Row[Any]]] = defaultdict(list)
        rows = await self._connection.rows(query)
        while True:
            for row in rows:
                found[row.workflow_instance_id].append(row)
            if len(rows) < _ROWS_AT_ONCE:
                return found
            await asyncio.sleep(0)  # a query that is quick gives nobody a turn
            last = rows[-1]
            behind = (last.workflow_instance_id, last.position, last.attempt)
            rows = await self._connection.rows(query.where(tuple_(*place) > tuple_(*behind)))

    async def list(
        self,
        *,
        project: str | None = None,
        workflow: str | None = None,
        states: Collection[WorkflowState] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        before: tuple[datetime, int] | None = None,
        limit: int = 50,
    ) -> _InstanceList:
        """Return instances by falling (creation time, id), continuing below ``before``.

        ``since`` <= creation time < ``until``. No ``states``: any state.
        """
        c = workflow_instance.c
        home = await scope(self._connection, project, workflow)
        period = list(_period(since, until, before))
        walks: Iterable[Conditions] = [period]
        if home is not None:
            pairs = product(home.ids, sorted(set(states) or WorkflowState))
            walks = [[home.column == i, c.state == state, *period] for i, state in pairs]
        elif states:
            walks = [[c.state == state, *period] for state in sorted(set(states))]
        walks, wanted = list(walks), limit
        while True:
            found = await walk_newest(self._connection, [c.created_at, c.id], walks, wanted)
            if not found:
                return []
            rows = await self._connection.rows(_WITH_IDS, {"ids": [row.id for row in found]})
            instances = readable(rows, _instance, _KIND, leave_out)
            # A page that is short for what was left out would be taken for the last one.
            if len(instances) >= limit or len(found) < wanted:
                instances.sort(key=attrgetter("created_at", "id"), reverse=True)
                return instances[:limit]
            wanted = 2 * wanted + limit

    async def counts(self, project: str | None = None) -> dict[WorkflowState, int]:
        """Return how many instances are in each state; states without any are missing."""
        c = workflow_instance.c
        query = select(c.state, func.count().label("instances")).group_by(c.state)
        if (home := await scope(self._connection, project, None)) is not None:
            query = query.where(home.condition())
        rows = await self._connection.rows(query)
        return {WorkflowState(row.state): row.instances for row in rows}

    async def open_counts(self, partitions: Collection[int]) -> dict[int, int]:
        """Return how many instances masters work on, by partition; those without are missing."""
        c = workflow_instance.c
        query = (
            select(c.partition, func.count().label("instances"))
            .where(IS_OPEN, c.partition.in_(sorted(partitions)))
            .group_by(c.partition)
        )
        return {row.partition: row.instances for row in await self._connection.rows(query)}

    async def task_counts(self, ids: Collection[int]) -> dict[int, dict[TaskState, int]]:
        """Return how many tasks of each instance are in each state, by their newest attempts.

        Tasks in a state that there is not are left out.
        """
        counts: dict[int, dict[TaskState, int]] = {instance_id: {} for instance_id in ids}
        if counts:
            rows = await self._connection.rows(_TASK_COUNTS, {"ids": sorted(counts)})
            for instance_id, state, tasks in readable(
                rows, _task_count, "tasks of workflow instance", leave_out, "workflow_instance_id"
            ):
                counts[instance_id][state] = tasks
        return counts


def _task_count(row: Row[Any]) -> tuple[int, TaskState, int]:
    return row.workflow_instance_id, TaskState(row.state), row.tasks


def _task_counts() -> Select[Any]:
    t, later = task_instance.c, task_instance.alias("later")
    superseded = (
        select(later.c.id)
        .where(
            later.c.workflow_instance_id == t.workflow_instance_id,
            later.c.position == t.position,
            later.c.attempt > t.attempt,
        )
        .exists()
    )
    return (
        select(t.workflow_instance_id, t.state, func.count().label("tasks"))
        .where(Among(t.workflow_instance_id, numbers("ids")), ~superseded)
        .group_by(t.workflow_instance_id, t.state)
    )


_TASK_COUNTS = _task_counts()


def _period(
    since: datetime | None, until: datetime | None, before: tuple[datetime, int] | None
) -> Iterator[ColumnElement[bool]]:
    c = workflow_instance.c
    if since is not None:
        yield c.created_at >= since
    if until is not None:
        yield c.created_at < until
    if before is not None:
        yield tuple_(c.created_at, c.id) < tuple_(
            literal(before[0], c.created_at.type), literal(before[1], c.id.type)
        )


def _instances() -> Select[Any]:
    return (
        select(
            workflow_instance,
            workflow.c.name.label("workflow"),
            tables.project.c.name.label("project"),
        )
        .join_from(workflow_instance, workflow, workflow.c.id == workflow_instance.c.workflow_id)
        .join(tables.project, tables.project.c.id == workflow_instance.c.project_id)
    )


_WITH_IDS = _instances().where(Among(workflow_instance.c.id, numbers("ids")))


def _instance(row: Row[Any]) -> Instance:
    return Instance(
        id=row.id,
        workflow_id=row.workflow_id,
        project=row.project,
        workflow=row.workflow,
        version=row.version,
        state=WorkflowState(row.state),
        reason=row.reason,
        partition=row.partition,
        priority=row.priority,
        parameters=row.parameters,
        logical_time=row.logical_time,
        timezone=row.timezone,
        command_id=row.command_id,
        rerun_of=row.rerun_of,
        run_number=row.run_number,
        schedule_id=row.schedule_id,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        startup=row.startup or {},
        selection=selection_of(row.selection),
        parent=parent_of(row.parent),
        backfill_id=row.backfill_id,
        admitted_at=row.admitted_at,
        warned_at=row.warned_at,
    )


def _run(row: Row[Any], stored: StoredPlan, rows: Sequence[Row[Any]]) -> Run:
    """Return the run. Raises ValueError and others for what no run can be."""
    check_values(row)
    for one in rows:
        check_values(one)
    attempts = newest(rows)
    if attempts.keys() != stored.plan.tasks.keys():
        raise ValueError("its attempts are not those of the tasks of its version")
    Priority(row.priority)
    for value in (row.parameters, row.startup or {}):
        check_texts(value)
    return Run(
        id=row.id,
        plan=stored.plan,
        state=WorkflowState(row.state),
        reason=row.reason,
        partition=row.partition,
        attempts=attempts,
        created_at=row.created_at,
        logical_time=row.logical_time,
        parameters=row.parameters,
        priority=row.priority,
        version=row.version,
        timezone=row.timezone,
        started_at=row.started_at,
        startup=row.startup or {},
        selected=_selected(selection_of(row.selection), stored),
        parent=parent_of(row.parent),
        backfill_id=row.backfill_id,
        admitted_at=row.admitted_at,
        warned_at=row.warned_at,
    )


def _selected(selection: Selection | None, stored: StoredPlan) -> frozenset[str] | None:
    if selection is None:
        return None
    return selection.of(stored.plan.upstream, stored.plan.downstream)


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
        selected=_selected(new.selection, stored),
        parent=new.parent,
        backfill_id=new.backfill_id,
        admitted_at=new.admitted_at,
    )


def _instance_values(new: NewInstance, run: Run, stored: StoredPlan) -> dict[str, Any]:
    return {
        **vars(new),
        "id": run.id,
        "project_id": stored.project_id,
        "state": run.state,
        "reason": run.reason,
        "started_at": run.started_at,
        "parameters": dict(new.parameters),
        "startup": dict(new.startup) or None,
        "selection": selection_json(new.selection),
        "parent": parent_json(new.parent),
        "parent_task_id": None if new.parent is None else new.parent.task_instance_id,
    }


def _task_values(run: Run) -> Iterable[dict[str, Any]]:
    for position, task in enumerate(run.plan.tasks):
        attempt = run.attempts[task]
        assert attempt.id is not None, "ids are reserved before"
        yield new_values(attempt.id, run, position, attempt)


def _created(run: Run) -> NewEvent:
    spec = run.plan.spec
    data = {"workflow": spec.name, "version": run.version, "state": WorkflowState.QUEUED}
    return NewEvent(run.created_at, "instance.state", spec.project, data, run.id)
