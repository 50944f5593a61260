"""Secrets of projects. Their values come in here and never leave: they are written, not read."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.access.guard import needs
from shoal.api.operations.rotation import seal
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.project_values import SecretIn, SecretOut, secret_problems
from shoal.api.services import Shoal
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.api.web.preconditions import Condition, tagged
from shoal.api.web.problems import documented
from shoal.api.web.route import strict_router
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import PARAMETER_PATTERN
from shoal.sql import UnitOfWork

router = strict_router("secrets")

_OF_PROJECT = "/projects/{project}/secrets"
NewSecret = Annotated[str, Path(pattern=PARAMETER_PATTERN, examples=["db_password"])]
SecretName = Annotated[str, Path(max_length=100, examples=["db_password"])]


@router.get(_OF_PROJECT, summary="List a project's secrets", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_secrets(
    shoal: Shoal, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[SecretOut]:
    """Their names and ages. Values are never shown."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.secrets.list(project)
    items, following = part_of("secrets", found, lambda one: one.name, limit, cursor)
    return Page(
        items=[SecretOut.model_validate(one, from_attributes=True) for one in items],
        next=following,
    )


@router.get(_OF_PROJECT + "/{name}", summary="Show a secret", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_secret(
    shoal: Shoal, project: ProjectName, name: SecretName, response: Response
) -> SecretOut:
    """Its age. The value is never shown."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        return tagged(response, await _stored(uow, project, name))


async def _stored(uow: UnitOfWork, project: str, name: str) -> SecretOut:
    found = await uow.secrets.get(project, name)
    return SecretOut.model_validate(found, from_attributes=True)


@router.put(
    _OF_PROJECT + "/{name}",
    summary="Set a secret",
    responses={
        201: {"model": SecretOut, "description": "It is new."},
        **documented(400, 404, 413, 415),
    },
)
@needs(Permission.CONNECTION_EDIT, audit="secret.set")
async def put_secret(
    shoal: Shoal,
    project: ProjectName,
    name: NewSecret,
    body: Annotated[SecretIn, Body()],
    condition: Condition,
) -> SecretOut:
    """Stores it encrypted. Tasks that start from now on get the new value."""
    value = body.value.get_secret_value()
    if problems := list(secret_problems(value)):
        raise InvalidRequest([FieldError("value", problem) for problem in problems])
    while True:
        ciphertext, key = await seal(shoal.database, shoal.vault, project, name, value)
        async with shoal.database.unit_of_work() as uow:
            if not await uow.sealing.holds(key):
                continue  # the keys were rotated just now
            await uow.projects.require(project)
            await condition.check(lambda: _stored(uow, project, name))
            is_new = await uow.secrets.put(project, name, ciphertext, shoal.clock())
            stored = await _stored(uow, project, name)
            await uow.commit()
        return condition.answer(stored, is_new=is_new)


@router.delete(
    _OF_PROJECT + "/{name}", summary="Delete a secret", status_code=204, responses=documented(404)
)
@needs(Permission.CONNECTION_EDIT, audit="secret.delete")
async def delete_secret(
    shoal: Shoal, project: ProjectName, name: SecretName, condition: Condition
) -> None:
    """Tasks that refer to it fail from now on, with the reason."""
    async with shoal.database.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name))
        await uow.secrets.delete(project, name)
        await uow.commit()
