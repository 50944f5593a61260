"""Turn rows of the database into Arrow tables with the columns of the history."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.core.definition.model import TaskSpec
from shoal.core.errors import shortened
from shoal.core.untrusted import encodable
from shoal.insight.history.tables import ColumnKind, HistoryColumn, HistoryTable

_GROUP = TaskSpec.model_fields["worker_group"].default
_TASK = pa.struct(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("worker_group", pa.string(), nullable=False),
        pa.field("upstream", pa.list_(pa.string()), nullable=False),
    ]
)
# Microseconds since 1970 of the years that Python's dates have.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
_LONGEST_VALUE = 60  # characters, in a message
_LONGEST_KEY = 200  # characters
_TYPES: Mapping[ColumnKind, Any] = {
    ColumnKind.TEXT: pa.string(),
    ColumnKind.INTEGER: pa.int64(),
    ColumnKind.NUMBER: pa.float64(),
    ColumnKind.YES_NO: pa.bool_(),
    ColumnKind.TIME: pa.timestamp("us", tz="UTC"),
    ColumnKind.LABELS: pa.map_(pa.string(), pa.string()),
    ColumnKind.TASKS: pa.list_(_TASK),
}


def schema_of(table: HistoryTable) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return pa.schema(
        [pa.field(one.name, _TYPES[one.kind], not one.required) for one in table.columns]
    )


@dataclass(frozen=True)
class UnreadableRow:
    """A row that is not exported.

    ``key``: the values of the table's key, separated by spaces. ``reason``: the column and its
    value. ``project``, ``workflow``: None where the row has none that can be read.
    """

    key: str
    reason: str
    project: str | None = None
    workflow: str | None = None


def arrow_of(
    table: HistoryTable, columns: Mapping[str, Sequence[Any]]
) -> tuple[pa.Table, Sequence[UnreadableRow]]:
    """Return rows, given by columns, as an Arrow table, and those that cannot be read.

    Times are microseconds since 1970. A column that is not given is NULL. A row is left out that
    holds what its columns cannot: another version, or a hand, may have written it.
    """
    schema = schema_of(table)
    count = len(next(iter(columns.values()), ()))
    try:
        return _table(table, columns, count), ()
    except _UnreadableValue:
        pass
    pieces, left_out = [], []
    for row in range(count):
        one = {name: values[row : row + 1] for name, values in columns.items()}
        try:
            pieces.append(_table(table, one, 1))
        except _UnreadableValue as error:
            left_out.append(_unreadable(table, one, str(error)))
    return pa.concat_tables([schema.empty_table(), *pieces]), left_out


def by_day(table: HistoryTable, rows: pa.Table) -> Iterator[tuple[date, pa.Table]]:
    """Cut a table into those of its days (UTC), in the order of time."""
    days = rows[table.at].cast(pa.date32())
    for day in sorted(pc.unique(days).to_pylist()):
        yield day, rows.filter(pc.equal(days, pa.scalar(day, pa.date32())))


def newest(table: HistoryTable, rows: pa.Table) -> pa.Array:
    """Return where the rows that count are, in the order of their keys: of each the newest one."""
    order = [(name, "ascending") for name in table.key] + [("event_id", "descending")]
    places = pc.sort_indices(rows, sort_keys=order)
    # From the row before; there is at least one row.
    differs = pa.array([False] * (rows.num_rows - 1), pa.bool_())
    for name in table.key:
        column = rows[name].take(places).combine_chunks()
        differs = pc.or_(differs, pc.not_equal(column[1:], column[:-1]))
    return places.filter(pa.concat_arrays([pa.array([True]), differs]))


def each_once(table: HistoryTable, rows: pa.Table) -> pa.Table:
    """Return the rows that count, in the order that they are in.

    Of a table whose key are several columns there are few rows.
    """
    if len(table.key) == 1 and pc.count_distinct(rows[table.key[0]]).as_py() == rows.num_rows:
        return rows
    places = newest(table, rows)
    return rows.take(places.take(pc.sort_indices(places)))


def labels_of(stored: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return labels as a column of them holds them."""
    return sorted(stored.items())


def tasks_of(spec: str) -> list[dict[str, Any]] | None:
    """Return the tasks of a definition, which is JSON's text; None: it cannot be read."""
    try:
        return [
            {
                "name": task["name"],
                "type": task["type"],
                "worker_group": task.get("worker_group") or _GROUP,
                "upstream": list(task.get("depends_on", ())),
            }
            for task in json.loads(spec)["tasks"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class _UnreadableValue(ValueError):
    """A column cannot hold a value."""


def _table(table: HistoryTable, columns: Mapping[str, Sequence[Any]], count: int) -> pa.Table:
    """Return rows as an Arrow table. Raises _UnreadableValue."""
    arrays = []
    for column in table.columns:
        values = columns.get(column.name)
        try:
            array = _array(column, values, count)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise _UnreadableValue(_said(column, values, count)) from error
        if column.required and array.null_count:
            raise _UnreadableValue(f"{column.name} is missing")
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema_of(table))


def _array(column: HistoryColumn, values: Sequence[Any] | None, count: int) -> pa.Array:
    arrow = _TYPES[column.kind]
    if values is None:
        return pa.nulls(count, arrow)
    if column.kind is ColumnKind.TIME:
        numbers = pa.array(values, pa.int64())
        bounds = pc.min_max(numbers).as_py()
        if bounds["min"] is not None and not _FIRST <= bounds["min"] <= bounds["max"] <= _LAST:
            raise ValueError("the time is outside of the years 1 to 9999")
        return numbers.cast(arrow)
    if column.kind is ColumnKind.YES_NO:
        # SQLite has numbers for it.
        return pa.array([one if one is None else bool(one) for one in values], arrow)
    return pa.array(values, arrow)


def _said(column: HistoryColumn, values: Sequence[Any] | None, count: int) -> str:
    """Return why a column cannot hold the value of a single row."""
    if values is None or count != 1:
        return column.name
    value = encodable(shortened(repr(values[0])[: _LONGEST_VALUE + 1], _LONGEST_VALUE))
    if column.kind is ColumnKind.TIME:
        return f"{column.name} is {value}: not a time of the years 1 to 9999 in microseconds"
    return f"{column.name} is {value}: not a valid {column.kind.replace('_', '/')}"


def _unreadable(
    table: HistoryTable, columns: Mapping[str, Sequence[Any]], reason: str
) -> UnreadableRow:
    """Return the record of a single row."""

    def text(name: str) -> str | None:
        [value] = columns.get(name, (None,))
        return encodable(value) if isinstance(value, str) else None

    key = " ".join(str(columns.get(name, ("",))[0])[:_LONGEST_KEY] for name in table.key)
    return UnreadableRow(
        encodable(shortened(key, _LONGEST_KEY)), reason, text("project"), text("workflow")
    )
