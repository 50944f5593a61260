"""What a run of the jobs has stored."""

import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Row = dict[str, Any]


def stored(out: Path, job: str) -> list[Row]:
    """Return all rows of a job, each with its day."""
    found = []
    for file in sorted(out.glob(f"{job}/day=*/rows.parquet")):
        day = date.fromisoformat(file.parent.name.removeprefix("day="))
        found += [{"day": day, **row} for row in pq.ParquetFile(file).read().to_pylist()]
    return found


def assert_same(found: Sequence[Row], expected: Sequence[Row]) -> None:
    """Compare rows in any order; numbers may differ by what adding up in another order does."""
    assert expected, "there is nothing to compare"
    names = sorted(expected[0])
    keys = [name for name in names if not _is_number(expected, name)]
    counts = [name for name in names if name not in keys and _is_whole(expected, name)]
    order = (*keys, *counts)
    assert sorted(found[0]) == names
    assert len(found) == len(expected)
    for mine, other in zip(_ordered(found, order), _ordered(expected, order), strict=True):
        for name in names:
            assert _equal(mine[name], other[name]), f"{name}: {mine} is not {other}"


def _ordered(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    return sorted(rows, key=lambda row: [str(row[name]) for name in names])


def _is_number(rows: Sequence[Row], name: str) -> bool:
    return any(isinstance(row[name], float) for row in rows)


def _is_whole(rows: Sequence[Row], name: str) -> bool:
    return False if _is_number(rows, name) else any(isinstance(row[name], int) for row in rows)


def _equal(mine: Any, other: Any) -> bool:
    if isinstance(mine, float) and isinstance(other, float | int):
        return math.isclose(mine, other, rel_tol=1e-9, abs_tol=1e-6)
    return bool(mine == other)
