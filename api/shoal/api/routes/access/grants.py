"""Grants: what a project lets the tasks of other projects do with it, and which files they use."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.access import GrantIn, GrantOut, ResourceGrantIn, ResourceGrantOut
from shoal.api.services import StoreDep
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.api.web.problems import documented
from shoal.core.access.grants import ResourceGrant, StoredGrant
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import NAME_PATTERN
from shoal.core.definition.resources import shared_problem
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound

router = strict_router("grants")

_OF_PROJECT = "/projects/{project}/grants"
Taker = Annotated[
    str,
    Path(
        max_length=100,
        pattern=rf"^\*$|{NAME_PATTERN}",
        examples=["reports"],
        description='The name of a project, which need not exist; "*" for every project.',
    ),
]


@router.get(_OF_PROJECT, summary="List grants", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_grants(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[GrantOut]:
    """What the tasks of other projects may do with this one."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.grants.list((await uow.projects.get(project)).id)
    in_order = sorted(found, key=lambda one: one.taker)
    items, following = part_of("grants", in_order, lambda one: one.taker, limit, cursor)
    return Page(items=[_out(one) for one in items], next=following)


@router.get(_OF_PROJECT + "/{taker}", summary="Show a grant", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_grant(
    store: StoreDep, project: ProjectName, taker: Taker, response: Response
) -> GrantOut:
    """What the tasks of one other project may do with this one."""
    async with store.unit_of_work(read_only=True) as uow:
        home = await uow.projects.get(project)
        return tagged(response, await _stored(uow, home.id, taker))


async def _stored(uow: UnitOfWork, project_id: int, taker: str) -> GrantOut:
    for one in await uow.grants.list(project_id):
        if one.taker == taker:
            return _out(one)
    raise NotFound("grant", taker)


@router.put(
    _OF_PROJECT + "/{taker}",
    summary="Let another project do something",
    responses={
        201: {"model": GrantOut, "description": "It was allowed nothing before."},
        **documented(400, 404, 413, 415),
    },
)
@needs(Permission.PROJECT_MANAGE, audit="grant.set")
async def put_grant(
    store: StoreDep,
    project: ProjectName,
    taker: Taker,
    body: Annotated[GrantIn, Body()],
    condition: Condition,
) -> GrantOut:
    """All editors of that project can use it then: their workflows run what they may."""
    async with store.unit_of_work() as uow:
        home = await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, home.id, taker), body)
        is_new = await uow.grants.put(home.id, taker, body.what, store.clock())
        stored = await _stored(uow, home.id, taker)
        await uow.commit()
    return condition.answer(stored, is_new=is_new)


@router.delete(
    _OF_PROJECT + "/{taker}",
    summary="Take a grant back",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.PROJECT_MANAGE, audit="grant.remove")
async def delete_grant(
    store: StoreDep, project: ProjectName, taker: Taker, condition: Condition
) -> None:
    """Nothing new is started; active runs continue. Waiting tasks no longer see runs here."""
    async with store.unit_of_work() as uow:
        home = await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, home.id, taker))
        await uow.grants.remove(home.id, taker)
        await uow.commit()


def _out(grant: StoredGrant) -> GrantOut:
    return GrantOut(project=grant.taker, what=grant.what, created_at=grant.created_at)


_OF_FILES = "/projects/{project}/resource-grants"


@router.get(_OF_FILES, summary="List shared files", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_resource_grants(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[ResourceGrantOut]:
    """Which files of this project the tasks of other projects may use."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.resource_grants.list((await uow.projects.get(project)).id)
    in_order = sorted(found, key=lambda one: one.taker)
    items, following = part_of("resource-grants", in_order, lambda one: one.taker, limit, cursor)
    return Page(items=[_files_out(one) for one in items], next=following)


@router.get(_OF_FILES + "/{taker}", summary="Show shared files", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_resource_grant(
    store: StoreDep, project: ProjectName, taker: Taker, response: Response
) -> ResourceGrantOut:
    """Which files of this project the tasks of one other project may use."""
    async with store.unit_of_work(read_only=True) as uow:
        home = await uow.projects.get(project)
        return tagged(response, await _stored_of_files(uow, home.id, taker))


async def _stored_of_files(uow: UnitOfWork, project_id: int, taker: str) -> ResourceGrantOut:
    return _files_out(await uow.resource_grants.get(project_id, taker))


@router.put(
    _OF_FILES + "/{taker}",
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
        await condition.check(lambda: _stored_of_files(uow, home.id, taker), body)
        stored, is_new = await uow.resource_grants.put(home.id, taker, body.paths, store.clock())
        await uow.commit()
    return condition.answer(_files_out(stored), is_new=is_new)


@router.delete(
    _OF_FILES + "/{taker}",
    summary="Stop sharing with another project",
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
        await condition.check(lambda: _stored_of_files(uow, home.id, taker))
        await uow.resource_grants.remove(home.id, taker)
        await uow.commit()


def _files_out(grant: ResourceGrant) -> ResourceGrantOut:
    return ResourceGrantOut(
        project=grant.taker,
        paths=list(grant.paths),
        created_at=grant.created_at,
        updated_at=grant.updated_at,
    )
