"""Rows that cannot be read are kept apart from the others, and never stand in their way.

A column whose value cannot be decoded yields an ``UnreadableValue`` instead of an error that would
spoil the whole answer of the database. All code that makes records of rows uses ``readable``:
it finds those values, and all else that a row of another version, or written by hand, may hold.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, NoReturn, TypeVar

import structlog
from sqlalchemy import Row

from shoal.core.runs.quarantine import reason_of
from shoal.sql.errors import UnreadableRow
from shoal.sql.schema.types import UnreadableValue

log = structlog.get_logger()

T = TypeVar("T")
OnUnreadable = Callable[[UnreadableRow], None]


def refuse(error: UnreadableRow) -> NoReturn:
    """Raise ``error``: for a caller that asked for this very row."""
    raise error


def leave_out(error: UnreadableRow) -> None:
    """Go on without the row: for lists, which show the others."""
    log.warning("row left out", error=str(error))


def readable(
    rows: Iterable[Row[Any]],
    read: Callable[[Row[Any]], T],
    kind: str,
    on_unreadable: OnUnreadable = refuse,
    key: str = "id",
) -> list[T]:
    """Return what ``read`` makes of each row; ``on_unreadable`` gets those it cannot read.

    ``key``: the column that names a row.
    """
    found: list[T] = []
    for row in rows:
        try:
            check_values(row)
            found.append(read(row))
        except Exception as error:  # noqa: BLE001 - whatever a row holds is that row's matter
            on_unreadable(unreadable(kind, row, error, key))
    return found


def record_of(record: Callable[..., T], row: Row[Any], /, **others: Any) -> T:
    """Return a dataclass of a row: ``others``, and all other fields from columns of their names."""
    names, values = _columns(record, tuple(others))
    return record(**dict(zip(names, values(row), strict=True)), **others)


@cache
def _columns(record: Any, others: tuple[str, ...]) -> tuple[list[str], Callable[[Any], Any]]:
    """Return the fields that columns fill, at least two, and the function that reads them."""
    names = [one.name for one in fields(record) if one.init and one.name not in others]
    return names, attrgetter(*names)


def check_values(row: Row[Any]) -> None:
    """Raise ValueError if a column of ``row`` could not be decoded. Costs nothing as a rule."""
    if not UnreadableValue.made:
        return
    for name, value in zip(row._fields, row, strict=True):
        if isinstance(value, UnreadableValue):
            raise ValueError(f"column {name}: {value.reason}")


def require_numbers(row: Row[Any], *names: str) -> None:
    """Raise ValueError unless the columns hold numbers: SQLite stores anything in any column."""
    for name in names:
        value = getattr(row, name)
        if not isinstance(value, int):
            raise ValueError(f"column {name} holds {value!r:.50}, not a number")


def unreadable(kind: str, row: Row[Any], error: Exception, key: str = "id") -> UnreadableRow:
    """Return the error of a row; its ``partition`` is -1 if it names none."""
    if isinstance(error, UnreadableRow):
        return error
    partition = getattr(row, "partition", -1)
    return UnreadableRow(
        kind,
        getattr(row, key),
        reason_of(error),
        partition if isinstance(partition, int) else -1,
    )


async def enough(
    ask: Callable[[int], Awaitable[Sequence[Row[Any]]]],
    read: Callable[[Row[Any]], T],
    kind: str,
    limit: int,
    key: str = "id",
) -> list[T]:
    """Return a page of ``limit`` records; rows that cannot be read are left out of it.

    ``ask`` returns so many rows at most. It is asked for more while the page is not full, so
    that a short page always is the last one.
    """
    wanted = limit
    while True:
        rows = await ask(wanted)
        found = readable(rows, read, kind, leave_out, key)
        if len(found) >= limit or len(rows) < wanted:
            return found[:limit]
        wanted = 2 * wanted + limit
