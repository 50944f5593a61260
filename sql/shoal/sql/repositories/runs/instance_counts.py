"""How many workflow instances, and tasks of theirs, are in each state."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Row, Select, func, select

from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql.driver.connection import Connection
from shoal.sql.repositories.search.scope import scope
from shoal.sql.schema.tables import IS_NO_PAST_LOOK, IS_OPEN, task_instance, workflow_instance
from shoal.sql.statements.rows import leave_out, readable
from shoal.sql.statements.value_sets import Among, numbers


class StateCounts:
    """Counts rows of ``workflow_instance`` and ``task_instance``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def by_state(self, project: str | None = None) -> dict[WorkflowState, int]:
        """Return how many instances are in each state; states without any are missing."""
        c = workflow_instance.c
        query = select(c.state, func.count().label("instances")).group_by(c.state)
        if (home := await scope(self._connection, project, None)) is not None:
            query = query.where(home.condition())
        rows = await self._connection.rows(query)
        return {WorkflowState(row.state): row.instances for row in rows}

    async def open(self, partitions: Collection[int]) -> dict[int, int]:
        """Return how many instances masters work on, by partition; those without are missing."""
        c = workflow_instance.c
        query = (
            select(c.partition, func.count().label("instances"))
            .where(IS_OPEN, c.partition.in_(sorted(partitions)))
            .group_by(c.partition)
        )
        return {row.partition: row.instances for row in await self._connection.rows(query)}

    async def tasks(self, ids: Collection[int]) -> dict[int, dict[TaskState, int]]:
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
        .where(Among(t.workflow_instance_id, numbers("ids")), IS_NO_PAST_LOOK, ~superseded)
        .group_by(t.workflow_instance_id, t.state)
    )


_TASK_COUNTS = _task_counts()
