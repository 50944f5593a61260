"""Files of the history as tables, many small ones at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shoal.insight.history.tables import TABLES, ColumnKind, HistoryTable
from shoal.insight.jobs.kernels.statistics import Ints
from shoal.insight.jobs.rows.transfer import joined

#: Texts that many rows share.
_SHARED = (
    *("project", "workflow", "task", "type", "worker_group", "worker", "state", "trigger"),
    "requested_by",
)
_TASKS = pa.list_(
    pa.struct(
        [
            ("name", pa.string()),
            ("type", pa.string()),
            ("worker_group", pa.string()),
            ("upstream", pa.list_(pa.string())),
        ]
    )
)
_TYPES: Mapping[ColumnKind, pa.DataType] = {
    ColumnKind.TEXT: pa.string(),
    ColumnKind.INTEGER: pa.int64(),
    ColumnKind.NUMBER: pa.float64(),
    ColumnKind.YES_NO: pa.bool_(),
    ColumnKind.TIME: pa.int64(),
    ColumnKind.LABELS: pa.map_(pa.string(), pa.string()),
    ColumnKind.TASKS: _TASKS,
}
NAMED: Mapping[str, HistoryTable] = {table.name: table for table in TABLES}
_BEGAN = ("queued_at", "started_at")  # each row has one of them, or has begun as it ended
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = pa.timestamp("us", tz="UTC")
#: A table on its way: its name, the number of the chunk that it comes from, and its rows.
Piece = tuple[str, int, bytes]


def schema(table: HistoryTable) -> pa.Schema:
    """Return how a table is here: times are microseconds since 1970."""
    return pa.schema(
        [
            (
                column.name,
                pa.dictionary(pa.int32(), pa.string())
                if column.name in _SHARED and column.kind is ColumnKind.TEXT
                else _TYPES[column.kind],
            )
            for column in table.columns
        ]
    )


@dataclass(frozen=True)
class ColumnSelection:
    """What is read of a file. ``begun_before``: microseconds since 1970; None: whenever it began.

    Row groups are read in which something began before that; what began later may be among it.
    """

    columns: tuple[str, ...]
    begun_before: int | None = None


@dataclass(frozen=True)
class Chunk:
    """Some files of a table, which are read at once. ``number``: of all chunks of the table."""

    number: int
    table: str
    paths: Sequence[str]
    selection: ColumnSelection

    def read(self) -> pa.Table:
        """Return the columns of all rows, those that are superseded included."""
        table = NAMED[self.table]
        wanted = [column for column in table.columns if column.name in self.selection.columns]
        found = []
        for path in self.paths:
            known = pq.read_metadata(path)
            names = known.schema.to_arrow_schema().names
            there = [column.name for column in wanted if column.name in names]
            shared = [name for name in there if name in _SHARED]
            with pq.ParquetFile(path, metadata=known, read_dictionary=shared) as file:
                stretches = [at for at in range(known.num_row_groups) if self._needs(known, at)]
                rows = file.read_row_groups(stretches, columns=there, use_threads=False)
            found.append(_uniform(rows, schema(table)))
        return joined(found)

    def _needs(self, known: pq.FileMetaData, at: int) -> bool:
        """Return whether a row group may have rows that began early enough."""
        before = self.selection.begun_before
        if before is None:
            return True
        group = known.row_group(at)
        columns = (group.column(place) for place in range(group.num_columns))
        began = [one for one in columns if one.path_in_schema in _BEGAN]
        return any(_may_begin_before(one, before) for one in began)


def _may_begin_before(column: pq.ColumnChunkMetaData, before: int) -> bool:
    found = column.statistics
    if found is None or found.null_count is None:
        return True
    if found.null_count == column.num_values:
        return False
    return not found.has_min_max or (found.min - _EPOCH) // timedelta(microseconds=1) < before


def _uniform(rows: pa.Table, types: pa.Schema) -> pa.Table:
    columns = []
    for name in rows.column_names:
        column = rows[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(_TIME)
        columns.append(column.cast(types.field(name).type))
    return pa.Table.from_arrays(columns, names=rows.column_names)


def cut(rows: pa.Table, places: Ints, count: int) -> Iterator[tuple[int, pa.Table]]:
    """Return for each place (0 … ``count`` - 1) that has rows these rows."""
    order = np.argsort(places.astype(np.uint16 if count < 1 << 16 else np.int64), kind="stable")
    sorted_rows = rows.take(pa.array(order)).combine_chunks()
    sizes = np.bincount(places, minlength=count)
    for place, (end, size) in enumerate(zip(np.cumsum(sizes), sizes, strict=True)):
        if size:
            yield place, sorted_rows.slice(int(end - size), int(size))
