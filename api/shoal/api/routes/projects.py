"""Projects."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.schemas.common import Page
from shoal.api.schemas.definitions import ProjectIn, ProjectOut
from shoal.api.services import StoreDep
from shoal.api.web.answers import by_name, shown
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import NAME_PATTERN
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound

router = strict_router("projects")

NewName = Annotated[str, Path(pattern=NAME_PATTERN, examples=["flights"])]
ProjectName = Annotated[str, Path(max_length=100, examples=["flights"])]


@router.get("/projects", summary="List projects")
@needs(Permission.PROJECT_READ)
async def list_projects(
    store: StoreDep, caller: Calling, limit: Limit = 50, cursor: Cursor = None
) -> Page[ProjectOut]:
    """Projects by name."""
    after = decode_cursor("projects", cursor, str)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.projects.list(
            after[0] if after else None, limit + 1, visible=caller.visible
        )
    items, more = page(found, limit)
    return Page(
        items=shown("project", items, ProjectOut.model_validate, by_name),
        next=encode_cursor("projects", items[-1].name) if more else None,
    )


@router.get("/projects/{project}", summary="Show a project", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_project(store: StoreDep, project: ProjectName, response: Response) -> ProjectOut:
    """One project."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, ProjectOut.model_validate(await uow.projects.get(project)))


async def _held(uow: UnitOfWork, project: str) -> ProjectOut:
    return ProjectOut.model_validate(await uow.projects.require(project))


@router.put(
    "/projects/{project}",
    summary="Create or change a project",
    responses={
        201: {"model": ProjectOut, "description": "It is new."},
        **documented(400, 413, 415),
    },
)
@needs(Permission.PROJECT_MANAGE, project_may_be_missing=True, audit="project.set")
async def put_project(
    store: StoreDep, project: NewName, body: Annotated[ProjectIn, Body()], condition: Condition
) -> ProjectOut:
    """Sets the description; the project is created if it is missing. Nothing else creates one."""
    is_new = False
    async with store.unit_of_work() as uow:
        await condition.check(lambda: _held(uow, project), body)
        try:
            await uow.projects.get(project)
        except NotFound:
            is_new = True
        await uow.projects.ensure(project, store.clock())
        await uow.projects.set_description(project, body.description)
        stored = await uow.projects.get(project)
        await uow.commit()
    return condition.answer(ProjectOut.model_validate(stored), is_new=is_new)
