"""Members of a project: who has which role."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.access import MemberIn, MemberOut
from shoal.api.services import IdentitiesDep, StoreDep
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.access.records import HolderKind, ProjectMember
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound

router = strict_router("members")

_OF_PROJECT = "/projects/{project}/members"
Kind = Annotated[HolderKind, Path(examples=["user"])]
MemberName = Annotated[str, Path(max_length=201, examples=["ada"])]


@router.get(_OF_PROJECT, summary="List the members of a project", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_members(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[MemberOut]:
    """Users, service accounts and groups with their roles; administrators are not among them."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.members.list((await uow.projects.get(project)).id)
    items, following = part_of("members", sorted(found, key=_place), _place, limit, cursor)
    return Page(
        items=[MemberOut.model_validate(one) for one in items],
        next=following,
    )


def _place(member: ProjectMember) -> str:
    return f"{member.kind} {member.name}"


@router.get(_OF_PROJECT + "/{kind}/{name:path}", summary="Show a role", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_member(
    store: StoreDep, project: ProjectName, kind: Kind, name: MemberName, response: Response
) -> MemberOut:
    """The role that a member was given in a project, without roles through groups."""
    async with store.unit_of_work(read_only=True) as uow:
        home = await uow.projects.get(project)
        return tagged(response, await _stored(uow, home.id, kind, name))


async def _stored(uow: UnitOfWork, project_id: int, kind: HolderKind, name: str) -> MemberOut:
    for one in await uow.members.list(project_id):
        if one.kind is kind and one.name == name:
            return MemberOut.model_validate(one)
    raise NotFound("member", f"{kind}/{name}")


@router.put(
    _OF_PROJECT + "/{kind}/{name:path}",
    summary="Give a role",
    responses={
        201: {"model": MemberOut, "description": "It had none."},
        **documented(400, 404, 413, 415),
    },
)
@needs(Permission.PROJECT_MANAGE, audit="member.set")
async def put_member(
    store: StoreDep,
    identities: IdentitiesDep,
    project: ProjectName,
    kind: Kind,
    name: MemberName,
    body: Annotated[MemberIn, Body()],
    condition: Condition,
) -> MemberOut:
    """It counts within a second, instead of the role that it had."""
    async with store.unit_of_work() as uow:
        home = await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, home.id, kind, name), body)
        is_new = await uow.members.put(home.id, kind, name, body.role)
        await uow.commit()
    identities.changed()
    return condition.answer(MemberOut(kind=kind, name=name, role=body.role), is_new=is_new)


@router.delete(
    _OF_PROJECT + "/{kind}/{name:path}",
    summary="Take a role away",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.PROJECT_MANAGE, audit="member.remove")
async def delete_member(
    store: StoreDep,
    identities: IdentitiesDep,
    project: ProjectName,
    kind: Kind,
    name: MemberName,
    condition: Condition,
) -> None:
    """It counts within a second. Runs that were started go on."""
    async with store.unit_of_work() as uow:
        home = await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, home.id, kind, name))
        await uow.members.remove(home.id, kind, name)
        await uow.commit()
    identities.changed()
