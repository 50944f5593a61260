"""Task instances: the attempts of tasks."""

from typing import Annotated

from fastapi import Path, Query

from shoal.api.access.callers import Calling
from shoal.api.access.guard import needs
from shoal.api.schemas.common import Page
from shoal.api.schemas.runs import TaskDetail, TaskOut
from shoal.api.services import Shoal
from shoal.api.web.legible import by_id, legible, shown
from shoal.api.web.paging import MAX_ID, Cursor, Limit, before_id, encode_cursor
from shoal.api.web.problems import documented
from shoal.api.web.route import strict_router
from shoal.core.access.permissions import Permission
from shoal.core.runs.states import TaskState

router = strict_router("task instances")

TaskInstanceId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[91])]


@router.get("/task-instances", summary="List task instances")
@needs(Permission.PROJECT_READ)
async def list_task_instances(
    shoal: Shoal,
    caller: Calling,
    state: Annotated[
        list[TaskState] | None,
        Query(description="Only in one of these; repeatable. Default: all but RESCHEDULED."),
    ] = None,
    project: Annotated[str | None, Query(description="Only those of this project.")] = None,
    workflow: Annotated[str | None, Query(description="Only those of this workflow.")] = None,
    worker: Annotated[str | None, Query(description="Only those that this worker took.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[TaskOut]:
    """Attempts of all instances, newest first.

    Looks that found nothing (RESCHEDULED) are listed only if they are asked for: of a long wait
    there may be thousands.

    With several filters a page may have fewer items than asked for, even none, although more
    follow: the list is over when `next` is null.
    """
    async with shoal.database.unit_of_work(read_only=True) as uow:
        items, before = await uow.tasks.list(
            states=state or (),
            worker=worker,
            project=project,
            workflow=workflow,
            before_id=before_id("task-instances", cursor),
            limit=limit,
            visible=caller.visible,
        )
    return Page(
        items=shown("task instance", items, TaskOut.model_validate, by_id),
        next=None if before is None else encode_cursor("task-instances", before),
    )


@router.get(
    "/task-instances/{task_instance_id}", summary="Show a task instance", responses=documented(404)
)
@needs(Permission.PROJECT_READ)
async def get_task_instance(shoal: Shoal, task_instance_id: TaskInstanceId) -> TaskDetail:
    """One attempt of one task, with its outputs."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.tasks.get(task_instance_id)
    with legible("task instance", task_instance_id):
        return TaskDetail.model_validate(found)
