"""Groups of users and service accounts, for administrators."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.access import GroupChange, GroupIn, GroupOut
from shoal.api.services import IdentitiesDep, StoreDep
from shoal.api.web.answers import by_name, shown
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.sql import UnitOfWork

router = strict_router("groups")

MemberName = Annotated[str, Path(max_length=201, examples=["ada"])]
GroupName = Annotated[str, Path(max_length=100, examples=["analysts"])]


@router.get("/groups", summary="List groups")
@needs(Permission.USER_MANAGE)
async def list_groups(store: StoreDep, limit: Limit = 50, cursor: Cursor = None) -> Page[GroupOut]:
    """Groups by name, with their members."""
    after = decode_cursor("groups", cursor, str)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.groups.list(after[0] if after else None, limit + 1)
    items, more = page(found, limit)
    return Page(
        items=shown("group", items, GroupOut.model_validate, by_name),
        next=encode_cursor("groups", items[-1].name) if more else None,
    )


@router.post(
    "/groups",
    summary="Make a group",
    status_code=201,
    responses=documented(400, 409, 413, 415),
)
@needs(Permission.USER_MANAGE, audit="group.add")
async def post_group(store: StoreDep, body: Annotated[GroupIn, Body()]) -> GroupOut:
    """A group without members; owners of projects give it roles."""
    async with store.unit_of_work() as uow:
        found = await uow.groups.add(body.name, body.description, store.clock())
        await uow.commit()
    return GroupOut.model_validate(found)


@router.get("/groups/{name}", summary="Show a group", responses=documented(404))
@needs(Permission.USER_MANAGE)
async def get_group(store: StoreDep, name: GroupName, response: Response) -> GroupOut:
    """One group with its members."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, GroupOut.model_validate(await uow.groups.get(name)))


async def _held(uow: UnitOfWork, name: str) -> GroupOut:
    return GroupOut.model_validate(await uow.groups.hold(name))


@router.patch("/groups/{name}", summary="Change a group", responses=documented(400, 404, 413, 415))
@needs(Permission.USER_MANAGE, audit="group.change")
async def patch_group(
    store: StoreDep, name: GroupName, body: Annotated[GroupChange, Body()], condition: Condition
) -> GroupOut:
    """Changes what it is for."""
    async with store.unit_of_work() as uow:
        await condition.check(lambda: _held(uow, name), body)
        await uow.groups.describe(name, body.description)
        found = await uow.groups.get(name)
        await uow.commit()
    return condition.answer(GroupOut.model_validate(found))


@router.delete(
    "/groups/{name}", summary="Delete a group", status_code=204, responses=documented(404)
)
@needs(Permission.USER_MANAGE, audit="group.delete")
async def delete_group(
    store: StoreDep, identities: IdentitiesDep, name: GroupName, condition: Condition
) -> None:
    """Its members lose the roles that they had by it, within a second."""
    async with store.unit_of_work() as uow:
        await condition.check(lambda: _held(uow, name))
        await uow.groups.delete(name)
        await uow.commit()
    identities.changed()


@router.put(
    "/groups/{name}/members/{member:path}",
    summary="Add a member to a group",
    responses={
        201: {"model": GroupOut, "description": "It was not in it."},
        **documented(404),
    },
)
@needs(Permission.USER_MANAGE, audit="group.add-member")
async def put_group_member(
    store: StoreDep,
    identities: IdentitiesDep,
    name: GroupName,
    member: MemberName,
    response: Response,
) -> GroupOut:
    """A user or a service account; it has the roles of the group within a second."""
    async with store.unit_of_work() as uow:
        account = await uow.principals.get(member)
        if await uow.groups.add_member(name, account.id):
            response.status_code = 201
        found = await uow.groups.get(name)
        await uow.commit()
    identities.changed()
    return GroupOut.model_validate(found)


@router.delete(
    "/groups/{name}/members/{member:path}",
    summary="Remove a member from a group",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.USER_MANAGE, audit="group.remove-member")
async def delete_group_member(
    store: StoreDep, identities: IdentitiesDep, name: GroupName, member: MemberName
) -> None:
    """It loses the roles that it had by the group alone, within a second."""
    async with store.unit_of_work() as uow:
        account = await uow.principals.get(member)
        await uow.groups.remove_member(name, account.id)
        await uow.commit()
    identities.changed()
