"""Which files of a day are joined: so few at once that they fit into the memory of an exporter."""

from datetime import date, timedelta

from shoal.insight.export import compaction
from shoal.insight.export.compaction import Compaction
from shoal.insight.history.manifest import Contents, HistoryFile

DAY = date(2026, 11, 20)


def contents(rows: list[int], size: int = 1_000) -> Contents:
    """Return a history with files of one day that have so many rows."""
    files = [
        HistoryFile(f"attempts/{n:012}-{n:016}-0.parquet", "attempts", DAY, many, size, "", 1)
        for n, many in enumerate(rows, 1)
    ]
    return Contents(1, {file.path: file for file in files})


def joined(found: Contents) -> list[int]:
    """Return how many rows each of the files has that are joined now."""
    works = Compaction.due(found, DAY + timedelta(days=2), keep_days=0)
    return [file.rows for work in works for file in work.files]


def test_small_files_of_a_day_are_joined() -> None:
    assert joined(contents([10] * 5)) == [10] * 5
    assert joined(contents([10] * 4)) == [], "four are few enough"


def test_no_more_are_joined_than_fit_into_memory() -> None:
    most = compaction._MOST_ROWS
    assert joined(contents([most // 3] * 9)) == [most // 3] * 3
    assert joined(contents([most - 1] * 9)) == [], "they stay as they are"
    assert joined(contents([10] * 9, compaction._MOST_BYTES // 2)) == [10] * 2
