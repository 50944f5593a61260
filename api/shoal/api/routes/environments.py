"""Environments: what programs of tasks find around them.

They belong to the cluster; a restriction may keep one for some projects."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.schemas.common import Page
from shoal.api.schemas.environments import EnvironmentDetail, EnvironmentIn, EnvironmentOut
from shoal.api.services import StoreDep
from shoal.api.web.answers import by_name, legible, shown
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.environments import StoredEnvironment, findings, name_problem
from shoal.core.definition.fields import NAME_PATTERN
from shoal.sql import UnitOfWork

router = strict_router("environments")

NewEnvironment = Annotated[str, Path(pattern=NAME_PATTERN, examples=["ml"])]
EnvironmentName = Annotated[str, Path(max_length=100, examples=["ml"])]


@router.get("/environments", summary="List environments")
@needs(Permission.SIGNED_IN)
async def list_environments(
    store: StoreDep, caller: Calling, limit: Limit = 50, cursor: Cursor = None
) -> Page[EnvironmentOut]:
    """Environments by name: those that a project which the caller may read may use."""
    after = decode_cursor("environments", cursor, str)
    async with store.unit_of_work(read_only=True) as uow:
        start = after[0] if after else None
        found = await uow.environments.list(start, limit + 1, caller.visible)
    items, more = page(found, limit)
    return Page(
        items=shown("environment", items, _out, by_name),
        next=encode_cursor("environments", items[-1].name) if more else None,
    )


@router.get("/environments/{name}", summary="Show an environment", responses=documented(404))
@needs(Permission.SIGNED_IN)
async def get_environment(
    store: StoreDep, caller: Calling, name: EnvironmentName, response: Response
) -> EnvironmentDetail:
    """One environment, and the workflows that name it, as far as the caller may see them."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.environments.get_visible(name, caller.visible)
        users = await uow.environments.users_of(name, visible=caller.visible)
    with legible("environment", name):
        return tagged(response, EnvironmentDetail(**_out(found).model_dump(), workflows=users))


async def _stored(uow: UnitOfWork, name: str) -> EnvironmentOut:
    return _out(await uow.environments.hold(name))


@router.put(
    "/environments/{name}",
    summary="Make or change an environment",
    responses={
        201: {"model": EnvironmentOut, "description": "It is new."},
        **documented(400, 409, 413, 415),
    },
)
@needs(Permission.ENVIRONMENT_EDIT, audit="environment.set")
async def put_environment(
    store: StoreDep,
    name: NewEnvironment,
    body: Annotated[EnvironmentIn, Body()],
    condition: Condition,
) -> EnvironmentOut:
    """Replaces everything. Tasks that start from now on have it as it is then.

    A worker group that is taken away fails the tasks that are for it, when they start.
    """
    spec = body.spec
    wrong = [FieldError(field, message) for field, message in findings(spec)]
    if problem := name_problem(name):
        wrong.append(FieldError("name", problem))
    if wrong:
        raise InvalidRequest(wrong)
    async with store.unit_of_work() as uow:
        await condition.check(lambda: _stored(uow, name), spec)
        stored, is_new = await uow.environments.put(name, spec, store.clock())
        await uow.commit()
    return condition.answer(_out(stored), is_new=is_new)


@router.delete(
    "/environments/{name}",
    summary="Delete an environment",
    status_code=204,
    responses=documented(404, 409),
)
@needs(Permission.ENVIRONMENT_EDIT, audit="environment.delete")
async def delete_environment(store: StoreDep, name: EnvironmentName, condition: Condition) -> None:
    """Refused while the newest version of a workflow names it; the problem lists them.

    Tasks of older versions that are still run, and name it, fail from now on.
    """
    async with store.unit_of_work() as uow:
        await condition.check(lambda: _stored(uow, name))
        await uow.environments.delete(name)
        await uow.commit()


def _out(found: StoredEnvironment) -> EnvironmentOut:
    return EnvironmentOut(
        name=found.name,
        **found.spec.model_dump(),
        version=found.version,
        created_at=found.created_at,
        updated_at=found.updated_at,
    )
