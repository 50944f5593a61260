"""Join the files of a day, which came in small pieces, and drop days that are too old."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.insight.export.columns import newest
from shoal.insight.history.manifest import Contents, HistoryFile
from shoal.insight.history.store import HistoryStore
from shoal.insight.history.tables import TABLES, HistoryTable

_MOST_FILES = 4  # of a day that is over, before they are joined
# Of files that are joined at once. They are read into memory, some 800 bytes a row meanwhile.
_MOST_BYTES = 32 << 20
_MOST_ROWS = 200_000


@dataclass(frozen=True)
class Compaction:
    """Files of one day of a table that become one. ``drops``: they just go."""

    table: HistoryTable
    day: date
    files: Sequence[HistoryFile]
    drops: bool = False

    @classmethod
    def due(cls, contents: Contents, today: date, keep_days: float) -> Iterator[Self]:
        """Find what is to be done in a history; ``keep_days`` 0: no day is too old."""
        for table in TABLES:
            days: dict[date, list[HistoryFile]] = {}
            for file in contents.of(table.name):
                days.setdefault(file.day, []).append(file)
            for day, files in days.items():
                # Plans explain runs however old they are.
                if keep_days and table.name != "plans" and today - day > timedelta(days=keep_days):
                    yield cls(table, day, files, drops=True)
                elif day < today - timedelta(days=1) and len(files) > _MOST_FILES:
                    small = _small(files)
                    if len(small) > 1:
                        yield cls(table, day, small)


def joined(store: HistoryStore, work: Compaction) -> pa.Table:
    """Return the rows of the files, each once: the newest of its key. Raises DamagedHistory."""
    tables = [pq.read_table(io.BytesIO(store.read(file))) for file in work.files]
    rows = pa.concat_tables(tables)
    return rows.take(newest(work.table, rows))


def _small(files: Sequence[HistoryFile]) -> list[HistoryFile]:
    """Return the smallest files, as many as may be joined at once."""
    found, size, rows = [], 0, 0
    for file in sorted(files, key=lambda one: one.size):
        size, rows = size + file.size, rows + file.rows
        if size > _MOST_BYTES or rows > _MOST_ROWS:
            break
        found.append(file)
    return found
