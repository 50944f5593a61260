"""Task instances: the attempts of tasks."""

from typing import Annotated

from fastapi import Path

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.runs.filters import Tasks, TaskSort, from_cursor, read_order, to_cursor
from shoal.api.schemas.common import Page
from shoal.api.schemas.runs.instances import TaskDetail, TaskOut
from shoal.api.services import StoreDep
from shoal.api.web.answers import by_id, legible, shown
from shoal.api.web.paging import MAX_ID, Cursor, Limit
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission

router = strict_router("task instances")

TaskInstanceId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[91])]


@router.get("/task-instances", summary="List task instances")
@needs(Permission.PROJECT_READ)
async def list_task_instances(
    store: StoreDep,
    caller: Calling,
    wanted: Tasks,
    sort: TaskSort = "-created_at",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[TaskOut]:
    """Attempts of all instances that fulfil all filters, newest first unless `sort` says otherwise.

    Looks that found nothing (RESCHEDULED) are listed only if they are asked for: of a long wait
    there may be thousands.

    State, worker and instance have indices; the rest is looked for among what these leave. A page
    may have fewer items than asked for, even none, although more follow: the list is over when
    `next` is null.
    """
    order = read_order(sort, wanted)
    after = from_cursor(wanted, order, cursor)
    async with store.unit_of_work(read_only=True) as uow:
        items, position = await uow.tasks.search(wanted, order, after, limit, caller.visible)
    return Page(
        items=shown("task instance", items, TaskOut.model_validate, by_id),
        next=to_cursor(wanted, order, position),
    )


@router.get(
    "/task-instances/{task_instance_id}", summary="Show a task instance", responses=documented(404)
)
@needs(Permission.PROJECT_READ)
async def get_task_instance(store: StoreDep, task_instance_id: TaskInstanceId) -> TaskDetail:
    """One attempt of one task, with its outputs."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.tasks.get(task_instance_id)
    with legible("task instance", task_instance_id):
        return TaskDetail.model_validate(found)
