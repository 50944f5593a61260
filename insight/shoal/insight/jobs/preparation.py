"""From files of the history to what the jobs read: parts, and the loads of days."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext

from shoal.insight.history.tables import ATTEMPTS, INSTANCES, PLANS
from shoal.insight.jobs.catalogue import Inputs
from shoal.insight.jobs.needs import JobNeeds
from shoal.insight.jobs.rollups.loads import Sorted, Swept
from shoal.insight.jobs.rows.chunks import Chunk, ColumnSelection
from shoal.insight.jobs.rows.division import Cut, Gather
from shoal.insight.jobs.rows.superseded_rows import KeysOf, Superseded, repeated
from shoal.insight.jobs.rows.transfer import joined, sent, unpacked
from shoal.insight.jobs.session import ROWS_OF_PART, parts_of
from shoal.insight.jobs.source import SourceFile, files_of, local_paths

#: Chunks of keys alone have so many times as many rows.
_KEYS_SCALE = 8


@dataclass(frozen=True)
class Preparation:
    """Divides the current rows into parts, and sweeps the loads of days."""

    context: SparkContext
    wanted: JobNeeds
    scratch: Path

    def inputs(self) -> Inputs:
        """Write what the jobs read, and return it. Raises MissingFile."""
        wanted = self.wanted
        parts = parts_of(wanted.rows)
        chunks = self._chunks(wanted.files, wanted.selection)
        if wanted.has_plans:
            plans = ColumnSelection(tuple(column.name for column in PLANS.columns))
            chunks += self._chunks(files_of(wanted.all_files, PLANS.name), _Always(plans))
        if chunks:
            loads = wanted.loads
            cut = Cut(
                parts,
                wanted.days.last,
                self._superseded(parts),
                Sorted(loads) if loads else _nothing,
            )
            first = (loads or wanted.days).first
            swept = Swept(self.scratch, first, wanted.whole_loads)
            pieces = self.context.parallelize(chunks, len(chunks)).flatMap(cut)
            sent(pieces, parts).foreachPartition(Gather(self.scratch, parts, swept))
        return Inputs(self.context, self.scratch, parts, wanted.days)

    def _superseded(self, places: int) -> Mapping[str, Superseded]:
        """Return the keys that have several event ids, by table."""
        chunks: list[Chunk] = []
        for table in (ATTEMPTS, INSTANCES):
            keys = ColumnSelection((*table.key, "event_id"))
            files = self.wanted.superseding(table)
            chunks += self._chunks(files, _Always(keys), _KEYS_SCALE)
        if not chunks:
            return {}
        pieces = self.context.parallelize(chunks, len(chunks)).flatMap(KeysOf(places))
        found: dict[str, list[pa.Table]] = defaultdict(list)
        for name, content in sent(pieces, places).mapPartitions(repeated).collect():
            found[name].append(unpacked(content))
        return {name: Superseded.of(joined(tables)) for name, tables in found.items()}

    def _chunks(
        self,
        files: Iterable[SourceFile],
        select: Callable[[SourceFile], ColumnSelection],
        scale: int = 1,
    ) -> list[Chunk]:
        """Return chunks of files of one table of which the same is read.

        Each has about as many rows as a part, times ``scale``.
        """
        alike: dict[tuple[str, ColumnSelection], list[SourceFile]] = defaultdict(list)
        for one in sorted(files, key=lambda one: (one.day, one.url)):
            alike[one.table, select(one)].append(one)
        found: list[Chunk] = []
        for (table, selection), mine in alike.items():
            paths: list[str] = []
            rows = 0
            for one, path in zip(mine, local_paths(mine, self.scratch), strict=True):
                if paths and rows + one.rows > scale * ROWS_OF_PART:
                    found.append(Chunk(len(found), table, paths, selection))
                    rows, paths = 0, []
                rows += one.rows
                paths.append(path)
            found.append(Chunk(len(found), table, paths, selection))
        return found


@dataclass(frozen=True)
class _Always:
    """The same of every file."""

    selection: ColumnSelection

    def __call__(self, _: SourceFile) -> ColumnSelection:
        return self.selection


def _nothing(_: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    return iter(())
