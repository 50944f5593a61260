"""Workflow instances: lists and counts of them, each with its tasks, labels and progress."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Body, Path, Query, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.insight.baselines import expected_by_tasks, expected_of
from shoal.api.operations.runs.progress import MOST
from shoal.api.routes.runs.filters import (
    Instances,
    InstanceSort,
    Tasks,
    from_cursor,
    read_order,
    to_cursor,
)
from shoal.api.schemas.common import Page
from shoal.api.schemas.runs.instances import InstanceDetail, InstanceOut, InstanceTask, ProgressOut
from shoal.api.schemas.runs.listing import (
    CountOut,
    InstanceCounts,
    LabelChanges,
    LabelsOut,
    TaskCounts,
)
from shoal.api.services import BaselinesDep, ProgressDep, StoreDep
from shoal.api.web.answers import answer, by_id, legible, shown
from shoal.api.web.paging import MAX_ID, Cursor, Limit
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import Priority
from shoal.core.insight.expectation import NOTHING, ExpectedRun
from shoal.core.runs.filters import MOST_COUNTED, Count
from shoal.core.runs.records import Instance
from shoal.core.runs.states import TaskState

router = strict_router("instances")

InstanceId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[17])]


@router.get("/instances", summary="List workflow instances")
@needs(Permission.PROJECT_READ)
async def list_instances(
    store: StoreDep,
    baselines: BaselinesDep,
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
    async with store.unit_of_work(read_only=True) as uow:
        items, position = await uow.instances.search(wanted, order, after, limit, caller.visible)
        ids = [item.id for item in items]
        counts, labels = await uow.instance_counts.tasks(ids), await uow.labels.of(ids)
        now = store.clock()
        coming = await expected_of(uow, baselines, items, now)
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
    store: StoreDep,
    baselines: BaselinesDep,
    instance_id: InstanceId,
    attempts: Annotated[
        Literal["newest", "all"],
        Query(description="all: earlier attempts of each task as well, also RESCHEDULED ones."),
    ] = "newest",
) -> Response:
    """An instance with its tasks in the order of the definition."""
    async with store.unit_of_work(read_only=True) as uow:
        instance = await uow.instances.get(instance_id)
        version = await uow.workflows.version(instance.workflow_id, instance.version)
        tasks = await uow.tasks.of_instance(instance_id, attempts == "all")
        counts = await uow.instance_counts.tasks([instance_id])
        labels = await uow.labels.of([instance_id])
        now = store.clock()
        depends_on = {task.name: list(task.depends_on) for task in version.spec.tasks}
        newest = {task.task: task for task in tasks}  # the attempts of a task are in their order
        coming = await expected_by_tasks(uow, baselines, instance, depends_on, newest, now)

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


@router.patch(
    "/instances/{instance_id}/labels",
    summary="Change the labels of an instance",
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.RUN_OPERATE, audit="labels.change")
async def change_labels(
    store: StoreDep, instance_id: InstanceId, body: Annotated[LabelChanges, Body()]
) -> LabelsOut:
    """Sets the labels that are named, and removes those whose value is null; others stay.

    So two who change different labels at the same time do not undo each other.
    """
    async with store.unit_of_work() as uow:
        labels = await uow.labels.change(instance_id, body.changes(), store.clock())
        await uow.commit()
    return LabelsOut(labels=labels)


S = TypeVar("S", bound=StrEnum)


@router.get("/instance-counts", summary="Count workflow instances by state")
@needs(Permission.PROJECT_READ)
async def count_instances(store: StoreDep, caller: Calling, wanted: Instances) -> InstanceCounts:
    """How many instances fulfil all filters, in all and in each state.

    Nothing is counted beyond 1,000 (`is_more`). What no index serves is counted among the newest
    2,000 that the other filters leave.
    """
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.instances.counted(wanted, caller.visible)
    return InstanceCounts(total=_total(found), states=_shown(found))


@router.get("/task-instance-counts", summary="Count task instances by state")
@needs(Permission.PROJECT_READ)
async def count_task_instances(store: StoreDep, caller: Calling, wanted: Tasks) -> TaskCounts:
    """How many attempts fulfil all filters, in all and in each state, among the newest 2,000."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.tasks.counted(wanted, caller.visible)
    return TaskCounts(total=_total(found), states=_shown(found))


def _total(counts: Mapping[S, Count]) -> CountOut:
    number = sum(one.count for one in counts.values())
    is_more = number > MOST_COUNTED or any(one.is_more for one in counts.values())
    return CountOut(count=min(number, MOST_COUNTED), is_more=is_more)


def _shown(counts: Mapping[S, Count]) -> dict[S, CountOut]:
    return {
        state: CountOut(count=one.count, is_more=one.is_more)
        for state, one in counts.items()
        if one.count or one.is_more
    }


@router.get(
    "/instances/{instance_id}/progress",
    summary="Show how far the running tasks are",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_progress(
    store: StoreDep, progress_reader: ProgressDep, instance_id: InstanceId
) -> list[ProgressOut]:
    """What the work of running tasks says of itself, as far as it says anything.

    At most 1,000 tasks. A worker that does not answer within seconds is left out.
    """
    async with store.unit_of_work(read_only=True) as uow:
        tasks = await uow.tasks.running(instance_id, MOST)
    return [
        ProgressOut.of_record(
            one,
            total=one.total if one.HasField("total") else None,
            at=datetime.fromtimestamp(one.at, UTC),
        )
        for one in await progress_reader.read(tasks)
    ]
