"""Resource grants: which files of a project the tasks of other projects may use."""

from typing import Annotated

from fastapi import Body, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.access.grants import Taker
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.access import ResourceGrantIn, ResourceGrantOut
from shoal.api.services import StoreDep
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.api.web.problems import documented
from shoal.core.access.grants import ResourceGrant
from shoal.core.access.permissions import Permission
from shoal.core.definition.resources import shared_problem
from shoal.sql import UnitOfWork

router = strict_router("grants")

_OF_PROJECT = "/projects/{project}/resource-grants"


@router.get(_OF_PROJECT, summary="List shared files", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_resource_grants(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[ResourceGrantOut]:
    """Which files of this project the tasks of other projects may use."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.resource_grants.list((await uow.projects.get(project)).id)
    in_order = sorted(found, key=lambda one: one.taker)
    items, following = part_of("resource-grants", in_order, lambda one: one.taker, limit, cursor)
    return Page(items=[_out(one) for one in items], next=following)


@router.get(_OF_PROJECT + "/{taker}", summary="Show shared files", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_resource_grant(
    store: StoreDep, project: ProjectName, taker: Taker, response: Response
) -> ResourceGrantOut:
    """Which files of this project the tasks of one other project may use."""
    async with store.unit_of_work(read_only=True) as uow:
        home = await uow.projects.get(project)
        return tagged(response, await _stored(uow, home.id, taker))


async def _stored(uow: UnitOfWork, project_id: int, taker: str) -> ResourceGrantOut:
    return _out(await uow.resource_grants.get(project_id, taker))


@router.put(
    _OF_PROJECT + "/{taker}",
    summary="Share files with another project",
    responses={
        201: {"model": ResourceGrantOut, "description": "Nothing was shared with it before."},
        **documented(400, 404, 413, 415),
    },
)
@needs(Permission.PROJECT_MANAGE, audit="resource-grant.set")
async def put_resource_grant(
    store: StoreDep,
    project: ProjectName,
    taker: Taker,
    body: Annotated[ResourceGrantIn, Body()],
    condition: Condition,
) -> ResourceGrantOut:
    """Replaces what is shared. Tasks of that project name a file as PROJECT:PATH."""
    wrong = [
        FieldError(f"paths[{index}]", problem)
        for index, text in enumerate(body.paths)
        if (problem := shared_problem(text))
    ]
    if wrong:
        raise InvalidRequest(wrong)
    async with store.unit_of_work() as uow:
        home = await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, home.id, taker), body)
        stored, is_new = await uow.resource_grants.put(home.id, taker, body.paths, store.clock())
        await uow.commit()
    return condition.answer(_out(stored), is_new=is_new)


@router.delete(
    _OF_PROJECT + "/{taker}",
    summary="Share nothing with another project any more",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.PROJECT_MANAGE, audit="resource-grant.remove")
async def delete_resource_grant(
    store: StoreDep, project: ProjectName, taker: Taker, condition: Condition
) -> None:
    """Tasks that start from now on get none of the files; those that run go on."""
    async with store.unit_of_work() as uow:
        home = await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, home.id, taker))
        await uow.resource_grants.remove(home.id, taker)
        await uow.commit()


def _out(grant: ResourceGrant) -> ResourceGrantOut:
    return ResourceGrantOut(
        project=grant.taker,
        paths=list(grant.paths),
        created_at=grant.created_at,
        updated_at=grant.updated_at,
    )
