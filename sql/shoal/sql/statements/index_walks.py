"""The first rows that match, by walks along indices that have them in this order already.

``state IN (…) ORDER BY id`` makes a database choose between sorting all rows of these states and
passing by all rows of the others; either may be millions. A walk for each state, each no longer
than what is wanted, is short whatever the table holds.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, Select, literal, select, tuple_, union_all

from shoal.sql.driver.connection import Connection, batched
from shoal.sql.schema.types import UnreadableValue

_TOGETHER = 50  # walks in one statement

Conditions = Sequence[ColumnElement[bool]]


async def walk_newest(
    connection: Connection,
    order: Sequence[Column[Any]],
    walks: Iterable[Conditions],
    limit: int,
    *,
    also: Sequence[ColumnElement[Any]] = (),
) -> list[Row[Any]]:
    """Return the ``limit`` newest rows: ``walk`` in falling order."""
    return await walk(connection, order, walks, limit, also=also)


async def walk(
    connection: Connection,
    order: Sequence[Column[Any]],
    walks: Iterable[Conditions],
    limit: int,
    *,
    also: Sequence[ColumnElement[Any]] = (),
    is_rising: bool = False,
) -> list[Row[Any]]:
    """Return ``order`` and ``also`` of the first ``limit`` rows that fulfil one of ``walks``.

    Rows are in the order asked for, those with an ``UnreadableValue`` before all others. No row may
    belong to two walks, and an index must serve each: of the columns that its conditions compare
    with ``==``, and then of ``order``.
    """
    found: list[Row[Any]] = []
    for some in batched(walks, _TOGETHER):
        found += await connection.rows(_query(order, also, some, limit, is_rising))
    bad = [row for row in found if is_unreadable(row)]
    good = [row for row in found if not is_unreadable(row)] if bad else found
    good.sort(key=lambda row: row[: len(order)], reverse=not is_rising)
    return [*bad, *good][:limit]


def behind(
    order: Sequence[Column[Any]], position: Sequence[Any], is_rising: bool = False
) -> ColumnElement[bool]:
    """Return the condition of the rows that come after a position in an order."""
    last = (literal(value, one.type) for one, value in zip(order, position, strict=True))
    return tuple_(*order) > tuple_(*last) if is_rising else tuple_(*order) < tuple_(*last)


def is_unreadable(row: Row[Any]) -> bool:
    """Whether a row holds a value that could not be decoded."""
    return UnreadableValue.made and any(isinstance(value, UnreadableValue) for value in row)


def _query(
    order: Sequence[Column[Any]],
    also: Sequence[ColumnElement[Any]],
    walks: Sequence[Conditions],
    limit: int,
    is_rising: bool,
) -> Select[Any]:
    def ordered(columns: Iterable[ColumnElement[Any]]) -> list[ColumnElement[Any]]:
        return [one.asc() if is_rising else one.desc() for one in columns]

    steps = [
        select(*order, *also).where(*each).order_by(*ordered(order)).limit(limit) for each in walks
    ]
    if len(steps) == 1:
        return steps[0]
    together = union_all(*(select(step.subquery()) for step in steps)).subquery()
    columns = ordered(together.c[one.name] for one in order)
    return select(together).order_by(*columns).limit(limit)
