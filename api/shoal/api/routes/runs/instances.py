"""Workflow instances."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.insight.baselines import expected_by_tasks, expected_of
from shoal.api.routes.runs.filters import (
    Instances,
    InstanceSort,
    from_cursor,
    read_order,
    to_cursor,
)
from shoal.api.schemas.common import Page
from shoal.api.schemas.runs.instances import InstanceDetail, InstanceOut, InstanceTask
from shoal.api.services import Shoal
from shoal.api.web.answers import answer, by_id, legible, shown
from shoal.api.web.paging import MAX_ID, Cursor, Limit
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import Priority
from shoal.core.insight.expectation import NOTHING, ExpectedRun
from shoal.core.runs.records import Instance
from shoal.core.runs.states import TaskState

router = strict_router("instances")

InstanceId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[17])]


@router.get("/instances", summary="List workflow instances")
@needs(Permission.PROJECT_READ)
async def list_instances(
    shoal: Shoal,
    caller: Calling,
    wanted: Instances,
    sort: InstanceSort = "-created_at",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[InstanceOut]:
    """Instances that fulfil all filters, newest first unless `sort` says otherwise.

    Project, workflow, state, time of creation, schedule, backfill, parent and the first label have
    indices. What else is asked for is looked for among what these leave, a part of the history for
    each page: a page may have fewer items than asked for, even none, although more follow. The list
    is over when `next` is null.
    """
    order = read_order(sort, wanted)
    after = from_cursor(wanted, order, cursor)
    async with shoal.database.unit_of_work(read_only=True) as uow:
        items, position = await uow.instances.search(wanted, order, after, limit, caller.visible)
        ids = [item.id for item in items]
        counts, labels = await uow.instance_counts.tasks(ids), await uow.labels.of(ids)
        now = shoal.clock()
        coming = await expected_of(uow, shoal.usual, items, now)
    return Page(
        items=shown(
            "workflow instance",
            items,
            lambda item: InstanceOut(
                **instance_values(item, counts[item.id], labels, now, coming.get(item.id, NOTHING))
            ),
            by_id,
        ),
        next=to_cursor(wanted, order, position),
    )


@router.get(
    "/instances/{instance_id}",
    summary="Show an instance",
    response_model=InstanceDetail,
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_instance(
    shoal: Shoal,
    instance_id: InstanceId,
    attempts: Annotated[
        Literal["newest", "all"],
        Query(description="all: earlier attempts of each task as well, also RESCHEDULED ones."),
    ] = "newest",
) -> Response:
    """An instance with its tasks in the order of the definition."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        instance = await uow.instances.get(instance_id)
        version = await uow.workflows.version(instance.workflow_id, instance.version)
        tasks = await uow.tasks.of_instance(instance_id, attempts == "all")
        counts = await uow.instance_counts.tasks([instance_id])
        labels = await uow.labels.of([instance_id])
        now = shoal.clock()
        depends_on = {task.name: list(task.depends_on) for task in version.spec.tasks}
        newest = {task.task: task for task in tasks}  # the attempts of a task are in their order
        coming = await expected_by_tasks(uow, shoal.usual, instance, depends_on, newest, now)

    def made() -> InstanceDetail:
        with legible("workflow instance", instance_id):
            return InstanceDetail(
                **instance_values(instance, counts[instance_id], labels, now, coming),
                tasks=shown(
                    "task instance",
                    tasks,
                    lambda task: InstanceTask(**vars(task), depends_on=depends_on[task.task]),
                    by_id,
                ),
            )

    return await answer(made, len(tasks))


def instance_values(
    instance: Instance,
    counts: Mapping[TaskState, int],
    labels: Mapping[int, Mapping[str, str]],
    now: datetime,
    coming: ExpectedRun,
) -> dict[str, Any]:
    """Return what ``InstanceOut`` is made of; ``labels``: by instance."""
    return {
        **vars(instance),
        "priority": Priority(instance.priority).name,
        "parent": None if instance.parent is None else vars(instance.parent),
        "task_counts": dict(counts),
        "labels": labels.get(instance.id, {}),
        "is_late": instance.is_late(now),
        "expected_end_at": coming.end_at,
        "late_after_at": coming.late_after_at,
    }
