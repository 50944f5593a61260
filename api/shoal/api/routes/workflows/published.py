"""What is published: the newest definition of each workflow."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Body, Path, Query, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.authoring.checks import require_grants
from shoal.api.operations.authoring.publication import (
    answered,
    detail,
    detail_of,
    published,
    tag_of,
    warnings_of,
)
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.definitions import (
    LastRunOut,
    PublishOut,
    WorkflowDetail,
    WorkflowOut,
)
from shoal.api.services import FeedDep, StoreDep
from shoal.api.web.answers import MOST_AT_ONCE, answer, by_name, legible, shown
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import (
    Cursor,
    Limit,
    bad_cursor,
    decode_cursor,
    encode_cursor,
    filtered,
    page,
)
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.filters import WorkflowFilter
from shoal.core.runs.records import Place, StoredWorkflow, WorkflowOrder, place_of
from shoal.runtime.plugins import check_definition

router = strict_router("workflows")
MOST_LAST_RUNS = 30

WorkflowName = Annotated[str, Path(max_length=100, examples=["daily"])]
Definition = Annotated[
    dict[str, Any],
    Body(
        description="A definition; `project` and `name` may be left out, else they equal the path.",
    ),
]


@router.get("/workflows", summary="List workflows")
@needs(Permission.PROJECT_READ)
async def list_workflows(
    store: StoreDep,
    caller: Calling,
    wanted: Annotated[WorkflowFilter, Query()],
    runs: Annotated[
        int,
        Query(ge=0, le=MOST_LAST_RUNS, description="How many last runs of each.", examples=[14]),
    ] = 0,
    sort: Annotated[
        WorkflowOrder,
        Query(
            description="By project and name; or first what was changed last, what has run last, "
            "what fires next, what has failed last. The latter three order 5,000 at most."
        ),
    ] = WorkflowOrder.NAME,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[WorkflowOut]:
    """Workflows, each with its newest version, its last runs if asked for, and its next fire time.

    The last run is that for the latest logical time.
    """
    kind = filtered("workflows", wanted, sort)
    visible = caller.visible
    async with store.unit_of_work(read_only=True) as uow:
        if sort.is_ranked:
            after = _position(kind, cursor, sort)
            items, position = await uow.workflow_list.ranked(
                wanted, visible=visible, order=sort, after=after, limit=limit
            )
            next_ = None if position is None else _ranked_cursor(kind, position)
        else:
            found = await uow.workflow_list.page(
                wanted,
                visible=visible,
                order=sort,
                after=_place(kind, cursor, sort),
                limit=limit + 1,
            )
            items, more = page(found, limit)
            next_ = _cursor(kind, items[-1], sort) if more else None
        ids = [one.id for one in items]
        last, fires = await uow.recent.runs(ids, runs), await uow.recent.next_fires(ids)
    return Page(
        items=shown(
            "workflow",
            items,
            lambda one: WorkflowOut.of(
                one,
                next_fire_at=fires.get(one.id),
                last_runs=[LastRunOut.model_validate(run) for run in last.get(one.id, ())],
            ),
            by_name,
        ),
        next=next_,
    )


def _ranked_cursor(kind: str, position: tuple[Any, int]) -> str:
    value, row_id = position
    text = value.isoformat() if isinstance(value, datetime) else value or ""
    return encode_cursor(kind, text, row_id)


def _position(kind: str, cursor: str | None, sort: WorkflowOrder) -> tuple[Any, int] | None:
    after = decode_cursor(kind, cursor, str, int)
    if after is None or sort is WorkflowOrder.FAILING:
        return after
    return (_moment(after[0]) if after[0] else None), after[1]


def _cursor(kind: str, last: StoredWorkflow, sort: WorkflowOrder) -> str:
    place = place_of(last, sort)
    if isinstance(place[0], datetime):
        return encode_cursor(kind, place[0].isoformat(), place[1])
    return encode_cursor(kind, *place)


def _place(kind: str, cursor: str | None, sort: WorkflowOrder) -> Place | None:
    if sort is WorkflowOrder.NAME:
        after = decode_cursor(kind, cursor, str, str)
        return None if after is None else (after[0], after[1])
    after = decode_cursor(kind, cursor, str, int)
    if after is None:
        return None
    return _moment(after[0]), after[1]


def _moment(text: str) -> datetime:
    """Return the instant in a cursor. Raises InvalidRequest."""
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise bad_cursor() from None
    return moment


@router.put(
    "/projects/{project}/workflows/{name}",
    summary="Publish a definition",
    response_model=PublishOut,
    responses={
        201: {"model": PublishOut, "description": "A new version was published."},
        **documented(400, 404, 409, 413, 415),
    },
)
@needs(Permission.PROJECT_EDIT, audit="workflow.publish", project_may_be_missing=True)
async def publish_workflow(
    store: StoreDep,
    feed: FeedDep,
    caller: Calling,
    project: ProjectName,
    name: WorkflowName,
    definition: Definition,
    condition: Condition,
    dry_run: Annotated[bool, Query(description="Only check, and say what would happen.")] = False,
) -> Response:
    """Checks the whole definition and reports all problems at once.

    A new version is made only if something differs from the newest one. Everything happens in
    one transaction: version, schedules and event, or nothing.
    """
    spec = await _checked(project, name, definition)
    wanted = await _canonical(spec) if condition.asks else {}
    async with store.unit_of_work() as uow:
        if not dry_run:  # who may make the project can try before it is made
            await uow.projects.require(project)
        await condition.check(
            lambda: detail_of(uow, project, name), {"definition": wanted}, tag_of=tag_of
        )
        await require_grants(uow, spec)
        done, before = await published(uow, spec, store.clock(), by=caller.name)
        tag = tag_of(await uow.workflows.get(project, name))
        warnings = await warnings_of(uow, spec, caller.visible)
        if not dry_run:  # else everything that has been tried is rolled back
            await uow.commit()
    return await answered(feed, done, before, tag, dry_run=dry_run, warnings=warnings)


async def _canonical(spec: WorkflowSpec) -> dict[str, Any]:
    if len(spec.tasks) > MOST_AT_ONCE:
        return await asyncio.to_thread(spec.canonical)
    return spec.canonical()


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
async def get_workflow(store: StoreDep, project: ProjectName, name: WorkflowName) -> Response:
    """A workflow with its newest definition."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.get(project, name)
        version = await uow.workflows.version(found.id, found.version)
    with legible("workflow", name):
        made = await answer(lambda: detail(found, version.spec), len(version.spec.tasks))
    made.headers["ETag"] = tag_of(found)
    return made
