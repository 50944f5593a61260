"""Where results go: ``<out>/<job>/day=YYYY-MM-DD/rows.parquet`` (or ``.jsonl``), a file for a day.

A file is complete or not there: it is written elsewhere first, and then gets its name, in place of
the one of an earlier run. A day without rows has a file without rows. The column ``day`` is in the
name of the folder alone. A run that has ended leaves a mark (``serving/marks.py``).
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem
from pyspark import RDD

from shoal.insight.jobs.columns import number_of
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.rows.transfer import by_place, packed, sent, unpacked
from shoal.insight.serving import marks

_SCRATCH = ".staging-"
_LOCK = "lock"
_ROWS_OF_GROUP = 100_000
#: What is found in so many parts is brought together in one process.
_PARTS_AT_PLACE = 8


class Format(StrEnum):
    """How rows are written."""

    PARQUET = "parquet"
    JSON = "jsonl"  # a JSON object a line; times in UTC


@dataclass(frozen=True)
class JobOutput:
    """What a job has found. ``schema``: with the column ``day``.

    ``pieces``: the day (days since 1970), where the piece comes from, and its rows as ``packed``
    has them, without their day.
    """

    schema: pa.Schema
    pieces: "RDD[tuple[int, tuple[int, bytes]]]"


def by_day(number: int, table: pa.Table) -> Iterator[tuple[int, tuple[int, bytes]]]:
    """Cut a result into the pieces of ``JobOutput``. ``number``: the part it was made from."""
    days = table["day"].cast(pa.int32()).to_numpy()
    rows = table.drop_columns("day")
    known, counts = np.unique(days, return_counts=True)
    if len(known) > 1:
        rows = rows.take(pa.array(np.argsort(days, kind="stable"))).combine_chunks()
    for day, end, size in zip(known, np.cumsum(counts), counts, strict=True):
        yield int(day), (number, packed(rows.slice(int(end - size), int(size))))


@dataclass(frozen=True)
class Staging:
    """Stores results below ``out``, a folder or a URL of fsspec.

    ``scratch``: a folder for what is unfinished.
    """

    out: str
    scratch: Path
    format: Format = Format.PARQUET
    stored: list[marks.StoredResult] = field(default_factory=list)

    def replace(self, job: str, found: JobOutput, days: Days) -> int:
        """Store the results of a job in place of those of the same days; return how many rows."""
        folder = self.scratch / "results" / job
        folder.mkdir(parents=True)
        schema = pa.schema([one for one in found.schema if one.name != "day"])
        write = _Write(folder, schema, self.format)
        busy = 2 * found.pieces.context.defaultParallelism
        places = min(len(list(days)), max(busy, found.pieces.getNumPartitions() // _PARTS_AT_PLACE))
        rows = dict(sent(found.pieces, places).mapPartitions(write).collect())
        for day in days:
            number = number_of(day)
            if number not in rows:
                write.day(number, schema.empty_table())
            with write.file(number).open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            self.publish(write.file(number), f"{job}/day={day}/rows.{self.format}")
            self.stored.append(marks.StoredResult(job, day, rows.get(number, 0), digest))
        shutil.rmtree(folder)
        return sum(rows.values())

    def finish(self, served: Collection[str]) -> None:
        """Leave the mark that says which results of jobs that are ``served`` were stored."""
        results = [one for one in self.stored if one.job in served]
        if results and self.format is Format.PARQUET:
            self.publish_bytes(marks.written(results), f"{marks.FOLDER}/{marks.new_name()}")

    def publish_bytes(self, content: bytes, name: str) -> None:
        """Store a small file, complete or as it was."""
        draft = self.scratch / "draft"
        draft.write_bytes(content)
        self.publish(draft, name)

    def publish(self, whole: Path, name: str) -> None:
        """Move a file to its name below ``out``, in place of the one that was there."""
        fs, root = fsspec.core.url_to_fs(self.out)
        target = f"{root}/{name}"
        if isinstance(fs, LocalFileSystem):
            place = Path(target)
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_name(f".{place.name}.{os.getpid()}")
            shutil.move(whole, draft)  # perhaps from another file system
            _sync(draft)
            draft.replace(place)
            _sync(place.parent)
        else:
            # Storages of objects show an object when all of it is there.
            fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            fs.put_file(str(whole), target)


@dataclass(frozen=True)
class _Write:
    """Writes the rows of days to files in a folder that all machines see."""

    folder: Path
    schema: pa.Schema
    format: Format

    def __call__(
        self, pieces: Iterable[tuple[int, tuple[int, bytes]]]
    ) -> Iterator[tuple[int, int]]:
        """Write the days of a partition; return how many rows each has."""
        for day, mine in by_place(pieces):
            # In the order of parts, so that equal results are equal files.
            tables = [unpacked(content) for _, content in sorted(mine)]
            rows = pa.concat_tables([self.schema.empty_table(), *tables])
            self.day(day, rows)
            yield day, rows.num_rows

    def day(self, day: int, rows: pa.Table) -> None:
        """Write the rows of a day. A step that Spark starts twice writes it in two places."""
        draft = self.file(day).with_name(f".{day}.{os.getpid()}")
        if self.format is Format.PARQUET:
            pq.write_table(rows, draft, row_group_size=_ROWS_OF_GROUP)
        else:
            with draft.open("w", encoding="utf-8") as to:
                for batch in rows.to_batches(max_chunksize=_ROWS_OF_GROUP):
                    for row in batch.to_pylist():
                        to.write(json.dumps(row, ensure_ascii=False, default=_json) + "\n")
        draft.replace(self.file(day))

    def file(self, day: int) -> Path:
        """Return where the rows of a day are."""
        return self.folder / f"{day}.{self.format}"


def _json(value: date | datetime) -> str:
    """Return a day, or a time in UTC with all its microseconds."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value.isoformat()


@contextmanager
def scratch_folder(out: str, parent: str | None = None) -> Iterator[Path]:
    """Make a folder for what is unfinished, and remove it, and those of runs that were killed.

    It is in ``parent``; without one beside the results, if these are in a folder, so that a file
    can be moved there in one step.
    """
    fs, root = fsspec.core.url_to_fs(out)
    beside = Path(root) if isinstance(fs, LocalFileSystem) else Path(tempfile.gettempdir())
    place = Path(parent) if parent else beside
    place.mkdir(parents=True, exist_ok=True)
    for left in place.glob(f"{_SCRATCH}*"):
        _remove_left(left)
    folder = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=place)).absolute()
    try:
        # As long as this process lives.
        with (folder / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left(folder: Path) -> None:
    """Remove the folder of a run that has ended without doing so."""
    with suppress(OSError), (folder / _LOCK).open("rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
