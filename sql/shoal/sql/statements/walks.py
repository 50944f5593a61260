"""The newest rows that match, by walks along indices that have them in this order already.

``state IN (…) ORDER BY id`` makes a database choose between sorting all rows of these states and
passing by all rows of the others; either may be millions. A walk for each state, each no longer
than what is wanted, is short whatever the table holds.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, Select, select, union_all

from shoal.sql.driver.connection import Connection, batched
from shoal.sql.schema.types import Unreadable

_TOGETHER = 50  # walks in one statement

Conditions = Sequence[ColumnElement[bool]]


async def walk_newest(
    connection: Connection,
    order: Sequence[Column[Any]],
    walks: Iterable[Conditions],
    limit: int,
    *,
    also: Sequence[Column[Any]] = (),
) -> list[Row[Any]]:
    """Return ``order`` and ``also`` of the ``limit`` newest rows that fulfil one of ``walks``.

    Rows are in falling ``order``, those that hold an ``Unreadable`` before all others. No row may
    belong to two walks, and an index must serve each: of the columns that its conditions compare
    with ``==``, and then of ``order``.
    """
    found: list[Row[Any]] = []
    for some in batched(walks, _TOGETHER):
        found += await connection.rows(_query(order, also, some, limit))
    bad = [row for row in found if _is_unreadable(row)]
    good = [row for row in found if not _is_unreadable(row)] if bad else found
    good.sort(key=lambda row: row[: len(order)], reverse=True)
    return [*bad, *good][:limit]


def _is_unreadable(row: Row[Any]) -> bool:
    return Unreadable.made and any(isinstance(value, Unreadable) for value in row)


def _query(
    order: Sequence[Column[Any]],
    also: Sequence[Column[Any]],
    walks: Sequence[Conditions],
    limit: int,
) -> Select[Any]:
    falling = [column.desc() for column in order]
    steps = [select(*order, *also).where(*walk).order_by(*falling).limit(limit) for walk in walks]
    if len(steps) == 1:
        return steps[0]
    together = union_all(*(select(step.subquery()) for step in steps)).subquery()
    return select(together).order_by(*(together.c[one.name].desc() for one in order)).limit(limit)
