"""Past runs: read from the exported history, which keeps them when the database purges them.

The history has names of projects, rights go by ids: a caller sees the past runs of the projects
that it may see now. An answer that an instance does not exist says so if the history has it.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import structlog
from fastapi import FastAPI, Path, Query, Request, Response

from shoal.api.access.callers import Caller, Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.logs import MOST_BYTES, text_of
from shoal.api.schemas.common import Page
from shoal.api.schemas.runs.instances import LogOut
from shoal.api.schemas.runs.past import (
    PastAttemptOut,
    PastInstanceDetail,
    PastInstanceOut,
    PastTaskOut,
)
from shoal.api.services import LogsDep, PastDep, StoreDep
from shoal.api.web.answers import legible, shown
from shoal.api.web.errors import FieldError, InvalidRequest, NoSuchThing
from shoal.api.web.paging import MAX_ID, Cursor, Limit, decode_cursor, encode_cursor, filtered
from shoal.api.web.problems import documented, kind_of, problem_response
from shoal.api.web.store import Store
from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import Priority
from shoal.core.errors import ShoalError
from shoal.core.runs.states import WorkflowState
from shoal.insight.past.client import PastRuns, PastUnavailable
from shoal.insight.past.questions import PageWanted, PastInstance
from shoal.sql.errors import NotFound

router = strict_router("past instances")

PastInstanceId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[17])]
AttemptId = Annotated[int, Path(ge=1, le=MAX_ID, examples=[91])]
Project = Annotated[str | None, Query(max_length=100, description="Only for this project.")]
Workflow = Annotated[str | None, Query(max_length=100, description="Only for this workflow.")]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = (
    *("logical_time", "created_at", "admitted_at", "waiting_since", "queued_at", "started_at"),
    *("finished_at", "deadline_at", "late_at"),
)


@router.get(
    "/past-instances", summary="List past workflow instances", responses=documented(404, 503)
)
@needs(Permission.PROJECT_READ)
async def list_past_instances(
    store: StoreDep,
    past: PastDep,
    caller: Calling,
    project: Project = None,
    workflow: Workflow = None,
    state: Annotated[
        list[WorkflowState] | None, Query(description="Only in one of these; repeatable.")
    ] = None,
    first: Annotated[
        date | None, Query(alias="from", description="Ended on this day (UTC) or later.")
    ] = None,
    last: Annotated[
        date | None, Query(alias="to", description="Ended on this day (UTC) or earlier.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[PastInstanceOut]:
    """All runs that have ended and were exported, the newest end first.

    They stay here when the database has purged them; `in_database` says whether it has. The newest
    minutes may be missing. A page may have fewer items than asked for, even none, although more
    follow: the list is over when `next` is null.
    """
    if first is not None and last is not None and first > last:
        raise InvalidRequest([FieldError("from", "is behind `to`")])
    states = sorted(set(state or ()))
    kind = filtered("past-instances", project, workflow, states, first, last)
    position = decode_cursor(kind, cursor, int, int)
    names = await caller.visible_names(store)
    if names is None:
        projects = None if project is None else [project]
    else:
        projects = sorted(name for name in names if project in (None, name))
    wanted = PageWanted(
        limit=limit,
        projects=projects,
        workflow=workflow,
        states=[str(one) for one in states],
        first=first,
        last=last,
        before=position and (position[0], position[1]),
    )
    found = await past.page(wanted)
    known = await in_database(store, [row["instance_id"] for row in found.rows])
    return Page(
        items=shown(
            "past run",
            found.rows,
            lambda row: PastInstanceOut(**_run_values(row, known)),
            lambda row: row["instance_id"],
        ),
        next=encode_cursor(kind, *found.before) if found.before else None,
    )


@router.get(
    "/past-instances/{past_instance_id}",
    summary="Show a past instance",
    responses=documented(404, 503),
)
@needs(Permission.PROJECT_READ)
async def get_past_instance(
    store: StoreDep, past: PastDep, past_instance_id: PastInstanceId
) -> PastInstanceDetail:
    """A run that has ended, with its attempts and the plan of its version."""
    run = await past_run(past, past_instance_id)
    known = await in_database(store, [past_instance_id])
    with legible("past run", past_instance_id):
        return PastInstanceDetail(
            **_run_values(run.row, known),
            attempts=shown(
                "attempt of a past run",
                run.attempts,
                lambda row: PastAttemptOut(id=row["attempt_id"], **_values(row)),
                lambda row: row["attempt_id"],
            ),
            attempts_left_out=run.left_out,
            tasks=None
            if run.tasks is None
            else [PastTaskOut(depends_on=task["upstream"], **task) for task in run.tasks],
        )


@router.get(
    "/past-instances/{past_instance_id}/attempts/{attempt_id}/log",
    summary="Read a range of the log of a past attempt",
    responses=documented(404, 503),
)
@needs(Permission.PROJECT_READ)
async def get_past_log(
    logs: LogsDep,
    past: PastDep,
    past_instance_id: PastInstanceId,
    attempt_id: AttemptId,
    offset: Annotated[
        int, Query(ge=-MAX_ID, le=MAX_ID, description="First byte; negative: from the end.")
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_BYTES, description="Bytes, at most.")] = 64 * 1024,
) -> LogOut:
    """Text of a log that the archive of logs still has: `keep_archived_logs_days`."""
    run = await past_run(past, past_instance_id)
    if attempt_id not in {row["attempt_id"] for row in run.attempts}:
        raise NoSuchThing(f"the past run {past_instance_id} has no attempt {attempt_id}")
    part = await logs.of_past(past_instance_id, attempt_id, offset, limit)
    text, start, end = text_of(part, from_end=offset < 0)
    return LogOut(data=text, offset=start, next_offset=end, size=part.size, finished=part.finished)


def _run_values(row: Mapping[str, Any], known: Mapping[int, Any]) -> dict[str, Any]:
    return {
        "id": row["instance_id"],
        **_values(row),
        "priority": Priority(row["priority"]).name,
        "in_database": row["instance_id"] in known,
    }


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row; times are microseconds in it."""
    return {
        name: _EPOCH + timedelta(microseconds=value)
        if name in _TIMES and value is not None
        else value
        for name, value in row.items()
    }


log = structlog.get_logger()

_INSTANCE = re.compile(r"/api/v1/instances/([0-9]{1,18})(/.*)?")
_HINT_S = 3.0  # an answer that something is not there waits so long for the history


async def past_run(past: PastRuns, instance_id: int) -> PastInstance:
    """Return a past run. Raises NotFound if there is none."""
    run = await past.run(instance_id)
    if run is None:
        raise NotFound(Thing.PAST_RUN, instance_id)
    return run


async def in_database(store: Store, ids: Sequence[int]) -> Mapping[int, Any]:
    """Return those of these instances that the database has."""
    async with store.unit_of_work(read_only=True) as uow:
        return await uow.instances.ends(ids)


def install(app: FastAPI) -> None:
    """Have answers that there is no instance say so if the exported history has it."""
    app.add_exception_handler(NotFound, _not_found)


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotFound)
    kind = kind_of(error)
    assert kind is not None
    place = await _place_of(request, error)
    if place is None:
        return problem_response(request, kind, kind.detail or str(error))
    detail = f"{error} in the database any longer; the exported history has it: {place}"
    return problem_response(request, kind, detail, members={"past": place})


async def _place_of(request: Request, missing: NotFound) -> str | None:
    """Return where the past run is that a request is about, if there is one for the caller."""
    match = _INSTANCE.fullmatch(request.url.path)
    caller = getattr(request.state, "caller", None)
    past = request.app.state.services.past
    if not match or not isinstance(caller, Caller) or not past.is_on:
        return None
    instance_id = int(match[1])
    if (missing.kind, str(missing.key)) != (Thing.INSTANCE, str(instance_id)):
        return None  # it is about something else, of an instance that there is
    try:
        async with asyncio.timeout(_HINT_S):
            await caller.require(Permission.PROJECT_READ, Thing.PAST_RUN, instance_id)
            await past_run(past, instance_id)
    except NotFound:
        return None
    except (PastUnavailable, ShoalError, TimeoutError) as error:
        log.info("the history was not asked", instance=instance_id, error=str(error))
        return None
    return f"/api/v1/past-instances/{instance_id}"
