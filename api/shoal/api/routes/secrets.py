"""Secrets of projects. Their values come in here and never leave: they are written, not read."""

from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.access.guard import needs
from shoal.api.operations.rotation import seal
from shoal.api.routes.projects import NewName, ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.project_values import SecretIn, SecretOut, secret_problems
from shoal.api.services import Shoal
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.problems import documented
from shoal.api.web.route import strict_router
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import PARAMETER_PATTERN

router = strict_router("secrets")

_OF_PROJECT = "/projects/{project}/secrets"
NewSecret = Annotated[str, Path(pattern=PARAMETER_PATTERN, examples=["db_password"])]
SecretName = Annotated[str, Path(max_length=100, examples=["db_password"])]


@router.get(_OF_PROJECT, summary="List a project's secrets", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_secrets(shoal: Shoal, project: ProjectName) -> Page[SecretOut]:
    """Their names and ages, all on one page. Values are never shown."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.secrets.list(project)
    return Page(items=[SecretOut.model_validate(one, from_attributes=True) for one in found])


@router.put(
    _OF_PROJECT + "/{name}",
    summary="Set a secret",
    responses={
        201: {"model": SecretOut, "description": "It is new."},
        **documented(400, 413, 415),
    },
)
@needs(Permission.CONNECTION_EDIT, audit="secret.set")
async def put_secret(
    shoal: Shoal,
    project: NewName,
    name: NewSecret,
    body: Annotated[SecretIn, Body()],
    response: Response,
) -> SecretOut:
    """Stores it encrypted. Tasks that start from now on get the new value.

    The project is created if it is missing and the caller may make projects.
    """
    value = body.value.get_secret_value()
    if problems := list(secret_problems(value)):
        raise InvalidRequest([FieldError("value", problem) for problem in problems])
    while True:
        ciphertext, key = await seal(shoal.database, shoal.vault, project, name, value)
        async with shoal.database.unit_of_work() as uow:
            if not await uow.sealing.holds(key):
                continue  # the keys were rotated just now
            await uow.projects.ensure(project, shoal.clock())
            is_new = await uow.secrets.put(project, name, ciphertext, shoal.clock())
            stored = await uow.secrets.get(project, name)
            await uow.commit()
        if is_new:
            response.status_code = 201
        return SecretOut.model_validate(stored, from_attributes=True)


@router.delete(
    _OF_PROJECT + "/{name}", summary="Delete a secret", status_code=204, responses=documented(404)
)
@needs(Permission.CONNECTION_EDIT, audit="secret.delete")
async def delete_secret(shoal: Shoal, project: ProjectName, name: SecretName) -> None:
    """Tasks that refer to it fail from now on, with the reason."""
    async with shoal.database.unit_of_work() as uow:
        await uow.secrets.delete(project, name)
        await uow.commit()
