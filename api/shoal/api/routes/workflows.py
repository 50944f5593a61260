"""Workflows: definitions and versions."""

import asyncio
from typing import Annotated, Any

from fastapi import Body, Path, Query, Response

from shoal.api.access.callers import Calling
from shoal.api.access.guard import needs
from shoal.api.operations.diff import diff
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.definitions import (
    DEFINITION,
    ChangeOut,
    PublishOut,
    VersionDetail,
    VersionOut,
    WorkflowDetail,
    WorkflowOut,
)
from shoal.api.services import Shoal
from shoal.api.web.answers import answer
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.legible import by_name, shown
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.api.web.route import strict_router
from shoal.core.access.grants import Grant
from shoal.core.access.permissions import Permission
from shoal.core.access.reaches import reaches
from shoal.core.checks.workflow import InvalidDefinition, Problem
from shoal.core.definition.model import WorkflowSpec
from shoal.runtime.definitions import check_definition
from shoal.sql import UnitOfWork

router = strict_router("workflows")

WorkflowName = Annotated[str, Path(max_length=100, examples=["daily"])]
Definition = Annotated[
    dict[str, Any],
    Body(
        description="A definition; `project` and `name` may be left out, else they equal the path.",
        examples=[DEFINITION],
    ),
]


@router.get("/workflows", summary="List workflows")
@needs(Permission.PROJECT_READ)
async def list_workflows(
    shoal: Shoal,
    caller: Calling,
    project: Annotated[str | None, Query(description="Only those of this project.")] = None,
    search: Annotated[
        str | None, Query(max_length=200, description="Part of the name or the description.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[WorkflowOut]:
    """Workflows by project and name, each with its newest version."""
    after = decode_cursor("workflows", cursor, str, str)
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.list(
            project,
            search,
            (after[0], after[1]) if after else None,
            limit + 1,
            visible=caller.visible,
        )
    items, more = page(found, limit)
    return Page(
        items=shown("workflow", items, WorkflowOut.model_validate, by_name),
        next=encode_cursor("workflows", items[-1].project, items[-1].name) if more else None,
    )


@router.put(
    "/projects/{project}/workflows/{name}",
    summary="Publish a definition",
    response_model=PublishOut,
    responses={
        201: {"model": PublishOut, "description": "A new version was published."},
        **documented(400, 409, 413, 415),
    },
)
@needs(Permission.PROJECT_EDIT, audit="workflow.publish")
async def publish(
    shoal: Shoal,
    project: ProjectName,
    name: WorkflowName,
    definition: Definition,
    dry_run: Annotated[bool, Query(description="Only check, and say what would happen.")] = False,
) -> Response:
    """Checks the whole definition and reports all problems at once.

    A new version is made only if something differs from the newest one. Everything happens in
    one transaction: version, schedules and event, or nothing.
    """
    spec = await _checked(project, name, definition)
    async with shoal.database.unit_of_work() as uow:
        await _require_grants(uow, spec)
        done = await uow.workflows.publish(spec, shoal.clock())
        version = done.version
        before: WorkflowSpec | None = None
        if done.created and version.version > 1:
            # Read after publishing: it has waited for others that published at the same time.
            previous = await uow.workflows.version(version.workflow_id, version.version - 1)
            before = previous.spec
        if not dry_run:  # else everything that has been tried is rolled back
            await uow.commit()
    is_new = done.created and not dry_run
    if is_new:
        shoal.feed.poll_soon()

    def made() -> PublishOut:
        earlier = {} if before is None else before.canonical()
        changes = diff(earlier, spec.canonical()) if done.created else []
        return PublishOut(
            project=spec.project,
            name=spec.name,
            version=version.version,
            created=done.created,
            dry_run=dry_run,
            digest=version.digest,
            diff=[ChangeOut.model_validate(change) for change in changes],
        )

    return await answer(made, len(spec.tasks), 201 if is_new else 200)


async def _require_grants(uow: UnitOfWork, spec: WorkflowSpec) -> None:
    """Raise InvalidDefinition for each other project that is reached without its grant.

    The words are the same whether there is such a project or not.
    """
    found = [*reaches(spec)]
    problems = []
    for level in dict.fromkeys(one.needs for one in found):
        pairs = {(one.project, spec.project) for one in found if one.needs is level}
        given = await uow.grants.given(pairs, level)
        problems += [
            Problem(
                one.path,
                f"there is no project {one.project} that lets project {spec.project} "
                f"{_WHAT[level]}; if there is one, an owner there can let it: "
                f"shoal grant set {spec.project} {level} --project {one.project}",
            )
            for one in found
            if one.needs is level and (one.project, spec.project) not in given
        ]
    if problems:
        raise InvalidDefinition(problems)


_WHAT = {Grant.SEE: "wait for its runs", Grant.RUN: "run its workflows"}


async def _checked(project: str, name: str, definition: dict[str, Any]) -> WorkflowSpec:
    errors = [
        FieldError(field, f"is {definition[field]!r}, but the path says {expected!r}")
        for field, expected in (("project", project), ("name", name))
        if field in definition and definition[field] != expected
    ]
    if errors:
        raise InvalidRequest(errors)
    complete = {**definition, "project": project, "name": name}
    # Thousands of tasks take a while, and others wait for this loop.
    return await asyncio.to_thread(check_definition, complete)


@router.get(
    "/projects/{project}/workflows/{name}",
    summary="Show a workflow",
    response_model=WorkflowDetail,
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_workflow(shoal: Shoal, project: ProjectName, name: WorkflowName) -> Response:
    """A workflow with its newest definition."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.get(project, name)
        version = await uow.workflows.version(found.id, found.version)

    def made() -> WorkflowDetail:
        return WorkflowDetail(
            **WorkflowOut.model_validate(found).model_dump(), definition=version.spec.canonical()
        )

    return await answer(made, len(version.spec.tasks))


@router.delete(
    "/projects/{project}/workflows/{name}",
    summary="Delete a workflow",
    status_code=204,
    responses=documented(404, 409),
)
@needs(Permission.PROJECT_EDIT, audit="workflow.delete")
async def delete_workflow(shoal: Shoal, project: ProjectName, name: WorkflowName) -> None:
    """Deletes a workflow and its schedules. Its instances stay readable.

    Refused while an instance has not ended.
    """
    async with shoal.database.unit_of_work() as uow:
        await uow.workflows.delete(project, name, shoal.clock())
        await uow.commit()


@router.get(
    "/projects/{project}/workflows/{name}/versions",
    summary="List versions",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def list_versions(
    shoal: Shoal,
    project: ProjectName,
    name: WorkflowName,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[VersionOut]:
    """The history of a workflow, newest version first."""
    before = decode_cursor("versions", cursor, int)
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.versions(project, name)
    if before is not None:
        found = [item for item in found if item.version < before[0]]
    items, more = page(found, limit)
    return Page(
        items=[VersionOut.model_validate(item) for item in items],
        next=encode_cursor("versions", items[-1].version) if more else None,
    )


@router.get(
    "/projects/{project}/workflows/{name}/versions/{version}",
    summary="Show a version",
    response_model=VersionDetail,
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_version(
    shoal: Shoal,
    project: ProjectName,
    name: WorkflowName,
    version: Annotated[int, Path(ge=1, le=2**31 - 1, examples=[4])],
) -> Response:
    """One version with its definition."""
    async with shoal.database.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.version_by_name(project, name, version)

    def made() -> VersionDetail:
        return VersionDetail(
            project=found.project,
            name=found.name,
            version=found.version,
            digest=found.digest,
            created_at=found.created_at,
            definition=found.spec.canonical(),
        )

    return await answer(made, len(found.spec.tasks))
