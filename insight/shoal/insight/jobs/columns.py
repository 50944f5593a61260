"""What several jobs compute of columns: days, seconds, schemas of results."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pyarrow as pa

from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.arrays import Flags, ints, is_there
from shoal.insight.jobs.kernels.statistics import Ints, Numbers
from shoal.insight.serving.results import RESULTS

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000
EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday
_EPOCH = date(1970, 1, 1).toordinal()
_SECOND_US = 1_000_000.0
_TYPES: Mapping[str, pa.DataType] = {
    "date": pa.date32(),
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def schema_of(columns: str) -> pa.Schema:
    """Return the schema of ``name type, name type`` …, with the names that SQL has for types."""
    pairs = (column.split() for column in columns.split(","))
    return pa.schema([(name, _TYPES[kind]) for name, kind in pairs])


def result_schema(name: str) -> pa.Schema:
    """Return the schema of a result that is served, by the name of its job."""
    return schema_of(RESULTS[name].declared)


def start_of(day: date) -> datetime:
    """Return when a day begins."""
    return datetime.combine(day, time(), UTC)


def end_of(day: date) -> datetime:
    """Return when a day is over: when the next one begins."""
    return start_of(day) + timedelta(days=1)


def number_of(day: date) -> int:
    """Return a day as days since 1970."""
    return day.toordinal() - _EPOCH


def day_of(number: int) -> date:
    """Return the day that is so many days after 1970-01-01."""
    return date.fromordinal(number + _EPOCH)


def start_us(day: date) -> int:
    """Return when a day begins, in microseconds since 1970."""
    return number_of(day) * DAY_US


def end_us(day: date) -> int:
    """Return when a day is over, in microseconds since 1970."""
    return start_us(day) + DAY_US


def within(table: pa.Table, at: str, days: Days) -> Flags:
    """Return which rows have a time (microseconds since 1970) in one of the days."""
    times = ints(table, at, missing=-1)
    return np.asarray((times >= start_us(days.first)) & (times < end_us(days.last)))


def chosen(table: pa.Table, wanted: Flags) -> pa.Table:
    """Return some rows of a table."""
    return table if wanted.all() else table.filter(pa.array(wanted)).combine_chunks()


def seconds(table: pa.Table, start: str, end: str) -> Numbers:
    """Return the seconds between two times; NaN if one is missing, 0 if a clock went back."""
    between = np.maximum(ints(table, end) - ints(table, start), 0) / _SECOND_US
    return np.where(is_there(table, start) & is_there(table, end), between, np.nan)


def dates(numbers: Ints) -> pa.Array:
    """Return days since 1970 as dates."""
    return pa.array(numbers.astype(np.int32)).cast(pa.date32())


def optional(values: Numbers) -> pa.Array:
    """Return numbers, with NULL for NaN."""
    return pa.array(values, mask=np.isnan(values))


def table_of(schema: pa.Schema, **columns: pa.Array | Ints | Numbers) -> pa.Table:
    """Return a table of the columns of a schema, which are given by their names."""
    assert columns.keys() == set(schema.names), "all columns of the schema, and no others"
    arrays = [
        (one if isinstance(one, pa.Array) else pa.array(one)).cast(field.type)
        for field in schema
        for one in (columns[field.name],)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
