"""Rows that do not count: of one key the row with the highest event id counts.

What is superseded is rare, so it is found by the keys alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from shoal.insight.jobs.columns import chosen
from shoal.insight.jobs.kernels.arrays import Flags, ints
from shoal.insight.jobs.kernels.statistics import Ints
from shoal.insight.jobs.rows.chunks import NAMED, Chunk, Piece, cut
from shoal.insight.jobs.rows.transfer import by_place, joined, packed, unpacked

_STRETCH_BITS = 16  # keys follow each other, so a chunk has those of few stretches


@dataclass(frozen=True)
class Superseded:
    """Keys of which there are several rows, and the event id of the one that counts; sorted."""

    keys: Ints
    newest: Ints

    @classmethod
    def of(cls, found: pa.Table) -> Self:
        """Build it from what ``repeated`` has found."""
        in_order = found.sort_by("key")
        return cls(ints(in_order, "key"), ints(in_order, "event_id"))

    def counts(self, keys: Ints, events: Ints) -> Flags:
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
        [name] = NAMED[chunk.table].key
        rows = chunk.read()
        stretch = (ints(rows, name) >> _STRETCH_BITS) % self.places
        pairs = pa.table({"key": rows[name], "event_id": rows["event_id"]})
        for place, mine in cut(pairs, stretch, self.places):
            yield place, (chunk.table, chunk.number, packed(mine))


def repeated(pieces: Iterable[tuple[int, Piece]]) -> Iterator[tuple[str, bytes]]:
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
            yield name, packed(pa.table({"key": twice, "event_id": newest}))
