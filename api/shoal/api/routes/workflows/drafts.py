"""Drafts: unpublished changes. Each user has one draft of each workflow.

So no editor overwrites what another one is typing. Where two have published, the second one is
told what the first one did, and nothing is lost.
"""

import asyncio
from typing import Annotated

from fastapi import Body, Query, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import NOTHING, needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.authoring.checks import check, problems_there
from shoal.api.operations.authoring.plan import plan_of, plan_out
from shoal.api.operations.authoring.publication import (
    answered,
    detail,
    published,
    tag_of,
    warnings_of,
)
from shoal.api.routes.projects import NewName, ProjectName
from shoal.api.routes.workflows.published import WorkflowName
from shoal.api.schemas.authoring import (
    DefinitionIn,
    DraftDetail,
    DraftIn,
    DraftOut,
    ValidationOut,
    WorkflowPlanOut,
)
from shoal.api.schemas.common import Page
from shoal.api.schemas.definitions import PublishOut
from shoal.api.services import FeedDep, LargeWorkDep, StoreDep
from shoal.api.web.answers import answer, by_name, legible, shown
from shoal.api.web.errors import FieldError, InvalidRequest, PreconditionFailed
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import ProblemField, documented
from shoal.core.access.permissions import Permission
from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.diff import diff
from shoal.core.definition.drafts import DefinitionDraft, DraftInfo
from shoal.sql import UnitOfWork
from shoal.sql.errors import DraftChanged, NotFound

router = strict_router("drafts")

_WORKFLOW = "/projects/{project}/workflows/{name}"
_DRAFT = _WORKFLOW + "/draft"


@router.get("/projects/{project}/drafts", summary="List drafts", responses=documented(404))
@needs(Permission.PROJECT_EDIT)
async def list_drafts(
    store: StoreDep,
    project: ProjectName,
    name: Annotated[
        str | None, Query(max_length=100, description="Only for this workflow.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[DraftOut]:
    """Who works on what, by workflow and editor."""
    after = decode_cursor("drafts", cursor, str, str)
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.drafts.list(
            project, name, (after[0], after[1]) if after else None, limit + 1
        )
    items, more = page(found, limit)
    return Page(
        items=shown("draft", items, lambda one: DraftOut.model_validate(_values(one)), by_name),
        next=encode_cursor("drafts", items[-1].name, items[-1].editor) if more else None,
    )


@router.get(_DRAFT, summary="Show a draft", responses=documented(404))
@needs(Permission.PROJECT_EDIT)
async def get_draft(
    store: StoreDep,
    caller: Calling,
    project: ProjectName,
    name: WorkflowName,
    response: Response,
    editor: Annotated[
        str | None, Query(max_length=201, description="User name; default: the caller.")
    ] = None,
) -> DraftDetail:
    """The draft of a workflow, of the caller or of another user."""
    async with store.unit_of_work(read_only=True) as uow:
        return tagged(response, await _stored(uow, project, name, editor or caller.name))


@router.put(
    _DRAFT,
    summary="Save a draft",
    responses={
        201: {"model": DraftDetail, "description": "It is new."},
        **documented(400, 404, 409, 413, 415),
    },
)
@needs(Permission.PROJECT_EDIT, audit="draft.save")
async def put_draft(
    store: StoreDep,
    caller: Calling,
    project: ProjectName,
    name: NewName,
    body: Annotated[DraftIn, Body()],
    condition: Condition,
) -> DraftDetail:
    """Keeps the caller's draft as it is typed, also if it is not a definition yet.

    Nothing is checked, published or run. One that is there needs `If-Match`: it may be open in
    another window.
    """
    now, editor = store.clock(), caller.name
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.strictly().check(lambda: _stored(uow, project, name, editor), body)
        if body.base_version and body.base_version > await _newest(uow, project, name):
            raise InvalidRequest([FieldError("base_version", "there is no such version")])
        try:
            found = await uow.drafts.get(project, name, editor, lock=True)
        except NotFound:
            base = body.base_version
            base = await _newest(uow, project, name) if base is None else base
            is_new = await uow.drafts.add(project, name, editor, body.text, base, now)
            if not is_new:
                raise DraftChanged(project, name) from None
        else:
            is_new = False
            base = found.base_version if body.base_version is None else body.base_version
            await uow.drafts.change(found, body.text, base, now)
        stored = await _stored(uow, project, name, editor)
        await uow.commit()
    return condition.answer(stored, is_new=is_new)


@router.delete(_DRAFT, summary="Discard a draft", status_code=204, responses=documented(404, 409))
@needs(Permission.PROJECT_EDIT, audit="draft.discard")
async def delete_draft(
    store: StoreDep, caller: Calling, project: ProjectName, name: WorkflowName, condition: Condition
) -> None:
    """Deletes the caller's draft; what is published stays."""
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.strictly().check(lambda: _stored(uow, project, name, caller.name))
        await uow.drafts.delete(await uow.drafts.get(project, name, caller.name, lock=True))
        await uow.commit()


@router.post(
    _WORKFLOW + "/validate",
    summary="Check a definition",
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.PROJECT_EDIT, audit=NOTHING, large=True)
async def validate_workflow(
    store: StoreDep, project: ProjectName, name: NewName, body: Annotated[DefinitionIn, Body()]
) -> ValidationOut:
    """Says all that is wrong with a definition, each with its field and the line of the text.

    By itself, and for what it names: calendars, groups, environments, other projects. Nothing is
    stored.
    """
    checked = await check(project, name, body.text, body.definition)
    problems = list(checked.problems)
    if checked.spec is not None:
        async with store.unit_of_work() as uow:
            found = await problems_there(uow, checked.spec)
        problems += [checked.locate(one) for one in found]
    return ValidationOut(
        valid=not problems,
        problems=[
            ProblemField(field=one.field, message=one.message, line=one.line) for one in problems
        ],
    )


@router.post(
    _WORKFLOW + "/plan",
    summary="Show what publishing would do",
    response_model=WorkflowPlanOut,
    responses=documented(400, 404, 409, 413, 415),
)
@needs(Permission.PROJECT_EDIT, audit=NOTHING, large=True)
async def plan_workflow(
    store: StoreDep,
    work: LargeWorkDep,
    caller: Calling,
    project: ProjectName,
    name: NewName,
    body: Annotated[DefinitionIn, Body()],
) -> Response:
    """What would differ, when schedules would fire, what names the workflow, what runs now.

    It is published and taken back again: so what the answer says is what would happen.
    """
    checked = await check(project, name, body.text, body.definition)
    spec = checked.require()
    async with store.unit_of_work() as uow:
        plan = await plan_of(uow, checked, store.clock(), caller.visible)
    found = await plan_out(plan, work)
    return await answer(lambda: found, len(spec.tasks))


@router.post(
    _DRAFT + "/publish",
    summary="Publish a draft",
    response_model=PublishOut,
    responses={
        201: {"model": PublishOut, "description": "A new version was published."},
        **documented(404, 409),
    },
)
@needs(Permission.PROJECT_EDIT, audit="workflow.publish")
async def publish_draft(
    store: StoreDep,
    feed: FeedDep,
    caller: Calling,
    project: ProjectName,
    name: NewName,
    condition: Condition,
) -> Response:
    """Makes the caller's draft the newest version, and deletes the draft.

    Refused (412) if a version was published since the draft's `base_version`: `current` is what is
    published now, `changes` what was changed. Take it in, save the draft with the new
    `base_version`, and publish again.
    """
    async with store.unit_of_work(read_only=True) as uow:
        seen = await uow.drafts.get(project, name, caller.name)
    checked = await check(project, name, seen.text, None)
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        await condition.check(lambda: _stored(uow, project, name, caller.name))
        spec = checked.require()
        draft = await uow.drafts.get(project, name, caller.name, lock=True)
        if draft.revision != seen.revision:
            raise DraftChanged(project, name)
        await _require_base(uow, draft)
        if problems := await problems_there(uow, spec):
            raise InvalidDefinition([checked.locate(one) for one in problems])
        done, before = await published(uow, spec, store.clock(), source=seen.text, by=caller.name)
        await uow.drafts.delete(draft)
        tag = tag_of(await uow.workflows.get(project, name))
        warnings = await warnings_of(uow, spec, caller.visible)
        await uow.commit()
    return await answered(feed, done, before, tag, warnings=warnings)


async def _require_base(uow: UnitOfWork, draft: DefinitionDraft) -> None:
    """Raise PreconditionFailed unless the draft builds upon what is published now."""
    try:
        found = await uow.workflows.lock(draft.project, draft.name)
    except NotFound:
        if draft.base_version == 0:
            return
        raise PreconditionFailed(
            f"the workflow has been deleted since version {draft.base_version}, which the draft "
            "builds upon; save the draft with base_version 0 to publish it anew"
        ) from None
    if found.version == draft.base_version:
        return
    newest = await uow.workflows.spec(found.id, found.version)
    base = {}
    if draft.base_version:
        base = (await uow.workflows.spec(found.id, draft.base_version)).canonical()
    changes = await asyncio.to_thread(diff, base, newest.canonical())
    raise PreconditionFailed(
        f"version {found.version} was published since version {draft.base_version}, which the "
        "draft builds upon: `current` is it, `changes` what it has changed; take that in, save the "
        f"draft with base_version {found.version}, then publish it",
        detail(found, newest).model_dump(mode="json"),
        changes,
        headers={"ETag": tag_of(found)},
    )


async def _newest(uow: UnitOfWork, project: str, name: str) -> int:
    try:
        return (await uow.workflows.get(project, name)).version
    except NotFound:
        return 0


async def _stored(uow: UnitOfWork, project: str, name: str, editor: str) -> DraftDetail:
    found = await uow.drafts.get(project, name, editor)
    with legible("draft", name):
        return DraftDetail.model_validate(_values(found))


def _values(found: DraftInfo) -> dict[str, object]:
    return {**vars(found), "newest_version": found.newest}
