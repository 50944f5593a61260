"""What waits for the workers of each group, in the order in which they claim it."""

from itertools import groupby
from typing import Annotated, cast

from fastapi import Query

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.cluster.view import ClusterView
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.cluster import QueueEntryOut
from shoal.api.services import ClusterDep, StoreDep
from shoal.api.web.answers import by_id, shown
from shoal.api.web.paging import (
    Cursor,
    Limit,
    bad_cursor,
    decode_cursor,
    encode_cursor,
    filtered,
    page,
)
from shoal.coordination import QueueEntry
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import NAME_PATTERN, Priority, PriorityName
from shoal.core.runs.records import TaskInstance

router = strict_router("cluster")

_MOST_AHEAD = 10_000  # entries that are counted for a position
_TRIES = 3  # entries of a page may be claimed while their position is asked for

_NAMES = ("workflow_instance_id", "project", "workflow", "task", "attempt", "queued_at")

GroupName = Annotated[
    str | None, Query(pattern=NAME_PATTERN, description="Only what waits for this worker group.")
]


@router.get("/queue-entries", summary="List what waits for workers")
@needs(Permission.PROJECT_READ)
async def list_queue_entries(
    store: StoreDep,
    cluster: ClusterDep,
    caller: Calling,
    group: GroupName = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[QueueEntryOut]:
    """Tasks of all projects, by worker group, in the order in which its workers claim them.

    Those of projects that the caller may not see count, and say no names. Near neighbours may
    overtake each other where several workers claim at once. A page may have fewer items than asked
    for although more follow: the list is over when `next` is null.
    """
    kind = filtered("queue-entries", group)
    after = _after(kind, cursor)
    groups = await cluster.queue.groups() if group is None else [group]
    entries: list[QueueEntry] = []
    more = False
    for one in groups:
        if after is not None and one < after.group:
            continue
        start = after if after is not None and one == after.group else None
        found, more = await cluster.queue.waiting(one, start, limit + 1 - len(entries))
        entries += found
        if more or len(entries) > limit:
            break
    some, is_cut = page(entries, limit)
    positions = await _positions(cluster, some, after)
    async with store.unit_of_work(read_only=True) as uow:
        tasks = await uow.tasks.known([one.task_instance_id for one in some], caller.visible)
    by_task = {one.task_instance_id: one for one in some}

    def named(task: TaskInstance) -> tuple[int, QueueEntryOut]:
        entry = by_task[task.id]
        return task.id, _shown(entry, positions.get(entry), task)

    known = dict(shown("task instance", tasks, named, by_id))
    last = some[-1] if some and (more or is_cut) else None
    return Page(
        items=[known.get(one.task_instance_id) or _shown(one, positions.get(one)) for one in some],
        next=last and encode_cursor(kind, last.group, *last.place, last.partition, last.lane),
    )


async def _positions(
    cluster: ClusterView, entries: list[QueueEntry], after: QueueEntry | None
) -> dict[QueueEntry, int]:
    """Return the position of each entry in its group, as far as it can be counted."""
    found: dict[QueueEntry, int] = {}
    for group, members in groupby(entries, key=lambda one: one.group):
        some = list(members)
        goes_on = after is not None and after.group == group
        first = await _ahead(cluster, some) if goes_on else 0
        if first is not None:
            found |= {one: number for number, one in enumerate(some, first + 1)}
    return found


async def _ahead(cluster: ClusterView, entries: list[QueueEntry]) -> int | None:
    """Return how many entries are before the first of ``entries``; None: too many to count."""
    for number, entry in enumerate(entries[:_TRIES]):
        ahead = await cluster.queue.ahead(entry, _MOST_AHEAD)
        if ahead is not None:
            return max(0, ahead - number) if ahead < _MOST_AHEAD else None
    return None


def _shown(
    entry: QueueEntry, position: int | None, task: TaskInstance | None = None
) -> QueueEntryOut:
    names = {name: None if task is None else getattr(task, name) for name in _NAMES}
    return QueueEntryOut(
        group=entry.group,
        position=position,
        priority=_priority(entry.workflow_priority),
        task_priority=_priority(entry.task_priority),
        task_instance_id=None if task is None else task.id,
        **names,
    )


def _priority(level: int) -> PriorityName:
    return cast("PriorityName", Priority(level).name)


def _after(kind: str, cursor: str | None) -> QueueEntry | None:
    position = decode_cursor(kind, cursor, str, int, int, int, int, int, int)
    if position is None:
        return None
    try:
        return QueueEntry(*position)
    except ValueError:
        raise bad_cursor() from None
