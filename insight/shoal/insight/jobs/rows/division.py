"""How rows get from chunks to the parts, and to what else is made from them on the way."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa

from shoal.insight.history.tables import ATTEMPTS, PLANS
from shoal.insight.jobs.columns import chosen, end_us
from shoal.insight.jobs.kernels.arrays import groups, ints, is_there
from shoal.insight.jobs.kernels.statistics import Ints
from shoal.insight.jobs.rows.chunks import NAMED, Chunk, Piece, cut
from shoal.insight.jobs.rows.parts import PLAN, RowsPart
from shoal.insight.jobs.rows.superseded_rows import Superseded
from shoal.insight.jobs.rows.transfer import by_place, joined, packed, unpacked, written


@dataclass(frozen=True)
class Cut:
    """Cuts chunks into pieces of parts, and of what else is made from the same rows.

    ``last``: attempts that began after this day are left out. ``beside``: makes further pieces of
    attempts, for places behind the parts.
    """

    parts: int
    last: date
    superseded: Mapping[str, Superseded]
    beside: Callable[[pa.Table], Iterator[tuple[int, pa.Table]]]

    def __call__(self, chunk: Chunk) -> Iterator[tuple[int, Piece]]:
        """Return the pieces of a chunk with the places they go to."""
        table = NAMED[chunk.table]
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
        for place, mine in cut(rows, self._places(rows), self.parts):
            yield place, (table.name, chunk.number, packed(mine))

    def _begun(self, rows: pa.Table) -> pa.Table:
        over = end_us(self.last)
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


@dataclass(frozen=True)
class Gather:
    """Writes the files of parts; gives ``beside`` what is for the places behind these."""

    folder: Path
    parts: int
    beside: Callable[[int, pa.Table], None]

    def __call__(self, pieces: Iterable[tuple[int, Piece]]) -> None:
        """Write what has come to a partition."""
        for place, mine in by_place(pieces):
            for name in sorted({table for table, _, _ in mine}):
                ordered = sorted(piece for piece in mine if piece[0] == name)
                rows = joined(unpacked(content) for _, _, content in ordered)
                if place >= self.parts:
                    self.beside(place - self.parts, rows)
                else:
                    written(_in_order(rows, name), RowsPart(self.folder, place).file(name))


def _in_order(rows: pa.Table, name: str) -> pa.Table:
    """Return the rows of a part sorted by plan and run; of plans those that count."""
    first, plan = groups(rows, PLAN)
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
