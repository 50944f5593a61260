"""What becomes of workflows: copied, renamed, archived, deleted; and what hangs on them."""

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import Body, Query, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.authoring.checks import check_value, problems_there
from shoal.api.operations.authoring.plan import hanging_out, named
from shoal.api.operations.authoring.publication import (
    answered,
    detail_of,
    published,
    tag_of,
    warnings_of,
)
from shoal.api.operations.feed import Feed
from shoal.api.routes.projects import NewName, ProjectName
from shoal.api.routes.workflows.published import WorkflowName
from shoal.api.schemas.authoring import (
    CopyIn,
    DependenciesOut,
    HangingOut,
    NamedOut,
    RenameIn,
    RenameOut,
)
from shoal.api.schemas.definitions import PublishOut, WorkflowOut
from shoal.api.services import FeedDep, StoreDep
from shoal.api.web.problems import documented
from shoal.api.web.store import Store
from shoal.core.access.permissions import Permission
from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.logic.references import references, renamed
from shoal.sql.errors import NotFound, OpenInstances, WorkflowExists, WorkflowInUse

router = strict_router("workflows")

_WORKFLOW = "/projects/{project}/workflows/{name}"
Despite = Literal["runs", "references", "backfills"]


@router.get(
    _WORKFLOW + "/dependencies",
    summary="Show what a workflow names and what names it",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_dependencies(
    store: StoreDep, caller: Calling, project: ProjectName, name: WorkflowName
) -> DependenciesOut:
    """The workflows that it runs or waits for, and those that run it or wait for it.

    By the newest definitions, in all projects that the caller sees; of others only how many.
    """
    async with store.unit_of_work(read_only=True) as uow:
        version = await uow.workflows.version_by_name(project, name)
        found = await uow.references.to(project, name, caller.visible)
    upstream = references(project, {"tasks": [one.model_dump() for one in version.spec.tasks]})
    return DependenciesOut(
        project=project,
        name=name,
        upstream=[NamedOut.of_record(one) for one in upstream],
        downstream=named(found),
        hidden=found.hidden,
    )


@router.get(
    _WORKFLOW + "/hanging",
    summary="Show what hangs on a workflow",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_hanging(
    store: StoreDep, caller: Calling, project: ProjectName, name: WorkflowName
) -> HangingOut:
    """Look at it before you delete or rename a workflow."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.get(project, name)
        return hanging_out(await uow.lifecycle.hanging(found, caller.visible))


@router.delete(
    _WORKFLOW, summary="Delete a workflow", status_code=204, responses=documented(404, 409)
)
@needs(Permission.PROJECT_EDIT, audit="workflow.delete")
async def delete_workflow(
    store: StoreDep,
    feed: FeedDep,
    caller: Calling,
    project: ProjectName,
    name: WorkflowName,
    condition: Condition,
    despite: Annotated[
        set[Despite],
        Query(description="Delete it although there are such; open runs go on to their end."),
    ] = set(),  # noqa: B006 - FastAPI copies it
) -> None:
    """Deletes a workflow and its schedules. Its versions and its instances stay readable.

    Refused while an instance or a backfill has not ended, or another workflow names it, unless
    `despite` says so.
    """
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: detail_of(uow, project, name), tag_of=tag_of)
        found = await uow.workflows.lock(project, name)
        hangs = await uow.lifecycle.hanging(found, caller.visible)
        if hangs.open_count and "runs" not in despite:
            raise OpenInstances(project, name, hangs.open_count)
        seen = () if "references" in despite else hangs.referrers.workflows
        hidden = 0 if "references" in despite else hangs.referrers.hidden
        backfills = 0 if "backfills" in despite else hangs.backfills
        if seen or hidden or backfills:
            raise WorkflowInUse(project, name, seen, hidden, backfills)
        await uow.lifecycle.delete(project, name, store.clock(), leaving_runs="runs" in despite)
        await uow.commit()
    feed.poll_soon()


@router.post(
    _WORKFLOW + "/rename",
    summary="Rename a workflow",
    responses=documented(400, 404, 409, 413, 415),
)
@needs(Permission.PROJECT_EDIT, audit="workflow.rename")
async def rename_workflow(
    store: StoreDep,
    feed: FeedDep,
    caller: Calling,
    project: ProjectName,
    name: WorkflowName,
    body: Annotated[RenameIn, Body()],
    condition: Condition,
    dry_run: Annotated[bool, Query(description="Only say what would happen.")] = False,
) -> RenameOut:
    """Publishes a version with the new name. History, schedules, drafts and open runs go with it.

    Refused while other workflows name it by the old one, unless `despite` says so; `dry_run` lists
    them. What it says of itself follows.
    """
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: detail_of(uow, project, name), tag_of=tag_of)
        found = await uow.workflows.lock(project, name)
        left = await uow.references.to(project, name, caller.visible)
        if (left.seen or left.hidden) and not dry_run and "references" not in body.despite:
            raise WorkflowInUse(project, name, left.workflows, left.hidden, 0)
        done = await uow.lifecycle.rename(
            project, found.name, body.name, store.clock(), caller.name
        )
        tag = tag_of(await uow.workflows.get(project, body.name))
        if not dry_run:
            await uow.commit()
    feed.poll_soon()
    out = RenameOut(
        project=project,
        before=name,
        name=body.name,
        version=done.version.version,
        dry_run=dry_run,
        downstream=named(left),
        hidden=left.hidden,
    )
    return condition.answer(out, tag=tag)


@router.post(
    _WORKFLOW + "/copy",
    summary="Make a copy of a workflow",
    response_model=PublishOut,
    status_code=201,
    responses=documented(400, 404, 409, 413, 415),
)
@needs(Permission.PROJECT_EDIT, audit="workflow.copy")
async def copy_workflow(
    store: StoreDep,
    feed: FeedDep,
    caller: Calling,
    project: ProjectName,
    name: NewName,
    body: Annotated[CopyIn, Body()],
) -> Response:
    """Publishes, under the name in the path, what another workflow says, of any project.

    What it names without a project is meant in its own project: what the copy names has to be
    there. A workflow that has the name already is never changed (409).
    """
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        version = await uow.workflows.version_by_name(body.project, body.workflow, body.version)
        try:
            await uow.workflows.get(project, name)
        except NotFound:
            pass
        else:
            raise WorkflowExists(project, name)
        content = renamed(version.spec, name, project)
        spec = check_value(project, name, content).require()
        if problems := await problems_there(uow, spec):
            raise InvalidDefinition(problems)
        done, before = await published(uow, spec, store.clock(), by=caller.name)
        copy = await uow.workflows.get(project, name)
        if (layout := await uow.layouts.get(version.workflow_id)) is not None:
            own = layout.of_tasks({task.name for task in spec.tasks})
            await uow.layouts.put(copy.id, replace(own, updated_by=caller.name))
        tag = tag_of(copy)
        warnings = await warnings_of(uow, spec, caller.visible)
        await uow.commit()
    return await answered(feed, done, before, tag, warnings=warnings)


@router.post(_WORKFLOW + "/archive", summary="Archive a workflow", responses=documented(404))
@needs(Permission.PROJECT_EDIT, audit="workflow.archive")
async def archive_workflow(
    store: StoreDep, feed: FeedDep, project: ProjectName, name: WorkflowName, condition: Condition
) -> WorkflowOut:
    """No run of it starts any longer, by schedule, by request or as a sub-workflow.

    What runs goes on, and its history stays. Lists leave it out unless they are asked for it.
    """
    return await _archived(store, feed, project, name, condition, is_archived=True)


@router.post(
    _WORKFLOW + "/unarchive",
    summary="Take a workflow out of the archive",
    responses=documented(404),
)
@needs(Permission.PROJECT_EDIT, audit="workflow.unarchive")
async def unarchive_workflow(
    store: StoreDep, feed: FeedDep, project: ProjectName, name: WorkflowName, condition: Condition
) -> WorkflowOut:
    """Its schedules fire again from now on; what they have left out is not made up for."""
    return await _archived(store, feed, project, name, condition, is_archived=False)


async def _archived(
    store: Store, feed: Feed, project: str, name: str, condition: Condition, *, is_archived: bool
) -> WorkflowOut:
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: detail_of(uow, project, name), tag_of=tag_of)
        change = uow.lifecycle.archive if is_archived else uow.lifecycle.unarchive
        found = await change(project, name, store.clock())
        await uow.commit()
    feed.poll_soon()
    return condition.answer(WorkflowOut.of(found), tag=tag_of(found))
