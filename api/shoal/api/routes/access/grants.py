"""Grants: what a project lets the tasks of other projects do with it."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.access import GrantIn, GrantOut
from shoal.api.services import StoreDep
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.api.web.problems import documented
from shoal.core.access.grants import StoredGrant
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import NAME_PATTERN
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
    """Nothing new is started; what runs goes on. Tasks that wait see no runs here any more."""
    async with store.unit_of_work() as uow:
        home = await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, home.id, taker))
        await uow.grants.remove(home.id, taker)
        await uow.commit()


def _out(grant: StoredGrant) -> GrantOut:
    return GrantOut(project=grant.taker, what=grant.what, created_at=grant.created_at)
