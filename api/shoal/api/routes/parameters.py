"""Parameters of projects: what all their workflows see."""

import asyncio
from typing import Annotated

from fastapi import Body, Path, Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.project_values import ParameterIn, ParameterOut
from shoal.api.services import StoreDep
from shoal.api.web.errors import FieldError, InvalidRequest, NoSuchThing
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import PARAMETER_PATTERN
from shoal.core.definition.parameters import definition_problem
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound

router = strict_router("project parameters")

_OF_PROJECT = "/projects/{project}/parameters"
NewParameter = Annotated[str, Path(pattern=PARAMETER_PATTERN, examples=["bucket"])]
ParameterName = Annotated[str, Path(max_length=100, examples=["bucket"])]


@router.get(_OF_PROJECT, summary="List a project's parameters", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_parameters(
    store: StoreDep, project: ProjectName, limit: Limit = 50, cursor: Cursor = None
) -> Page[ParameterOut]:
    """The parameters of a project by name."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.projects.parameters(project)
    items, following = part_of("parameters", sorted(found), str, limit, cursor)
    return Page(
        items=[ParameterOut(project=project, name=name, value=found[name]) for name in items],
        next=following,
    )


@router.get(
    _OF_PROJECT + "/{name}", summary="Show a project's parameter", responses=documented(404)
)
@needs(Permission.PROJECT_READ)
async def get_parameter(
    store: StoreDep, project: ProjectName, name: ParameterName, response: Response
) -> ParameterOut:
    """One parameter of a project."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, await _stored(uow, project, name))


async def _stored(uow: UnitOfWork, project: str, name: str) -> ParameterOut:
    found = await uow.projects.parameters(project)
    if name not in found:
        raise NotFound("parameter", f"{project}/{name}")
    return ParameterOut(project=project, name=name, value=found[name])


@router.put(
    _OF_PROJECT + "/{name}",
    summary="Set a project's parameter",
    responses={
        201: {"model": ParameterOut, "description": "It is new."},
        **documented(400, 404, 413, 415),
    },
)
@needs(Permission.PROJECT_EDIT, audit="parameter.set")
async def put_parameter(
    store: StoreDep,
    project: ProjectName,
    name: NewParameter,
    body: Annotated[ParameterIn, Body()],
    condition: Condition,
) -> ParameterOut:
    """Runs that have started keep the value they started with."""
    if problem := await asyncio.to_thread(definition_problem, name, body.value):
        raise InvalidRequest([FieldError("value", problem)])
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name), body)
        known = await uow.projects.change_parameter(project, name, body.value)
        found = await uow.projects.parameters(project)
        if twins := [n for n in found if n.upper() == name.upper() and n != name]:
            raise InvalidRequest([FieldError("name", f"differs from {twins[0]!r} only in case")])
        await uow.commit()
    stored = ParameterOut(project=project, name=name, value=body.value)
    return condition.answer(stored, is_new=not known)


@router.delete(
    _OF_PROJECT + "/{name}",
    summary="Remove a project's parameter",
    status_code=204,
    responses=documented(404),
)
@needs(Permission.PROJECT_EDIT, audit="parameter.delete")
async def delete_parameter(
    store: StoreDep, project: ProjectName, name: ParameterName, condition: Condition
) -> None:
    """Tasks that start from now on no longer see it, except tasks of earlier runs."""
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name))
        if not await uow.projects.change_parameter(project, name, None):
            raise NoSuchThing(f"project {project} has no parameter {name}")
        await uow.commit()
