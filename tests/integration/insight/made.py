"""Results as a run of the jobs leaves them, made without Spark."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.insight.serving import marks
from shoal.insight.serving.results import RESULTS, ValueKind

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_TYPES: Mapping[ValueKind, pa.DataType] = {
    ValueKind.TEXT: pa.string(),
    ValueKind.INTEGER: pa.int64(),
    ValueKind.NUMBER: pa.float64(),
    ValueKind.YES_NO: pa.bool_(),
    ValueKind.TIME: pa.timestamp("us", "UTC"),
    ValueKind.DAY: pa.date32(),
}
_VALUES: Mapping[ValueKind, Any] = {
    ValueKind.TEXT: "é",
    ValueKind.INTEGER: 7,
    ValueKind.NUMBER: 2.5,
    ValueKind.YES_NO: True,
    ValueKind.TIME: NOON,
    ValueKind.DAY: NOON.date(),
}
Row = dict[str, Any]


def row(job: str, **values: Any) -> Row:
    """Return a row of a job; what is not given has some value of its kind."""
    return {name: _VALUES[kind] for name, kind in RESULTS[job].columns.items()} | values


def parquet(job: str, rows: Sequence[Row]) -> bytes:
    """Return the file of a result."""
    schema = pa.schema([(name, _TYPES[kind]) for name, kind in RESULTS[job].columns.items()])
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema), content, write_page_checksum=True)
    return content.getvalue()


def put(root: Path, job: str, day: date, content: bytes) -> marks.StoredResult:
    """Store the file of a result in the folder of results, in place of an older one."""
    folder = root / job / f"day={day}"
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / ".draft"
    draft.write_bytes(content)
    draft.replace(folder / "rows.parquet")
    return marks.StoredResult(job, day, 0, hashlib.sha256(content).hexdigest())


def mark(root: Path, *results: marks.StoredResult) -> Path:
    """Leave a mark."""
    place = root / marks.FOLDER / marks.new_name()
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = root / ".draft"
    draft.write_bytes(marks.written(results))
    draft.replace(place)
    return place
