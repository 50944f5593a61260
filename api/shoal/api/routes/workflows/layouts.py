"""Layouts: where the tasks of a workflow are on the canvas, the same for all users."""

from typing import Annotated

from fastapi import Body, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.projects import ProjectName
from shoal.api.routes.workflows.published import WorkflowName
from shoal.api.schemas.authoring import LayoutIn, LayoutOut, PlaceOut
from shoal.api.services import StoreDep
from shoal.api.web.answers import legible
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.layout import Layout
from shoal.sql import UnitOfWork

router = strict_router("workflows")

_LAYOUT = "/projects/{project}/workflows/{name}/layout"


@router.get(_LAYOUT, summary="Show where tasks are", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_layout(
    store: StoreDep, project: ProjectName, name: WorkflowName, response: Response
) -> LayoutOut:
    """Positions, groups and folded groups. Empty if nothing was arranged."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.get(project, name)
        return tagged(response, await _stored(uow, found.id, name))


@router.put(_LAYOUT, summary="Arrange tasks", responses=documented(400, 404, 413, 415))
@needs(Permission.PROJECT_EDIT, audit="workflow.layout")
async def put_layout(
    store: StoreDep,
    caller: Calling,
    project: ProjectName,
    name: WorkflowName,
    body: Annotated[LayoutIn, Body()],
    condition: Condition,
) -> LayoutOut:
    """Replaces the layout. Versions and drafts stay as they are, and nothing is run.

    It follows the workflow to another name and is copied with it; it goes when that is deleted.
    """
    async with store.unit_of_work() as uow:
        found = await uow.workflows.lock(project, name)
        await condition.strictly().check(lambda: _stored(uow, found.id, name), body)
        layout = Layout(
            places={task: (place.x, place.y) for task, place in body.places.items()},
            groups={group: tuple(tasks) for group, tasks in body.groups.items()},
            folded=tuple(dict.fromkeys(body.folded)),
            updated_at=store.clock(),
            updated_by=caller.name,
        )
        await uow.layouts.put(found.id, layout)
        stored = await _stored(uow, found.id, name)
        await uow.commit()
    return condition.answer(stored)


async def _stored(uow: UnitOfWork, workflow_id: int, name: str) -> LayoutOut:
    found = await uow.layouts.get(workflow_id)
    if found is None:
        return LayoutOut(places={}, groups={}, folded=[], updated_at=None, updated_by=None)
    with legible("layout", name):
        return LayoutOut(
            places={task: PlaceOut(x=x, y=y) for task, (x, y) in found.places.items()},
            groups={group: list(tasks) for group, tasks in found.groups.items()},
            folded=list(found.folded),
            updated_at=found.updated_at,
            updated_by=found.updated_by,
        )
