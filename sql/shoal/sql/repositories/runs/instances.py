"""Workflow instances: loading them as runs, storing decisions, listing them.

However many tasks there are, the event loop has its turn every few milliseconds: what is made of
many rows is made in a thread, and read in pages.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, select, tuple_

from shoal.core.access.authorization import Visible
from shoal.core.definition.fields import Priority
from shoal.core.runs.commands import Parent
from shoal.core.runs.filters import NEWEST_FIRST, Count, InstanceFilter, SortOrder
from shoal.core.runs.records import Instance
from shoal.core.runs.run import Decision, Run
from shoal.core.runs.states import FINISHED_WORKFLOW, WorkflowState
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import NotFound, UnreadableRow
from shoal.sql.repositories.plans import PlanCache, StoredPlan
from shoal.sql.repositories.runs.attempts import newest
from shoal.sql.repositories.runs.instance_changes import InstanceChanges, NewIds
from shoal.sql.repositories.search.instances import InstanceSearch
from shoal.sql.repositories.search.ranking import Position
from shoal.sql.schema import tables
from shoal.sql.schema.tables import (
    IS_NO_PAST_LOOK,
    IS_OPEN,
    task_instance,
    workflow,
    workflow_instance,
)
from shoal.sql.statements.json_columns import (
    check_texts,
    id_and_parent,
    parent_of,
    selection_of,
)
from shoal.sql.statements.rows import (
    OnUnreadable,
    check_values,
    leave_out,
    readable,
    record_of,
    refuse,
    unreadable,
)
from shoal.sql.statements.value_sets import Among, numbers

_InstanceList = list[Instance]
_KIND = "workflow instance"
_IDS_PER_QUERY = 500
_ROWS_AT_ONCE = 1_000  # of attempts, read by one query
_MOST_AT_ONCE = 500  # tasks whose rows are made in the event loop's own thread


class Instances:
    """The ``workflow_instance`` table, together with the attempts that belong to each."""

    def __init__(self, connection: Connection, plans: PlanCache) -> None:
        self._connection = connection
        self._plans = plans
        self._changes = InstanceChanges(connection)

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

    async def parents(self, ids: Collection[int]) -> dict[int, Parent]:
        """Return the parents of instances, by id; those without a readable one are missing."""
        c = workflow_instance.c
        found: dict[int, Parent] = {}
        for chunk in batched(sorted(ids), _IDS_PER_QUERY):
            query = select(c.id, c.parent).where(c.id.in_(chunk), c.parent.is_not(None))
            found |= readable(await self._connection.rows(query), id_and_parent, _KIND, leave_out)
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

    async def last_id(self) -> int:
        """Return the highest id that an instance has ever had in this database; 0: none."""
        return await self._connection.last_id(workflow_instance)

    async def open_runs(self, partition: int, on_unreadable: OnUnreadable = refuse) -> list[Run]:
        """Return what the owner of a partition has to work on, by instance id.

        ``on_unreadable`` gets what this version cannot work with.
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
        """Return the rows of attempts by instance, in the order of its tasks, oldest first.

        Without looks that found nothing, which are never the newest.
        """
        t = task_instance.c
        place = (t.workflow_instance_id, t.position, t.attempt)
        query = (
            select(task_instance)
            .join_from(workflow_instance, task_instance)
            .where(*conditions, IS_NO_PAST_LOOK)
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
            await asyncio.sleep(0)  # a quick query gives other tasks no turn
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
        visible: Visible = None,
    ) -> _InstanceList:
        """Return instances by falling (creation time, id), continuing below ``before``.

        ``since`` <= creation time < ``until``. No ``states``: any state.
        """
        wanted = InstanceFilter(
            project=project,
            workflow=workflow,
            state=frozenset(states),
            since=since,
            until=until,
        )
        return (await self.search(wanted, NEWEST_FIRST, before, limit, visible))[0]

    async def search(
        self,
        wanted: InstanceFilter,
        order: SortOrder = NEWEST_FIRST,
        after: Position | None = None,
        limit: int = 50,
        visible: Visible = None,
    ) -> tuple[_InstanceList, Position | None]:
        """Return instances behind a position of an order, and where to go on; None: nowhere.

        Each call reads a part of a long history, so it may return less than ``limit``, even
        nothing, although more follow. Raises TooManyToSort.
        """
        search = InstanceSearch(self._connection, wanted, visible)
        found: _InstanceList = []
        while True:
            wanted_now = limit - len(found)
            page = await search.page(order, after, wanted_now)
            found += await self.known(page.ids)
            # One that is short for rows that were left out goes on; others have read enough.
            is_short = len(page.ids) == wanted_now and len(found) < limit
            if page.next is None or not is_short:
                return found, page.next
            after = page.next

    async def known(self, ids: Sequence[int]) -> _InstanceList:
        """Return instances in the order of their ids here; those that are not there are missing."""
        if not ids:
            return []
        rows = await self._connection.rows(_WITH_IDS, {"ids": list(ids)})
        found = {one.id: one for one in readable(rows, _instance, _KIND, leave_out)}
        return [found[one] for one in ids if one in found]

    async def counted(self, wanted: InstanceFilter, visible: Visible) -> dict[WorkflowState, Count]:
        """Return how many instances are in each state, as far as they are counted."""
        return await InstanceSearch(self._connection, wanted, visible).counts()


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
    return record_of(
        Instance,
        row,
        state=WorkflowState(row.state),
        startup=row.startup or {},
        selection=selection_of(row.selection),
        parent=parent_of(row.parent),
    )


def _run(row: Row[Any], stored: StoredPlan, rows: Sequence[Row[Any]]) -> Run:
    """Return the run. Raises ValueError and others for what no run can be."""
    check_values(row)
    for one in rows:
        check_values(one)
    attempts = newest(rows)
    if attempts.keys() != stored.plan.tasks.keys():
        raise ValueError("its attempts do not match the tasks of its version")
    Priority(row.priority)
    for value in (row.parameters, row.startup or {}):
        check_texts(value)
    return record_of(
        Run,
        row,
        plan=stored.plan,
        state=WorkflowState(row.state),
        attempts=attempts,
        startup=row.startup or {},
        selected=stored.selected(selection_of(row.selection)),
        parent=parent_of(row.parent),
    )
