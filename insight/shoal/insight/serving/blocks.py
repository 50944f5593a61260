"""From the file of a result to blocks for the database: the rows of each workflow, as JSON."""

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shoal.core.errors import ShoalError
from shoal.core.insight.aggregates import Aggregation, Name, Rows, Values
from shoal.insight.serving.results import ServedResult, ValueKind
from shoal.sql.repositories.insight.batches import NewBlock

#: Characters of a block, more or less: what a reader gets at once, and a transaction writes.
MOST_CHARS = 256_000
_LONGEST_NAME = 100
_NAMES = ("project", "workflow")
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_IS_KIND: Mapping[ValueKind, Callable[[pa.DataType], bool]] = {
    ValueKind.TEXT: lambda of: pa.types.is_string(of) or pa.types.is_large_string(of),
    ValueKind.INTEGER: pa.types.is_integer,
    ValueKind.NUMBER: pa.types.is_floating,
    ValueKind.YES_NO: pa.types.is_boolean,
    ValueKind.TIME: lambda of: pa.types.is_timestamp(of) and of.tz is not None,
    ValueKind.DAY: pa.types.is_date,
}


class BadResult(ShoalError):
    """A file is not a result of a job, or not one that this version knows."""


def table_of(result: ServedResult, content: bytes) -> pa.Table:
    """Return the rows of a file. Raises BadResult."""
    try:
        file = pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True)
        _check_columns(result, file.schema_arrow)
        table = file.read()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise BadResult(f"the file is damaged: {error}") from error
    for name in _NAMES if result.has_project else ():
        length = pc.min_max(pc.utf8_length(table[name])).as_py()
        shortest, longest = length["min"] or 0, length["max"] or 0
        if table[name].null_count or longest > _LONGEST_NAME or (table.num_rows and not shortest):
            raise BadResult(f"column {name} has rows that are of no {name}")
    return table


def blocks_of(result: ServedResult, table: pa.Table) -> Iterator[NewBlock]:
    """Yield the blocks of all rows, by project and workflow; then those of the aggregates."""
    names = [name for name in result.columns if name not in _NAMES]
    if not result.has_project:
        yield from _divided("", "", names, _rows(table, names))
        return
    aggregates = Aggregates(result.aggregation) if result.aggregation else None
    order = [(name, "ascending") for name in _NAMES]
    table = table.take(pc.sort_indices(table, sort_keys=order))
    start = 0
    projects, workflows = (table[name].to_pylist() for name in _NAMES)
    keys = list(zip(projects, workflows, strict=True))
    for end in range(1, len(keys) + 1):
        if end == len(keys) or keys[end] != keys[start]:
            rows = [*_rows(table.slice(start, end - start), names)]
            if aggregates is not None:
                aggregates.add(
                    keys[start], [dict(zip(names, values, strict=True)) for values in rows]
                )
            yield from _divided(*keys[start], names, rows)
            start = end
    if aggregates is not None:
        yield from aggregate_blocks(aggregates)


class Aggregates:
    """Collects the aggregates of a result, which views over weeks read in place of its rows.

    ``rows`` are those of all its workflows, or None: readers take the rows of the result then.
    """

    def __init__(self, aggregation: Aggregation[Any]) -> None:
        self._aggregation = aggregation
        self.columns = aggregation.columns
        self.rows: list[Values] | None = []

    def add(self, name: Name, rows: Rows) -> None:
        """Add all rows of a workflow."""
        if self.rows is None:
            return
        try:
            one = self._aggregation.of(rows)
        except (TypeError, ValueError):  # a NULL for a count: readers leave that workflow out
            self.rows = None
            return
        self.rows += self._aggregation.written(name, one)


def aggregate_blocks(aggregates: Aggregates) -> Iterator[NewBlock]:
    """Yield the blocks of aggregates: one at least, so that there are some shows."""
    if not aggregates.rows:
        yield NewBlock("", "", -1, _ENCODE([] if aggregates.rows is None else [aggregates.columns]))
        return
    for block in _divided("", "", aggregates.columns, aggregates.rows):
        yield replace(block, place=-1 - block.place)


def _check_columns(result: ServedResult, schema: pa.Schema) -> None:
    found = set(schema.names)
    wrong = [
        f"{name} is {schema.field(name).type}, not {kind}"
        for name, kind in result.columns.items()
        if name in found and not _IS_KIND[kind](schema.field(name).type)
    ]
    wrong += [f"{name} is missing" for name in result.columns.keys() - found]
    wrong += [f"{name} is not known" for name in found - result.columns.keys()]
    if wrong:
        raise BadResult(
            f"the file has other columns ({', '.join(sorted(wrong))}): it is of another version "
            "of Shoal; run the jobs and the masters with the same one"
        )


def _rows(table: pa.Table, names: Sequence[str]) -> Iterable[Values]:
    columns = [[_plain(value) for value in table[name].to_pylist()] for name in names]
    return zip(*columns, strict=True)


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _divided(
    project: str, workflow: str, names: Sequence[str], rows: Iterable[Values]
) -> Iterator[NewBlock]:
    head = _ENCODE(names)
    place, size, some = 0, 0, [head]
    for row in map(_ENCODE, rows):
        if len(some) > 1 and size + len(row) > MOST_CHARS:
            yield NewBlock(project, workflow, place, f"[{','.join(some)}]")
            place, size, some = place + 1, 0, [head]
        some.append(row)
        size += len(row) + 1
    if len(some) > 1:
        yield NewBlock(project, workflow, place, f"[{','.join(some)}]")
