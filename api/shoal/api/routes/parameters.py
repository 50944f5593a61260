"""Parameters of projects: what all their workflows see."""

import asyncio
from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.access.guard import needs
from shoal.api.routes.projects import NewName, ProjectName
from shoal.api.schemas.project_values import ParameterIn, ParametersOut
from shoal.api.services import Shoal
from shoal.api.web.errors import FieldError, InvalidRequest, NoSuchThing
from shoal.api.web.problems import documented
from shoal.api.web.route import strict_router
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import PARAMETER_PATTERN
from shoal.core.definition.parameters import definition_problem

router = strict_router("project parameters")

_OF_PROJECT = "/projects/{project}/parameters"
NewParameter = Annotated[str, Path(pattern=PARAMETER_PATTERN, examples=["bucket"])]
ParameterName = Annotated[str, Path(max_length=100, examples=["bucket"])]


@router.get(_OF_PROJECT, summary="List a project's parameters", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_parameters(shoal: Shoal, project: ProjectName) -> ParametersOut:
    """All parameters of a project."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.projects.parameters(project)
    return ParametersOut(parameters=dict(found))


@router.put(
    _OF_PROJECT + "/{name}",
    summary="Set a project's parameter",
    responses={
        201: {"model": ParametersOut, "description": "It is new."},
        **documented(400, 413, 415),
    },
)
@needs(Permission.PROJECT_EDIT, audit="parameter.set")
async def put_parameter(
    shoal: Shoal,
    project: NewName,
    name: NewParameter,
    body: Annotated[ParameterIn, Body()],
    response: Response,
) -> ParametersOut:
    """Runs that have started keep the value they started with.

    The project is created if it is missing and the caller may make projects.
    """
    if problem := await asyncio.to_thread(definition_problem, name, body.value):
        raise InvalidRequest([FieldError("value", problem)])
    async with shoal.database.unit_of_work() as uow:
        await uow.projects.ensure(project, shoal.clock())
        known = await uow.projects.change_parameter(project, name, body.value)
        found = await uow.projects.parameters(project)
        if twins := [n for n in found if n.upper() == name.upper() and n != name]:
            raise InvalidRequest([FieldError("name", f"differs from {twins[0]!r} only in case")])
        await uow.commit()
    if not known:
        response.status_code = 201
    return ParametersOut(parameters=dict(found))


@router.delete(
    _OF_PROJECT + "/{name}",
    summary="Remove a project's parameter",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.PROJECT_EDIT, audit="parameter.delete")
async def delete_parameter(shoal: Shoal, project: ProjectName, name: ParameterName) -> None:
    """Tasks that start from now on do not see it any more, but for those of earlier runs."""
    async with shoal.database.unit_of_work() as uow:
        if not await uow.projects.change_parameter(project, name, None):
            raise NoSuchThing(f"project {project} has no parameter {name}")
        await uow.commit()
