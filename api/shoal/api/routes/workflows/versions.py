"""The history of a workflow: each version, what differs between two, and going back to one."""

from typing import Annotated

from fastapi import Path, Query, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.authoring.checks import require_grants
from shoal.api.operations.authoring.comparison import Side
from shoal.api.operations.authoring.plan import compared, side_of
from shoal.api.operations.authoring.publication import (
    answered,
    detail_of,
    published,
    tag_of,
    warnings_of,
)
from shoal.api.routes.projects import ProjectName
from shoal.api.routes.workflows.published import WorkflowName
from shoal.api.schemas.authoring import DiffOut
from shoal.api.schemas.common import Page
from shoal.api.schemas.definitions import PublishOut, VersionDetail, VersionOut
from shoal.api.services import FeedDep, LargeWorkDep, StoreDep
from shoal.api.web.answers import answer
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission

router = strict_router("workflows")

_VERSIONS = "/projects/{project}/workflows/{name}/versions"
_MOST = 2**31 - 1
VersionNumber = Annotated[int, Path(ge=1, le=_MOST, examples=[4])]


@router.get(_VERSIONS, summary="List versions", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_versions(
    store: StoreDep,
    project: ProjectName,
    name: WorkflowName,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[VersionOut]:
    """The history of a workflow, newest version first."""
    before = decode_cursor("versions", cursor, int)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.versions(project, name)
    if before is not None:
        found = [item for item in found if item.version < before[0]]
    items, more = page(found, limit)
    return Page(
        items=[VersionOut.model_validate(item) for item in items],
        next=encode_cursor("versions", items[-1].version) if more else None,
    )


@router.get(
    _VERSIONS + "/{version}",
    summary="Show a version",
    response_model=VersionDetail,
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_version(
    store: StoreDep, project: ProjectName, name: WorkflowName, version: VersionNumber
) -> Response:
    """One version with its definition."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.version_by_name(project, name, version)
        source = await uow.workflows.source(found.workflow_id, version)

    def made() -> VersionDetail:
        return VersionDetail.of_record(found, source=source, definition=found.spec.canonical())

    return await answer(made, len(found.spec.tasks))


@router.get(
    _VERSIONS + "/{version}/diff",
    summary="Compare two versions",
    response_model=DiffOut,
    responses=documented(404),
)
@needs(Permission.PROJECT_READ, large=True)
async def diff_versions(
    store: StoreDep,
    work: LargeWorkDep,
    project: ProjectName,
    name: WorkflowName,
    version: VersionNumber,
    base: Annotated[
        int | None,
        Query(ge=0, le=_MOST, description="Compared with; 0: nothing. Left out: the one before."),
    ] = None,
) -> Response:
    """What has to change in `base` to make it `version`: as a graph, by fields, and as text."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.get(project, name)
        after = await side_of(uow, found, version)
        wanted = version - 1 if base is None else base
        before = Side({}, "nothing") if wanted == 0 else await side_of(uow, found, wanted)
    tasks = max(len(side.content.get("tasks", ())) for side in (before, after))
    comparison = await compared(work, before, after)

    def made() -> DiffOut:
        return DiffOut(**dict(comparison), project=project, name=name, base=wanted, version=version)

    return await answer(made, tasks)


@router.post(
    _VERSIONS + "/{version}/restore",
    summary="Publish an older version again",
    response_model=PublishOut,
    responses={
        201: {"model": PublishOut, "description": "A new version was published."},
        **documented(404, 409),
    },
)
@needs(Permission.PROJECT_EDIT, audit="workflow.restore")
async def restore_version(
    store: StoreDep,
    feed: FeedDep,
    caller: Calling,
    project: ProjectName,
    name: WorkflowName,
    version: VersionNumber,
    condition: Condition,
    dry_run: Annotated[bool, Query(description="Only check, and say what would happen.")] = False,
) -> Response:
    """Makes a new version that says what the older one says; nothing of the history is lost.

    What it names has to be there now: calendars, groups, environments, grants. It keeps the name
    that the workflow has now.
    """
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: detail_of(uow, project, name), tag_of=tag_of)
        found = await uow.workflows.lock(project, name)
        old = await uow.workflows.version(found.id, version)
        spec = old.spec.model_copy(update={"name": found.name})
        await require_grants(uow, spec)
        source = await uow.workflows.source(found.id, version) if spec == old.spec else None
        done, before = await published(uow, spec, store.clock(), source=source, by=caller.name)
        tag = tag_of(await uow.workflows.get(project, name))
        warnings = await warnings_of(uow, spec, caller.visible)
        if not dry_run:
            await uow.commit()
    return await answered(feed, done, before, tag, dry_run=dry_run, warnings=warnings)
