"""What DEPENDENT tasks wait for, and which tasks wait for a workflow."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Row, and_, delete, or_, select, tuple_

from shoal.core.logic.dependency_rules import TaskRun, WorkflowName, WorkflowRun
from shoal.core.runs.run import SkipCause
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.schema.tables import (
    dependency_wait,
    project,
    task_instance,
    workflow,
    workflow_instance,
)
from shoal.sql.statements.rows import leave_out, readable

_NAMES_PER_QUERY = 200
_RANGES_PER_QUERY = 100
_IDS_PER_QUERY = 500

Range = tuple[datetime, datetime]  # of logical time; the end is excluded


@dataclass(frozen=True)
class Wait:
    """A DEPENDENT task that is checked when a run of a workflow ends."""

    task_instance_id: int
    workflow_id: int
    workflow_instance_id: int  # the instance that waits
    partition: int


class DependencyRepository:
    """The ``dependency_wait`` table, and searches of runs by logical time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def workflow_ids(self, names: Collection[WorkflowName]) -> dict[WorkflowName, int]:
        """Return the ids of workflows, also of deleted ones; those never published are missing."""
        query = select(workflow.c.id, workflow.c.name, project.c.name.label("project")).join_from(
            workflow, project
        )
        found: dict[WorkflowName, int] = {}
        for chunk in batched(sorted(set(names)), _NAMES_PER_QUERY):
            these = query.where(tuple_(project.c.name, workflow.c.name).in_(chunk))
            for row in await self._connection.rows(these):
                found[row.project, row.name] = row.id
        return found

    # -- waiting tasks ---------------------------------------------------------------------------

    async def register(self, waits: Sequence[Wait]) -> None:
        """Store waiting tasks; those that are there stay. The caller has fenced the partitions."""
        if waits:
            await self._connection.insert_new(
                dependency_wait,
                ["task_instance_id", "workflow_id"],
                [asdict(wait) for wait in waits],
            )

    async def forget(self, task_instance_ids: Collection[int]) -> None:
        """Remove those that wait no more. The caller has fenced the partitions."""
        for chunk in batched(sorted(task_instance_ids), _IDS_PER_QUERY):
            await self._connection.execute(
                delete(dependency_wait).where(dependency_wait.c.task_instance_id.in_(chunk))
            )

    async def waiting_for(self, names: Collection[WorkflowName]) -> dict[WorkflowName, set[int]]:
        """Return the partitions of tasks that wait for these workflows; without any: missing."""
        query = (
            select(project.c.name.label("project"), workflow.c.name, dependency_wait.c.partition)
            .join_from(project, workflow)
            .join(dependency_wait)
            .distinct()
        )
        found: defaultdict[WorkflowName, set[int]] = defaultdict(set)
        for chunk in batched(sorted(set(names)), _NAMES_PER_QUERY):
            these = query.where(tuple_(project.c.name, workflow.c.name).in_(chunk))
            for row in await self._connection.rows(these):
                found[row.project, row.name].add(row.partition)
        return dict(found)

    async def leftovers(self, partitions: Collection[int]) -> dict[int, int]:
        """Return tasks that are stored as waiting and do not run: their partitions by id."""
        w = dependency_wait.c
        query = (
            select(w.task_instance_id, w.partition)
            .join_from(
                dependency_wait,
                task_instance,
                task_instance.c.id == w.task_instance_id,
                isouter=True,
            )
            .where(
                w.partition.in_(sorted(partitions)),
                or_(
                    task_instance.c.id.is_(None),
                    task_instance.c.state != TaskState.RUNNING,
                ),
            )
            .distinct()
        )
        rows = await self._connection.rows(query)
        return {row.task_instance_id: row.partition for row in rows}

    # -- what there is -----------------------------------------------------------------------

    async def runs(
        self, ranges: Mapping[int, Collection[Range]], tasks: Collection[str]
    ) -> dict[int, list[WorkflowRun]]:
        """Return the runs of workflows in ranges of logical time, by workflow id.

        ``tasks``: names of tasks whose attempts are wanted, whatever workflow they belong to.
        """
        rows = await self._instances(ranges)
        of = await self._tasks([row.id for row in rows], tasks) if tasks else {}
        found: defaultdict[int, list[WorkflowRun]] = defaultdict(list)

        def read(row: Row[Any]) -> tuple[int, WorkflowRun]:
            return row.workflow_id, WorkflowRun(
                instance_id=row.id,
                logical_time=row.logical_time,
                state=WorkflowState(row.state),
                succeeded=row.succeeded_at is not None,
                is_whole=row.selection is None,
                tasks={name: _task_run(some) for name, some in of.get(row.id, {}).items()},
            )

        for workflow_id, run in readable(rows, read, "workflow instance", leave_out):
            found[workflow_id].append(run)
        return dict(found)

    async def _instances(self, ranges: Mapping[int, Collection[Range]]) -> Sequence[Row[Any]]:
        c = workflow_instance.c
        query = select(c.id, c.workflow_id, c.logical_time, c.state, c.succeeded_at, c.selection)
        flat = [(i, *one) for i, of_one in sorted(ranges.items()) for one in sorted(of_one)]
        found: dict[int, Row[Any]] = {}
        for chunk in batched(flat, _RANGES_PER_QUERY):
            these = or_(
                *(
                    and_(c.workflow_id == i, c.logical_time >= start, c.logical_time < end)
                    for i, start, end in chunk
                )
            )
            found.update({row.id: row for row in await self._connection.rows(query.where(these))})
        return list(found.values())

    async def _tasks(
        self, instance_ids: Collection[int], names: Collection[str]
    ) -> dict[int, dict[str, list[Row[Any]]]]:
        """Return the attempts of tasks by instance and name, the oldest first."""
        t = task_instance.c
        query = select(t.workflow_instance_id, t.task, t.id, t.state, t.skip_cause).order_by(
            t.workflow_instance_id, t.position, t.attempt
        )
        found: defaultdict[int, dict[str, list[Row[Any]]]] = defaultdict(dict)
        for chunk in batched(sorted(instance_ids), _IDS_PER_QUERY):
            these = query.where(t.workflow_instance_id.in_(chunk), t.task.in_(sorted(set(names))))
            rows = await self._connection.rows(these)
            for (instance_id, name), attempts in groupby(
                rows, attrgetter("workflow_instance_id", "task")
            ):
                found[instance_id][name] = list(attempts)
        return dict(found)


def _task_run(attempts: Sequence[Row[Any]]) -> TaskRun:
    """Return how a task stands by its attempts, the oldest first."""
    newest = attempts[-1]
    return TaskRun(
        newest.id,
        TaskState(newest.state),
        any(one.state == TaskState.SUCCEEDED for one in attempts),
        None if newest.skip_cause is None else SkipCause(newest.skip_cause),
    )
