"""Conditions that lists of instances and of attempts share. None of them is ever NULL."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Float, Table, and_, func, literal, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from shoal.core.runs.filters import Between, Lasting, SortKey
from shoal.core.runs.states import FINISHED_WORKFLOW
from shoal.sql.schema.tables import instance_label


class Lasted(FunctionElement[float]):
    """``Lasted(end, start)``: the seconds between two instants; NULL if one is NULL or infinite."""

    name = "lasted"
    type = Float()
    inherit_cache = True

    def __init__(self, end: ColumnElement[Any], start: Column[Any]) -> None:
        super().__init__(end, start)


def between(column: Column[Any], interval: Between) -> Iterator[ColumnElement[bool]]:
    """Yield the bounds of an interval; what has no moment is in none."""
    wrap: Any = func.coalesce if column.nullable else lambda condition, _: condition
    if interval.since is not None:
        yield wrap(column >= literal(interval.since, column.type), False)
    if interval.until is not None:
        yield wrap(column < literal(interval.until, column.type), False)


def duration(table: Table) -> ColumnElement[float]:
    """Return how many seconds it took, or takes by now; NULL: it has not started."""
    end, start = table.c.finished_at, table.c.started_at
    now = literal(datetime.now(UTC), end.type)
    return Lasted(func.coalesce(end, now, type_=end.type), start)


def lasting(table: Table, wanted: Lasting) -> Iterator[ColumnElement[bool]]:
    """Yield the bounds of a duration."""
    if wanted.shortest_s is not None:
        yield func.coalesce(duration(table) >= wanted.shortest_s, False)
    if wanted.longest_s is not None:
        yield func.coalesce(duration(table) <= wanted.longest_s, False)


def late(table: Table) -> ColumnElement[bool]:
    """Return whether a run goes on although it should have ended."""
    deadline, now = table.c.deadline_at, literal(datetime.now(UTC), table.c.deadline_at.type)
    is_open = table.c.state.not_in(sorted(FINISHED_WORKFLOW))
    return and_(is_open, func.coalesce(deadline <= now, False))


def contains(text: str, *columns: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return whether one of the columns contains a text, whatever the case of its letters."""
    found = (func.lower(column).contains(text.lower(), autoescape=True) for column in columns)
    return or_(*(func.coalesce(one, False) for one in found))


def labels(
    instance_id: ColumnElement[int], wanted: Mapping[str, str | None]
) -> Iterator[ColumnElement[bool]]:
    """Yield whether a run has each of the labels."""
    for key, value in wanted.items():
        one = instance_label.alias()
        found = [one.c.workflow_instance_id == instance_id, one.c.key == key]
        if value is not None:
            found.append(one.c.value == value)
        yield select(one.c.key).where(*found).exists()


def rank(key: SortKey, table: Table) -> ColumnElement[Any]:
    """Return what a list is sorted by that no index has the order of."""
    if key is SortKey.DURATION:
        return duration(table)
    return table.c[key]


@compiles(Lasted, "sqlite")
def _sqlite(element: Lasted, compiler: SQLCompiler, **options: Any) -> str:
    end, start = (compiler.process(one, **options) for one in element.clauses)
    return f"(({end} - {start}) / 1000000.0)"  # stored as microseconds


@compiles(Lasted, "postgresql")
def _postgresql(element: Lasted, compiler: SQLCompiler, **options: Any) -> str:
    end, start = (compiler.process(one, **options) for one in element.clauses)
    took = f"CAST(extract(epoch FROM ({end} - {start})) AS double precision)"
    # PostgreSQL cannot subtract infinite times: one such row would be an error of the whole query.
    return f"CASE WHEN isfinite({end}) AND isfinite({start}) THEN {took} END"
