"""The current rows of the days in parts: all rows of some workflows each, in the order of runs.

A part is what one process works on at a time. Spark reads the files of the history, cuts them by
workflow, and sends the pieces to their parts.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shoal.insight.history.tables import ATTEMPTS, INSTANCES, PLANS, TABLES, HistoryTable, Kind
from shoal.insight.jobs.columns import chosen, end_us
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.arrays import groups, ints, is_there
from shoal.insight.jobs.kernels.grouped import Ints
from shoal.insight.jobs.packing import by_place, joined, packed, read, unpacked, written

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
_TYPES: Mapping[Kind, pa.DataType] = {
    Kind.TEXT: pa.string(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.YES_NO: pa.bool_(),
    Kind.TIME: pa.int64(),
    Kind.LABELS: pa.map_(pa.string(), pa.string()),
    Kind.TASKS: _TASKS,
}
_NAMED: Mapping[str, HistoryTable] = {table.name: table for table in TABLES}
_TIME = pa.timestamp("us", tz="UTC")
_PLAN = ("project", "workflow", "version")
#: Where a piece comes from, so that its place among others is always the same: table, chunk.
Piece = tuple[str, int, bytes]


def schema(table: HistoryTable) -> pa.Schema:
    """Return how a table is here: times are microseconds since 1970."""
    return pa.schema(
        [
            (
                column.name,
                pa.dictionary(pa.int32(), pa.string())
                if column.name in _SHARED and column.kind is Kind.TEXT
                else _TYPES[column.kind],
            )
            for column in table.columns
        ]
    )


@dataclass(frozen=True)
class Chunk:
    """Some files of a table, which are read at once. ``number``: of all chunks."""

    number: int
    table: str
    paths: Sequence[str]
    columns: Sequence[str]

    def read(self) -> pa.Table:
        """Return the columns of all rows, those that are superseded included."""
        table = _NAMED[self.table]
        wanted = [column for column in table.columns if column.name in self.columns]
        found = []
        for path in self.paths:
            known = pq.read_metadata(path)
            names = known.schema.to_arrow_schema().names
            there = [column.name for column in wanted if column.name in names]
            shared = [name for name in there if name in _SHARED]
            with pq.ParquetFile(path, metadata=known, read_dictionary=shared) as file:
                rows = file.read(columns=there, use_threads=False)
            found.append(_uniform(rows, schema(table)))
        return joined(found)


def _uniform(rows: pa.Table, types: pa.Schema) -> pa.Table:
    columns = []
    for name in rows.column_names:
        column = rows[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(_TIME)
        columns.append(column.cast(types.field(name).type))
    return pa.Table.from_arrays(columns, names=rows.column_names)


@dataclass(frozen=True)
class Superseded:
    """Keys of which there are several rows, and the event id of the one that counts; sorted."""

    keys: Ints
    newest: Ints

    def counts(self, keys: Ints, events: Ints) -> np.ndarray:
        """Return which rows count."""
        if not len(self.keys):
            return np.ones(len(keys), dtype=bool)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.asarray((self.keys[at] != keys) | (self.newest[at] == events))


@dataclass(frozen=True)
class KeysOf:
    """Cuts the keys of chunks into stretches, so that all rows of a key come to one place."""

    places: int

    def __call__(self, chunk: Chunk) -> Iterator[tuple[int, Piece]]:
        """Return the keys and event ids of a chunk by their place."""
        [name] = _NAMED[chunk.table].key
        rows = chunk.read()
        stretch = (ints(rows, name) >> _STRETCH_BITS) % self.places
        pairs = pa.table({"key": rows[name], "event_id": rows["event_id"]})
        for place, mine in _cut(pairs, stretch, self.places):
            yield place, (chunk.table, chunk.number, packed(mine))


_STRETCH_BITS = 16  # keys follow each other, so a chunk has those of few stretches


def repeated(pieces: Iterable[tuple[int, Piece]]) -> Iterator[tuple[str, pa.Table]]:
    """Return of each table the keys that have several event ids, with the highest of these."""
    for _, mine in by_place(pieces):
        for name in sorted({table for table, _, _ in mine}):
            rows = joined(unpacked(content) for table, _, content in mine if table == name)
            keys = ints(rows, "key")
            in_order = np.sort(keys)
            twice = np.unique(in_order[1:][in_order[1:] == in_order[:-1]])
            if not len(twice):
                continue
            rows = chosen(rows, np.isin(keys, twice))
            keys = np.searchsorted(twice, ints(rows, "key"))
            newest = np.zeros(len(twice), dtype=np.int64)
            np.maximum.at(newest, keys, ints(rows, "event_id"))
            yield name, pa.table({"key": twice, "event_id": newest})


@dataclass(frozen=True)
class Cut:
    """Cuts chunks into pieces of parts, and of what else is made from the same rows.

    ``last``: attempts that began after this day are left out. ``beside``: makes further pieces of
    attempts, for places behind the parts.
    """

    parts: int
    last: Days
    superseded: Mapping[str, Superseded]
    beside: Callable[[pa.Table], Iterator[tuple[int, pa.Table]]] = field(compare=False)

    def __call__(self, chunk: Chunk) -> Iterator[tuple[int, Piece]]:
        """Return the pieces of a chunk with the places they go to."""
        table = _NAMED[chunk.table]
        rows = chunk.read()
        known = self.superseded.get(table.name)
        if known is not None:
            [key] = table.key
            rows = chosen(rows, known.counts(ints(rows, key), ints(rows, "event_id")))
        if table is ATTEMPTS:
            rows = self._begun(rows)
            for place, mine in self.beside(rows):
                yield self.parts + place, ("beside", chunk.number, packed(mine))
        if table is not PLANS:
            rows = rows.drop_columns("event_id")
        for place, mine in _cut(rows, self._places(rows), self.parts):
            yield place, (table.name, chunk.number, packed(mine))

    def _begun(self, rows: pa.Table) -> pa.Table:
        over = end_us(self.last.last)
        finished = ints(rows, "finished_at")
        if finished.max(initial=0) < over:
            return rows
        began = finished
        for name in ("started_at", "queued_at"):
            if name in rows.column_names:
                began = np.where(is_there(rows, name), ints(rows, name), began)
        return chosen(rows, (finished < over) | (began < over))

    def _places(self, rows: pa.Table) -> Ints:
        """Return the part of each row, which its workflow determines."""
        first, group = groups(rows, ("project", "workflow"))
        names = [rows[name].take(pa.array(first)).to_pylist() for name in ("project", "workflow")]
        parts = [
            zlib.crc32(f"{project}\0{workflow}".encode()) % self.parts
            for project, workflow in zip(*names, strict=True)
        ]
        return np.array(parts, dtype=np.int64)[group]


def _cut(rows: pa.Table, places: Ints, count: int) -> Iterator[tuple[int, pa.Table]]:
    order = np.argsort(places.astype(np.uint16 if count < 1 << 16 else np.int64), kind="stable")
    sorted_rows = rows.take(pa.array(order)).combine_chunks()
    sizes = np.bincount(places, minlength=count)
    for place, (end, size) in enumerate(zip(np.cumsum(sizes), sizes, strict=True)):
        if size:
            yield place, sorted_rows.slice(int(end - size), int(size))


@dataclass(frozen=True)
class Gather:
    """Writes the files of parts; gives ``beside`` what is for the places behind these."""

    folder: Path
    parts: int
    beside: Callable[[int, pa.Table], None] = field(compare=False)

    def __call__(self, pieces: Iterable[tuple[int, Piece]]) -> Iterator[int]:
        """Write what has come to a partition."""
        for place, mine in by_place(pieces):
            for name in sorted({table for table, _, _ in mine}):
                ordered = sorted(piece for piece in mine if piece[0] == name)
                rows = joined(unpacked(content) for _, _, content in ordered)
                if place >= self.parts:
                    self.beside(place - self.parts, rows)
                else:
                    written(_in_order(rows, name), Part(self.folder, place).file(name))
                yield rows.num_rows


def _in_order(rows: pa.Table, name: str) -> pa.Table:
    """Return the rows of a part sorted by plan and run; of plans those that count."""
    first, plan = groups(rows, _PLAN)
    if name == PLANS.name:
        newest = np.lexsort((ints(rows, "event_id"), plan))
        return rows.take(pa.array(newest[np.cumsum(np.bincount(plan)) - 1]))
    run = ints(rows, "instance_id")
    low = int(run.min(initial=0))
    span = int(run.max(initial=0)) - low + 1
    if span * len(first) < 1 << 62:
        order = np.argsort(plan * span + (run - low))
    else:
        order = np.lexsort((run, plan))
    return rows.take(pa.array(order)).combine_chunks()


@dataclass(frozen=True)
class Part:
    """All current rows of some workflows."""

    folder: Path
    number: int

    def attempts(self, *columns: str) -> pa.Table:
        """Return columns of the attempts, in the order of plans and runs."""
        return read(self.file(ATTEMPTS.name), schema(ATTEMPTS), columns)

    def instances(self, *columns: str) -> pa.Table:
        """Return columns of the instances, in the order of plans and runs."""
        return read(self.file(INSTANCES.name), schema(INSTANCES), columns)

    def plans(self) -> pa.Table:
        """Return the plans."""
        return read(self.file(PLANS.name), schema(PLANS), [*_PLAN, "tasks"])

    def kept(self, name: str, result: pa.Schema, compute: Callable[[], pa.Table]) -> pa.Table:
        """Return what ``compute`` makes of this part, which is done once for several jobs."""
        path = self.file(name)
        if not path.exists():
            written(compute(), path)
        return read(path, result, result.names)

    def file(self, name: str) -> Path:
        """Return where the rows of a table are."""
        return self.folder / "parts" / name / f"{self.number}.arrow"


