"""Filters, orders and cursors of lists of runs and attempts.

A cursor is bound to the filters and the order: with others it is refused.
"""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Query

from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import bad_cursor, decode_cursor, encode_cursor, filtered
from shoal.core.runs.filters import InstanceFilter, SortKey, SortOrder, TaskFilter
from shoal.core.untrusted import read_json

Project = Annotated[str | None, Query(description="Only for this project.")]
Workflow = Annotated[str | None, Query(description="Only for this workflow.")]
Instances = Annotated[InstanceFilter, Query()]
Tasks = Annotated[TaskFilter, Query()]

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
    return filtered(type(wanted).__name__, wanted, order)
