"""Restrictions: which projects may use a worker group or an environment of the cluster."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.access import RestrictionIn, RestrictionOut
from shoal.api.services import StoreDep
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.grants import Restricted
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import NAME_PATTERN
from shoal.sql import UnitOfWork

router = strict_router("restrictions")

_OF_ONE = "/restrictions/{what}/{name}"
What = Annotated[Restricted, Path(examples=["worker-group"])]
RestrictedName = Annotated[
    str,
    Path(
        pattern=NAME_PATTERN,
        examples=["gpu"],
        description="Of a worker group or an environment, which need not be there.",
    ),
]


@router.get("/restrictions", summary="List restrictions")
@needs(Permission.RESTRICTION_EDIT)
async def list_restrictions(
    store: StoreDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[RestrictionOut]:
    """Worker groups and environments that some projects alone may use."""
    after = decode_cursor("restrictions", cursor, str, str)
    async with store.unit_of_work(read_only=True) as uow:
        start = (after[0], after[1]) if after else None
        found = await uow.restrictions.list(start, limit + 1)
    items, more = page(found, limit)
    last = encode_cursor("restrictions", items[-1].kind, items[-1].name) if more else None
    return Page(items=[RestrictionOut.model_validate(one) for one in items], next=last)


@router.get(_OF_ONE, summary="Show a restriction", responses=documented(404))
@needs(Permission.RESTRICTION_EDIT)
async def get_restriction(
    store: StoreDep, what: What, name: RestrictedName, response: Response
) -> RestrictionOut:
    """Which projects may use it; 404: all may."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.restrictions.get(what, name)
    return tagged(response, RestrictionOut.model_validate(found))


async def _stored(uow: UnitOfWork, what: Restricted, name: str) -> RestrictionOut:
    return RestrictionOut.model_validate(await uow.restrictions.hold(what, name))


@router.put(
    _OF_ONE,
    summary="Keep a worker group or an environment for some projects",
    responses={
        201: {"model": RestrictionOut, "description": "Every project might use it before."},
        **documented(400, 413, 415),
    },
)
@needs(Permission.RESTRICTION_EDIT, audit="restriction.set")
async def put_restriction(
    store: StoreDep,
    what: What,
    name: RestrictedName,
    body: Annotated[RestrictionIn, Body()],
    condition: Condition,
) -> RestrictionOut:
    """Replaces the projects that may use it; an empty list: none may.

    What runs goes on. Tasks of other projects that start later than a second from now fail.
    """
    async with store.unit_of_work() as uow:
        await condition.check(lambda: _stored(uow, what, name), body)
        stored, is_new = await uow.restrictions.put(what, name, body.projects, store.clock())
        await uow.commit()
    return condition.answer(RestrictionOut.model_validate(stored), is_new=is_new)


@router.delete(
    _OF_ONE,
    summary="Open a worker group or an environment to all projects",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.RESTRICTION_EDIT, audit="restriction.remove")
async def delete_restriction(
    store: StoreDep, what: What, name: RestrictedName, condition: Condition
) -> None:
    """Every project may use it then."""
    async with store.unit_of_work() as uow:
        await condition.check(lambda: _stored(uow, what, name))
        await uow.restrictions.remove(what, name)
        await uow.commit()
