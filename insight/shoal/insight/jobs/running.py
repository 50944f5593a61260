"""One run of the jobs: read the history, compute, store."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import fsspec
from fsspec.implementations.local import LocalFileSystem
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shoal.insight.history.tables import ATTEMPTS, INSTANCES, PLANS, HistoryTable
from shoal.insight.jobs import late
from shoal.insight.jobs.catalogue import Inputs, Job, needed
from shoal.insight.jobs.columns import end_of
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.errors import MissingFile, SparkEnded
from shoal.insight.jobs.session import partitions_of, started
from shoal.insight.jobs.source import HistoryFile, current, files_of, first_begun, manifested, read
from shoal.insight.jobs.staging import Format, Staging, scratch_folder

_UNUSED = ("exit_code", "forced", "priority", "backfill_id", "parent_instance_id", "deadline_at")


@dataclass(frozen=True)
class Request:
    """What to compute from where to where. ``master`` None: as ``spark-submit`` has set it.

    ``scratch``: a folder that all machines of Spark's see, for what is unfinished; None: beside
    the results. ``memory``: the heap of Spark's driver.
    """

    history: str
    out: str
    days: Days
    jobs: Sequence[Job]
    master: str | None = None
    format: Format = Format.PARQUET
    scratch: str | None = None
    memory: str = "1g"


@dataclass(frozen=True)
class Done:
    """A step that is done; ``rows``: how many results it has stored, or rows it has prepared.

    ``days``: FROM:TO, of which it was about.
    """

    job: str
    days: str
    rows: int
    seconds: float


PREPARED = "prepare"


def run(request: Request) -> Iterator[Done]:
    """Compute and store job after job; say so of each. Raises JobsError.

    Every job and day is replaced as a whole, so to run it again, or for other days, changes nothing
    else, and what has been stored before an error is right.
    """
    files = manifested(request.history)
    jobs, days = request.jobs, request.days
    windows = {
        ATTEMPTS: needed([job.attempts for job in jobs], days, first_begun(files, days)),
        INSTANCES: needed([job.instances for job in jobs], days),
    }
    rows = {
        table: sum(one.rows for one in files_of(files, table.name, window))
        for table, window in windows.items()
        if window is not None
    }
    most = max(rows.values(), default=0)
    began = time.monotonic()
    with (
        scratch_folder(request.out, request.scratch) as scratch,
        started(request.master, scratch, most, request.memory) as spark,
    ):
        history = _History(spark, files, scratch, partitions_of(most))
        with _told(PREPARED):
            tables = {
                table: history.prepared(table, window, days) for table, window in windows.items()
            }
            plans = history.table(PLANS, None)
        yield Done(PREPARED, str(days), sum(rows.values()), time.monotonic() - began)
        inputs = Inputs(
            attempts=tables[ATTEMPTS],
            instances=tables[INSTANCES],
            plans=plans,
            days=days,
            load_days=needed([job.loads for job in jobs], days) or days,
            scratch=scratch,
        )
        staging = Staging(request.out, scratch, request.format)
        for job in jobs:
            began = time.monotonic()
            with _told(job.name):
                stored = staging.replace(job.name, job.compute(inputs), job.days(days))
            yield Done(job.name, str(job.days(days)), stored, time.monotonic() - began)
        staging.finish({job.name for job in jobs if job.is_served})


def run_with_late(request: Request) -> Iterator[Done]:
    """Do as ``run``, also for the days before that rows have come for since the last such run.

    What was looked at is remembered at the end, so whatever was broken off is done again.
    """
    of_days = [job for job in request.jobs if not job.is_snapshot]
    names = [job.name for job in of_days]
    is_one = any(job.goes_on for job in of_days)
    work = late.work_of(manifested(request.history), request.out, names, request.days, is_one)
    for days in work.ranges[:-1]:
        yield from run(replace(request, days=days, jobs=of_days))
    yield from run(replace(request, days=work.ranges[-1]))
    if work.look is not None:
        with scratch_folder(request.out, request.scratch) as scratch:
            late.remember(Staging(request.out, scratch), names, work.look)


@contextmanager
def _told(job: str) -> Iterator[None]:
    """Say at which job Spark has failed."""
    try:
        yield
    # py4j raises a ConnectionError where Java's process has gone.
    except (Py4JError, PySparkException, ConnectionError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise SparkEnded(job, lines[0]) from error


@dataclass(frozen=True)
class _History:
    """The tables of the history as Spark reads them."""

    spark: SparkSession
    files: Sequence[HistoryFile]
    scratch: Path
    partitions: int

    def prepared(self, table: HistoryTable, days: Days | None, asked: Days) -> DataFrame:
        """Return the current rows of some days, on disk and in an order that all jobs use.

        Attempts that ended after the days that are ``asked`` for are there if they began before.

        They are divided by project and workflow and sorted by run (an integer: a sort by texts
        takes many times as long). ``days`` None: no rows.
        """
        if days is None:
            return read(self.spark, table, [])
        rows = self.table(table, days)
        if table is ATTEMPTS and days.last > asked.last:
            over = F.lit(end_of(asked.last))
            began = F.coalesce("queued_at", "started_at", "finished_at")
            rows = rows.where((F.col("finished_at") < over) | (began < over))
        name = f"current_{table.name}"
        (
            rows.drop(*_UNUSED)
            .repartition(self.partitions, "project", "workflow")
            .sortWithinPartitions("instance_id")
            .write.bucketBy(self.partitions, "project", "workflow")
            .sortBy("instance_id")
            .format("parquet")
            .saveAsTable(name)
        )
        return self.spark.table(name)

    def table(self, table: HistoryTable, days: Days | None) -> DataFrame:
        """Return the current rows of a table; ``days`` None: of all days."""
        files = files_of(self.files, table.name, days)
        # A row is superseded by what was exported with it or later, of whatever day that is.
        since = min((one.since for one in files), default=0)
        known = set(files)
        beside = [
            one
            for one in files_of(self.files, table.name)
            if one.exported >= since and one not in known
        ]
        rows = read(self.spark, table, self._local(files))
        later = read(self.spark, table, self._local(beside)) if beside else None
        return current(rows, table, later)

    def _local(self, files: Sequence[HistoryFile]) -> list[str]:
        """Return paths for Spark: its Java knows fewer kinds of storages than Python does."""
        if not files:
            return []
        fs, _ = fsspec.core.url_to_fs(files[0].url)
        paths = [one.url.split("://", 1)[1] for one in files]
        if not isinstance(fs, LocalFileSystem):
            paths = [str(self.scratch / "history" / path) for path in paths]
            for one, copy in zip(files, paths, strict=True):
                self._fetch(fs, one.url, Path(copy))
        for path in paths:
            if not Path(path).is_file():
                raise MissingFile(path)
        return [f"file://{path}" for path in paths]

    def _fetch(self, fs: fsspec.AbstractFileSystem, url: str, copy: Path) -> None:
        if copy.exists():
            return
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            fs.get_file(url, str(copy))
        except FileNotFoundError as error:
            raise MissingFile(url) from error
