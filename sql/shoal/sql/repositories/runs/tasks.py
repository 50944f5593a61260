"""Task instances: one row for each attempt of a task."""

import asyncio
from collections.abc import Collection
from typing import Any

from sqlalchemy import Row, Select, func, select, tuple_

from shoal.core.access.authorization import Visible
from shoal.core.runs.filters import NEWEST_FIRST, Count, SortOrder, TaskFilter
from shoal.core.runs.records import TaskInstance
from shoal.core.runs.run import SkipCause
from shoal.core.runs.states import TaskState
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.repositories.search.ranking import Position
from shoal.sql.repositories.search.scope import scope
from shoal.sql.repositories.search.tasks import TaskSearch
from shoal.sql.schema import tables
from shoal.sql.schema.tables import IS_NO_PAST_LOOK, task_instance, workflow, workflow_instance
from shoal.sql.statements.rows import leave_out, readable, record_of
from shoal.sql.statements.value_sets import Among, numbers

_TaskList = list[TaskInstance]
ROWS_AT_ONCE = 500  # read by one query, and made records of without a turn for others


class TaskRepository:
    """The ``task_instance`` table, for reading; ``Instances`` writes it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, task_instance_id: int) -> TaskInstance:
        """Return an attempt. Raises NotFound."""
        query = _tasks().where(task_instance.c.id == task_instance_id)
        row = await self._connection.first(query)
        if row is None:
            raise NotFound("task instance", task_instance_id)
        return readable([row], _task, "task instance")[0]

    async def of_instance(self, instance_id: int, all_attempts: bool = False) -> _TaskList:
        """Return the attempts of an instance in the order of its definition.

        Only the newest of each task, or all of them, oldest first within a task.
        """
        t = task_instance.c
        query = (
            _tasks()
            .where(
                t.workflow_instance_id == instance_id, *([] if all_attempts else [IS_NO_PAST_LOOK])
            )
            .order_by(t.position, t.attempt)
            .limit(ROWS_AT_ONCE)
        )
        rows = await self._connection.rows(query)
        found = readable(rows, _task, "task instance", leave_out)
        while len(rows) == ROWS_AT_ONCE:
            await asyncio.sleep(0)  # a query that is quick gives no other task a turn
            behind = tuple_(t.position, t.attempt) > tuple_(rows[-1].position, rows[-1].attempt)
            rows = await self._connection.rows(query.where(behind))
            found += readable(rows, _task, "task instance", leave_out)
        return found if all_attempts else list({one.task: one for one in found}.values())

    async def running(self, instance_id: int, limit: int) -> _TaskList:
        """Return at most ``limit`` RUNNING attempts of an instance, in the order of its definition.

        Raises NotFound if there is no such instance.
        """
        t = task_instance.c
        running = (t.workflow_instance_id == instance_id, t.state == TaskState.RUNNING)
        query = _tasks().where(*running).order_by(t.position, t.attempt).limit(limit)
        rows = await self._connection.rows(query)
        if not rows:
            known = select(workflow_instance.c.id).where(workflow_instance.c.id == instance_id)
            if await self._connection.first(known) is None:
                raise NotFound("workflow instance", instance_id)
        return readable(rows, _task, "task instance", leave_out)

    async def newest(self, instance_id: int, task: str) -> TaskInstance | None:
        """Return the newest attempt of one task of an instance; None: it has no such task."""
        t = task_instance.c
        query = _tasks().where(t.workflow_instance_id == instance_id, t.task == task)
        row = await self._connection.first(query.order_by(t.attempt.desc()).limit(1))
        return None if row is None else readable([row], _task, "task instance")[0]

    async def counts(self, states: Collection[TaskState]) -> dict[TaskState, int]:
        """Return how many attempts are in each of ``states``. Reads one index entry for each."""
        t = task_instance.c
        query = (
            select(t.state, func.count().label("attempts"))
            .where(t.state.in_(sorted(states)))
            .group_by(t.state)
        )
        found = {row.state: row.attempts for row in await self._connection.rows(query)}
        return {state: found.get(state, 0) for state in states}

    async def list(
        self,
        *,
        states: Collection[TaskState] = (),
        worker: str | None = None,
        project: str | None = None,
        workflow: str | None = None,
        before_id: int | None = None,
        limit: int = 50,
        visible: Visible = None,
    ) -> tuple[_TaskList, int | None]:
        """Return attempts of all instances, newest first, continuing below ``before_id``.

        Without ``states`` those in any state but RESCHEDULED: a long wait may have thousands.

        And the id below which to continue; None: there are no more. Of long histories each call
        reads a part, so it may return less than ``limit``, even nothing, although more follow.
        """
        wanted = TaskFilter(
            project=project, workflow=workflow, state=frozenset(states), worker=worker
        )
        after = None if before_id is None else (0, before_id)
        found, next_ = await self.search(wanted, NEWEST_FIRST, after, limit, visible)
        return found, None if next_ is None else next_[1]

    async def search(
        self,
        wanted: TaskFilter,
        order: SortOrder = NEWEST_FIRST,
        after: Position | None = None,
        limit: int = 50,
        visible: Visible = None,
    ) -> tuple[_TaskList, Position | None]:
        """Return attempts behind a position of an order, and where to go on; None: nowhere.

        Each call reads a part of a long history, as ``list`` does. Raises TooManyToSort.
        """
        home = await scope(self._connection, wanted.project, wanted.workflow, visible)
        page = await TaskSearch(self._connection, wanted, home).page(order, after, limit)
        if not page.ids:
            return [], page.next
        rows = await self._connection.rows(_WITH_IDS, {"ids": list(page.ids)})
        found = {one.id: one for one in readable(rows, _task, "task instance", leave_out)}
        return [found[one] for one in page.ids if one in found], page.next

    async def known(self, ids: Collection[int], visible: Visible = None) -> _TaskList:
        """Return attempts by their ids, of projects that are visible, in no order."""
        if not ids:
            return []
        query = _WITH_IDS
        if visible is not None:
            query = query.where(workflow_instance.c.project_id.in_(sorted(visible)))
        rows = await self._connection.rows(query, {"ids": list(ids)})
        return readable(rows, _task, "task instance", leave_out)

    async def counted(self, wanted: TaskFilter, visible: Visible) -> dict[TaskState, Count]:
        """Return how many attempts are in each state, as far as they are counted."""
        home = await scope(self._connection, wanted.project, wanted.workflow, visible)
        return await TaskSearch(self._connection, wanted, home).counts()


def _tasks() -> Select[Any]:
    return (
        select(
            task_instance,
            workflow.c.name.label("workflow"),
            tables.project.c.name.label("project"),
        )
        .join_from(task_instance, workflow_instance)
        .join(workflow, workflow.c.id == workflow_instance.c.workflow_id)
        .join(tables.project, tables.project.c.id == workflow_instance.c.project_id)
    )


_WITH_IDS = _tasks().where(Among(task_instance.c.id, numbers("ids")))


def _task(row: Row[Any]) -> TaskInstance:
    return record_of(
        TaskInstance,
        row,
        state=TaskState(row.state),
        skip_cause=None if row.skip_cause is None else SkipCause(row.skip_cause),
        outputs=row.outputs or {},
        detail=row.detail or {},
    )
