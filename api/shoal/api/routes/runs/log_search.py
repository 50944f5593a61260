"""Search in logs: of one attempt, or of all attempts of an instance."""

from typing import Annotated

from fastapi import Query
from pydantic import StringConstraints

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.runs.log_search import Budget, LineSearch, matcher, search
from shoal.api.routes.runs.instances import InstanceId
from shoal.api.routes.runs.tasks import TaskInstanceId
from shoal.api.schemas.runs.log_search import HitOut, InstanceHits, LogHits, TaskHits
from shoal.api.services import LogsDep, StoreDep
from shoal.api.web.errors import LogUnavailable, NoSuchThing
from shoal.api.web.paging import MAX_ID, Cursor, decode_cursor, encode_cursor
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import ONE_LINE
from shoal.core.runs.filters import LONGEST_TEXT

router = strict_router("logs")

MOST_LOGS = 200  # that one request looks into
_KIND = "log-hits"

Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT, pattern=ONE_LINE)]
Wanted = Annotated[Text | None, Query(description="A text that a line contains.")]
Regex = Annotated[
    Text | None,
    Query(
        description="Or a pattern that it contains, of [these](https://docs.rs/regex/latest/regex/"
        "#syntax): linear in time, so without look-around and references.",
        examples=[r"rows=\d+"],
    ),
]
IgnoreCase = Annotated[bool, Query(description="Whether case of letters does not matter.")]
Context = Annotated[int, Query(ge=0, le=20, description="Lines before and behind each hit.")]
Hits = Annotated[int, Query(ge=1, le=500, description="How many lines to find, at most.")]


@router.get(
    "/task-instances/{task_instance_id}/log/search",
    summary="Search a log",
    responses=documented(404, 502),
)
@needs(Permission.PROJECT_READ, large=True)
async def search_log(
    store: StoreDep,
    logs: LogsDep,
    task_instance_id: TaskInstanceId,
    text: Wanted = None,
    regex: Regex = None,
    ignore_case: IgnoreCase = False,
    context: Context = 0,
    offset: Annotated[int, Query(ge=0, le=MAX_ID, description="First byte.")] = 0,
    limit: Hits = 100,
) -> LogHits:
    """Lines of the log of one attempt, with the byte offset of each.

    One request reads 16 MiB or 5 s at most; `next_offset` is where to go on, also of a log that
    still grows. It is null at the end of a finished one.
    """
    wanted = LineSearch(matcher(text, regex, ignore_case), context, limit)
    async with store.unit_of_work(read_only=True) as uow:
        task = await uow.tasks.get(task_instance_id)
    found = await search(logs, task, offset, wanted, Budget())
    return LogHits(
        hits=[HitOut.model_validate(hit) for hit in found.hits],
        next_offset=found.next,
        size=found.size,
        finished=found.finished,
    )


@router.get(
    "/instances/{instance_id}/log-search",
    summary="Search the logs of an instance",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ, large=True)
async def search_logs(
    store: StoreDep,
    logs: LogsDep,
    instance_id: InstanceId,
    text: Wanted = None,
    regex: Regex = None,
    ignore_case: IgnoreCase = False,
    context: Context = 0,
    every: Annotated[bool, Query(description="Earlier attempts of each task as well.")] = False,
    limit: Hits = 100,
    cursor: Cursor = None,
) -> InstanceHits:
    """Lines of the logs of an instance's tasks, in the order of its definition.

    One request reads 16 MiB, 200 logs or 5 s at most; `next` continues. A log that cannot be read
    is named with the reason, and does not keep the others.
    """
    matches = matcher(text, regex, ignore_case)
    task_id, offset = decode_cursor(_KIND, cursor, int, int) or (0, 0)
    async with store.unit_of_work(read_only=True) as uow:
        await uow.instances.get(instance_id)
        tasks = await uow.tasks.of_instance(instance_id, every)
    tasks = [one for one in tasks if one.worker is not None]
    begin = next((i for i, one in enumerate(tasks) if one.id == task_id), 0)
    budget, found, left = Budget(), list[TaskHits](), limit
    for number, task in enumerate(tasks[begin:]):
        if left <= 0 or budget.is_used_up or number >= MOST_LOGS:
            return InstanceHits(items=found, next=encode_cursor(_KIND, task.id, offset))
        wanted = LineSearch(matches, context, left)
        try:
            part = await search(logs, task, offset, wanted, budget)
        except (LogUnavailable, NoSuchThing) as error:
            found.append(_hits(task.id, task.task, task.attempt, problem=str(error)))
            offset = 0
            continue
        hits = [HitOut.model_validate(hit) for hit in part.hits]
        if hits:
            found.append(_hits(task.id, task.task, task.attempt, hits))
        left -= len(hits)
        is_cut = part.next is not None and (wanted.is_full or budget.is_used_up)
        if is_cut and part.next is not None and part.next < part.size:
            return InstanceHits(items=found, next=encode_cursor(_KIND, task.id, part.next))
        offset = 0
    return InstanceHits(items=found, next=None)


def _hits(
    task_id: int, task: str, attempt: int, hits: list[HitOut] | None = None, problem: str = ""
) -> TaskHits:
    return TaskHits(
        task_instance_id=task_id,
        task=task,
        attempt=attempt,
        hits=hits or [],
        problem=problem or None,
    )
