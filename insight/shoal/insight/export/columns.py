"""Turn rows of the database into Arrow tables with the columns of the history."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.core.definition.model import TaskSpec
from shoal.insight.history.tables import ColumnKind, HistoryTable

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


def arrow_of(table: HistoryTable, columns: Mapping[str, Sequence[Any]]) -> tuple[pa.Table, int]:
    """Return rows, given by columns, as an Arrow table, and how many could not be read.

    Times are microseconds since 1970. A column that is not given is NULL. A row is left out that
    holds what its columns cannot: another version, or a hand, may have written it.
    """
    schema = schema_of(table)
    count = len(next(iter(columns.values()), ()))
    try:
        return _table(schema, columns, count), 0
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    pieces, left_out = [], 0
    for row in range(count):
        try:
            one = {name: values[row : row + 1] for name, values in columns.items()}
            pieces.append(_table(schema, one, 1))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            left_out += 1
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


def _table(schema: pa.Schema, columns: Mapping[str, Sequence[Any]], count: int) -> pa.Table:
    arrays = []
    for field in schema:
        values = columns.get(field.name)
        if values is None:
            array = pa.nulls(count, field.type)
        elif pa.types.is_timestamp(field.type):
            numbers = pa.array(values, pa.int64())
            bounds = pc.min_max(numbers).as_py()
            if bounds["min"] is not None and not _FIRST <= bounds["min"] <= bounds["max"] <= _LAST:
                raise ValueError(f"{field.name} is outside of the years 1 to 9999")
            array = numbers.cast(field.type)
        elif pa.types.is_boolean(field.type):
            # SQLite has numbers for it.
            array = pa.array([one if one is None else bool(one) for one in values], field.type)
        else:
            array = pa.array(values, field.type)
        if not field.nullable and array.null_count:
            raise ValueError(f"{field.name} is missing")
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema)
