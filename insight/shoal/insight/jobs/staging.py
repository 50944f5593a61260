"""Where results go: ``<out>/<job>/day=YYYY-MM-DD/rows.parquet`` (or ``.jsonl``), a file for a day.

A file is complete or not there: it is written elsewhere first, and then gets its name, in place of
the one of an earlier run. A day without rows has a file without rows. The column ``day`` is in the
name of the folder alone. A run that has ended leaves a mark (``serving/marks.py``).
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from shoal.insight.jobs.days import Days
from shoal.insight.serving import marks

_SCRATCH = ".staging-"
_LOCK = "lock"


class Format(StrEnum):
    """How rows are written."""

    PARQUET = "parquet"
    JSON = "jsonl"  # a JSON object a line; times in UTC


@dataclass(frozen=True)
class Staging:
    """Stores results below ``out``, a folder or a URL of fsspec.

    ``scratch``: a folder for what is unfinished.
    """

    out: str
    scratch: Path
    format: Format = Format.PARQUET
    stored: list[marks.Stored] = field(default_factory=list)

    def replace(self, job: str, found: DataFrame, days: Days) -> int:
        """Store the results of a job in place of those of the same days; return how many rows."""
        folder = self.scratch / "results" / job
        writer = found.repartition("day").write.partitionBy("day")
        if self.format is Format.PARQUET:
            writer.parquet(str(folder))
        else:
            writer.options(
                ignoreNullFields="false", timestampFormat="yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
            ).json(str(folder))
        rows = 0
        for day in days:
            parts = sorted((folder / f"day={day}").glob("part-*"))
            whole = self._whole(folder / f"{day}", found, parts)
            of_day = self._rows(whole)
            with whole.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            self.publish(whole, f"{job}/day={day}/rows.{self.format}")
            self.stored.append(marks.Stored(job, day, of_day, digest))
            rows += of_day
        shutil.rmtree(folder)
        return rows

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

    def _whole(self, whole: Path, found: DataFrame, parts: list[Path]) -> Path:
        """Return the one file with all rows of a day."""
        if len(parts) == 1:
            return parts[0]
        if self.format is Format.JSON:
            with whole.open("wb") as to:
                for part in parts:
                    with part.open("rb") as rows:
                        shutil.copyfileobj(rows, to)
        else:
            schema = to_arrow_schema(found.drop("day").schema, timezone="UTC")
            with pq.ParquetWriter(whole, schema) as writer:
                for part in parts:
                    writer.write_table(pq.read_table(part).cast(schema))
        return whole

    def _rows(self, whole: Path) -> int:
        if self.format is Format.PARQUET:
            rows: int = pq.read_metadata(whole).num_rows
            return rows
        with whole.open("rb") as lines:
            return sum(1 for _ in lines)

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
