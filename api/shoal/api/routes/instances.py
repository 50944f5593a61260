"""Workflow instances."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response

from shoal.api.access.callers import Calling
from shoal.api.access.guard import needs
from shoal.api.schemas.common import Instant, Page
from shoal.api.schemas.runs import InstanceDetail, InstanceOut, InstanceTask
from shoal.api.services import Shoal
from shoal.api.web.answers import answer
from shoal.api.web.legible import by_id, legible, shown
from shoal.api.web.paging import (
    MAX_ID,
    Cursor,
    Limit,
    bad_cursor,
    decode_cursor,
    encode_cursor,
    page,
)
from shoal.api.web.problems import documented
from shoal.api.web.route import strict_router
from shoal.core.access.permissions import Permission
from shoal.core.definition.priority import Priority
from shoal.core.runs.records import Instance
from shoal.core.runs.states import TaskState, WorkflowState

router = strict_router("instances")

InstanceId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[17])]


@router.get("/instances", summary="List workflow instances")
@needs(Permission.PROJECT_READ)
async def list_instances(
    shoal: Shoal,
    caller: Calling,
    project: Annotated[str | None, Query(description="Only those of this project.")] = None,
    workflow: Annotated[str | None, Query(description="Only those of this workflow.")] = None,
    state: Annotated[
        list[WorkflowState] | None, Query(description="Only in one of these; repeatable.")
    ] = None,
    since: Annotated[Instant | None, Query(description="Created at this instant or later.")] = None,
    until: Annotated[Instant | None, Query(description="Created before.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[InstanceOut]:
    """Instances, newest first."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.instances.list(
            project=project,
            workflow=workflow,
            states=state or (),
            since=since,
            until=until,
            before=_position(cursor),
            limit=limit + 1,
            visible=caller.visible,
        )
        items, more = page(found, limit)
        counts = await uow.instance_counts.tasks([item.id for item in items])
    return Page(
        items=shown(
            "workflow instance",
            items,
            lambda item: InstanceOut(**_values(item, counts[item.id])),
            by_id,
        ),
        next=_cursor(items[-1]) if more else None,
    )


def _cursor(last: Instance) -> str:
    return encode_cursor("instances", last.created_at.isoformat(), last.id)


def _position(cursor: str | None) -> tuple[datetime, int] | None:
    """Return creation time and id of the instance that ``_cursor`` has made it of."""
    position = decode_cursor("instances", cursor, str, int)
    if position is None:
        return None
    try:
        created_at = datetime.fromisoformat(position[0]).astimezone(UTC)
    except (ValueError, OverflowError):
        raise bad_cursor() from None
    return created_at, position[1]


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

    def made() -> InstanceDetail:
        depends_on = {task.name: list(task.depends_on) for task in version.spec.tasks}
        with legible("workflow instance", instance_id):
            return InstanceDetail(
                **_values(instance, counts[instance_id]),
                tasks=shown(
                    "task instance",
                    tasks,
                    lambda task: InstanceTask(**vars(task), depends_on=depends_on[task.task]),
                    by_id,
                ),
            )

    return await answer(made, len(tasks))


def _values(instance: Instance, counts: Mapping[TaskState, int]) -> dict[str, Any]:
    return {
        **vars(instance),
        "priority": Priority(instance.priority).name,
        "parent": None if instance.parent is None else vars(instance.parent),
        "task_counts": dict(counts),
    }
