"""What lists of runs and attempts are limited to, as parameters of queries.

A cursor is bound to them: with other filters, or in another order, it is refused.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import StringConstraints

from shoal.api.schemas.common import ONE_LINE, Instant, PriorityName
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import MAX_ID, bad_cursor, decode_cursor, encode_cursor
from shoal.core.definition.fields import Priority
from shoal.core.definition.labels import MOST_LABELS, parse_filter
from shoal.core.runs.filters import Between, InstanceFilter, Lasting, SortKey, SortOrder, TaskFilter
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.core.runs.why.fingerprints import FINGERPRINT
from shoal.core.untrusted import read_json

LONGEST_TEXT = 200  # characters that are looked for

Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT, pattern=ONE_LINE)]
Seconds = Annotated[float, Query(ge=0, le=1e9)]
Project = Annotated[str | None, Query(description="Only those of this project.")]
Workflow = Annotated[str | None, Query(description="Only those of this workflow.")]
Label = Annotated[
    list[str] | None,
    Query(
        max_length=MOST_LABELS,
        description="KEY=VALUE, or KEY for any value; repeatable: a run has to have all of them.",
        examples=[["team=flights"]],
    ),
]
StartedSince = Annotated[Instant | None, Query(description="Started at this instant or later.")]
StartedUntil = Annotated[Instant | None, Query(description="Started before.")]
FinishedSince = Annotated[Instant | None, Query(description="Ended at this instant or later.")]
FinishedUntil = Annotated[Instant | None, Query(description="Ended before.")]
Shortest = Annotated[
    Seconds | None, Query(description="Ran, or runs by now, for so many seconds or more.")
]
Longest = Annotated[Seconds | None, Query(description="And no more than so many seconds.")]


async def _instances(
    project: Project = None,
    workflow: Workflow = None,
    state: Annotated[
        list[WorkflowState] | None, Query(description="Only in one of these; repeatable.")
    ] = None,
    label: Label = None,
    schedule_id: Annotated[
        int | None, Query(ge=1, le=MAX_ID, description="Only those that this schedule fired.")
    ] = None,
    backfill_id: Annotated[
        int | None, Query(ge=1, le=MAX_ID, description="Only those of this backfill.")
    ] = None,
    parent_id: Annotated[
        int | None,
        Query(ge=1, le=MAX_ID, description="Only those that tasks of this instance started."),
    ] = None,
    rerun_of: Annotated[
        int | None, Query(ge=1, le=MAX_ID, description="Only those that run this one again.")
    ] = None,
    version: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="Only of this version.")
    ] = None,
    priority: Annotated[
        list[PriorityName] | None, Query(description="Only of one of these; repeatable.")
    ] = None,
    since: Annotated[Instant | None, Query(description="Created at this instant or later.")] = None,
    until: Annotated[Instant | None, Query(description="Created before.")] = None,
    logical_since: Annotated[
        Instant | None, Query(description="For this logical time or a later one.")
    ] = None,
    logical_until: Annotated[Instant | None, Query(description="For an earlier one.")] = None,
    started_since: StartedSince = None,
    started_until: StartedUntil = None,
    finished_since: FinishedSince = None,
    finished_until: FinishedUntil = None,
    shortest: Shortest = None,
    longest: Longest = None,
    text: Annotated[
        Text | None, Query(description="In the workflow's name or the reason, in any case.")
    ] = None,
    late: Annotated[
        bool | None,
        Query(description="Only those that go on beyond their deadline, or only the others."),
    ] = None,
) -> InstanceFilter:
    return InstanceFilter(
        project=project,
        workflow=workflow,
        states=frozenset(state or ()),
        labels=read_labels(label or ()),
        schedule_id=schedule_id,
        backfill_id=backfill_id,
        parent_id=parent_id,
        rerun_of=rerun_of,
        version=version,
        priorities=frozenset(int(Priority[name]) for name in priority or ()),
        created=Between(since, until),
        logical=Between(logical_since, logical_until),
        started=Between(started_since, started_until),
        finished=Between(finished_since, finished_until),
        lasting=Lasting(shortest, longest),
        text=text,
        late=late,
    )


async def _tasks(
    project: Project = None,
    workflow: Workflow = None,
    state: Annotated[
        list[TaskState] | None,
        Query(description="Only in one of these; repeatable. Default: all but RESCHEDULED."),
    ] = None,
    label: Label = None,
    worker: Annotated[str | None, Query(description="Only those that this worker took.")] = None,
    instance_id: Annotated[
        int | None, Query(ge=1, le=MAX_ID, description="Only those of this instance.")
    ] = None,
    task: Annotated[str | None, Query(description="Only those of the task of this name.")] = None,
    type_: Annotated[
        str | None, Query(alias="type", description="Only of this type, such as SHELL.")
    ] = None,
    worker_group: Annotated[
        str | None, Query(description="Only those for this group of workers.")
    ] = None,
    environment: Annotated[
        str | None, Query(description="Only in this environment: NAME, or NAME@VERSION.")
    ] = None,
    fingerprint: Annotated[
        str | None,
        Query(
            pattern=f"^{FINGERPRINT.pattern}$",
            description="Only those whose error line has this fingerprint.",
        ),
    ] = None,
    started_since: StartedSince = None,
    started_until: StartedUntil = None,
    finished_since: FinishedSince = None,
    finished_until: FinishedUntil = None,
    shortest: Shortest = None,
    longest: Longest = None,
    text: Annotated[
        Text | None, Query(description="In the task's name or the reason, in any case.")
    ] = None,
) -> TaskFilter:
    return TaskFilter(
        project=project,
        workflow=workflow,
        states=frozenset(state or ()),
        labels=read_labels(label or ()),
        worker=worker,
        instance_id=instance_id,
        task=task,
        type=type_,
        worker_group=worker_group,
        environment=environment,
        fingerprint=fingerprint,
        started=Between(started_since, started_until),
        finished=Between(finished_since, finished_until),
        lasting=Lasting(shortest, longest),
        text=text,
    )


Instances = Annotated[InstanceFilter, Depends(_instances)]
Tasks = Annotated[TaskFilter, Depends(_tasks)]


def read_labels(given: Sequence[str]) -> dict[str, str | None]:
    """Return labels by key; None: any value. Raises InvalidRequest."""
    found: dict[str, str | None] = {}
    for text in given:
        try:
            key, value = parse_filter(text)
        except ValueError as error:
            raise InvalidRequest([FieldError("label", str(error))]) from None
        if found.setdefault(key, value) != value:
            raise InvalidRequest([FieldError("label", f"{key} cannot have two values at once")])
    return found


# -- orders -------------------------------------------------------------------------------------

_InstanceSort = Literal[
    "created_at", "-created_at", "logical_time", "-logical_time", "started_at", "-started_at",
    "finished_at", "-finished_at", "duration", "-duration", "priority", "-priority",
]  # fmt: skip
_TaskSort = Literal[
    "created_at", "-created_at", "started_at", "-started_at", "finished_at", "-finished_at",
    "duration", "-duration",
]  # fmt: skip
_SORTS = (
    "`-` is falling. created_at costs what the page costs. logical_time needs the filters project "
    "and workflow. All others put what the filters leave into an order, which may be 5,000 at most."
)
InstanceSort = Annotated[_InstanceSort, Query(description=_SORTS)]
TaskSort = Annotated[_TaskSort, Query(description=_SORTS)]


def read_order(text: str, wanted: InstanceFilter | TaskFilter) -> SortOrder:
    """Return the order of a list. Raises InvalidRequest."""
    key, is_rising = SortKey(text.removeprefix("-")), not text.startswith("-")
    if key is SortKey.LOGICAL and None in (wanted.project, wanted.workflow):
        message = "logical_time needs the filters project and workflow: it orders one workflow's"
        raise InvalidRequest([FieldError("sort", message)])
    return SortOrder(key, is_rising)


# -- cursors ------------------------------------------------------------------------------------

_TIMES = frozenset({SortKey.CREATED, SortKey.LOGICAL, SortKey.STARTED, SortKey.FINISHED})


def to_cursor(
    wanted: InstanceFilter | TaskFilter, order: SortOrder, position: tuple[Any, int] | None
) -> str | None:
    """Return the text of a position in a list with these filters."""
    if position is None:
        return None
    value, row_id = position
    return encode_cursor(
        _kind(wanted, order), json.dumps(value, default=lambda time: str(time.isoformat())), row_id
    )


def from_cursor(
    wanted: InstanceFilter | TaskFilter, order: SortOrder, cursor: str | None
) -> tuple[Any, int] | None:
    """Return the position in a cursor of the same list. Raises InvalidRequest."""
    position = decode_cursor(_kind(wanted, order), cursor, str, int)
    if position is None:
        return None
    try:
        value = read_json(position[0])
        if isinstance(value, str):
            value = datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        raise bad_cursor() from None
    is_time = order.key in _TIMES and isinstance(wanted, InstanceFilter)
    is_time = is_time or order.key in (SortKey.STARTED, SortKey.FINISHED)
    kinds: tuple[type, ...] = (datetime,) if is_time else (int, float)
    may_miss = order.is_ranked and value is None
    if not may_miss and (not isinstance(value, kinds) or isinstance(value, bool)):
        raise bad_cursor()
    return value, position[1]


def _kind(wanted: InstanceFilter | TaskFilter, order: SortOrder) -> str:
    fields = {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in asdict(wanted).items()
    }
    text = json.dumps([type(wanted).__name__, fields, asdict(order)], default=str, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]
