"""One run of the jobs: read the history, compute, store."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext

from shoal.insight.history.tables import ATTEMPTS, INSTANCES, PLANS, HistoryTable
from shoal.insight.jobs.catalogue import OF_RUNS, Inputs, Job, known_reach, needed
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.errors import SparkEnded
from shoal.insight.jobs.kernels.arrays import ints
from shoal.insight.jobs.packing import joined, sent
from shoal.insight.jobs.parts import Chunk, Cut, Gather, KeysOf, Superseded, repeated
from shoal.insight.jobs.rollups.loads import Sorted, Swept
from shoal.insight.jobs.session import ROWS_OF_PART, parts_of, started
from shoal.insight.jobs.source import HistoryFile, files_of, first_begun, local_paths, manifested
from shoal.insight.jobs.staging import Format, Staging, scratch_folder

_UNUSED = ("exit_code", "forced", "priority", "backfill_id", "parent_instance_id", "deadline_at")
#: Of each attempt, whatever is computed.
_ALWAYS = ("attempt_id", "instance_id", "project", "workflow", "version", "finished_at", "event_id")


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
    """A step that is done; ``rows``: how many results it has stored, or rows it has prepared."""

    job: str
    rows: int
    seconds: float


PREPARED = "prepare"


def run(request: Request) -> Iterator[Done]:
    """Compute and store job after job; say so of each. Raises JobsError.

    Every job and day is replaced as a whole, so to run it again, or for other days, changes nothing
    else, and what has been stored before an error is right.
    """
    began = time.monotonic()
    files = manifested(request.history)
    wanted = _Wanted(files, request.jobs, request.days)
    rows = sum(one.rows for one in wanted.files)
    with (
        scratch_folder(request.out, request.scratch) as scratch,
        started(request.master, scratch, request.memory) as context,
    ):
        with _told(PREPARED):
            inputs = _Preparation(context, wanted, scratch).inputs()
        yield Done(PREPARED, rows, time.monotonic() - began)
        staging = Staging(request.out, scratch, request.format)
        for job in request.jobs:
            began = time.monotonic()
            with _told(job.name):
                stored = staging.replace(job.name, job.compute(inputs), job.days(request.days))
            yield Done(job.name, stored, time.monotonic() - began)


@contextmanager
def _told(job: str) -> Iterator[None]:
    """Say at which job Spark has failed."""
    try:
        yield
    except Py4JJavaError as error:
        raise SparkEnded(job, _why(str(error))) from error
    # py4j raises a ConnectionError where Java's process has gone; results break off there.
    except (Py4JError, ConnectionError, EOFError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise SparkEnded(job, lines[0]) from error


def _why(text: str) -> str:
    """Return the line of Java's error that says most: of an error in Python its last one."""
    # The first line names the call, the second begins with the exception; behind it is the stack.
    _, *lines = text.partition("\n\tat ")[0].splitlines()
    said = [line.removeprefix(": ") for line in lines if not line.startswith((" SQLSTATE", "  "))]
    if not said:
        return text
    return said[-1] if "Traceback" in said[0] else said[0]


@dataclass(frozen=True)
class _Wanted:
    """Which files, days and columns the jobs need."""

    all_files: Sequence[HistoryFile]
    jobs: Sequence[Job]
    days: Days

    @cached_property
    def begun(self) -> date | None:
        """When the first of the runs had begun that ended on the days, if that is asked."""
        if any(job.attempts is OF_RUNS for job in self.jobs):
            return first_begun(self.all_files, self.days)
        return None

    @cached_property
    def attempts(self) -> Days | None:
        """Of which days attempts are needed."""
        return needed([job.attempts for job in self.jobs], self.days, self.begun)

    @cached_property
    def instances(self) -> Days | None:
        """Of which days instances are needed."""
        return needed([job.instances for job in self.jobs], self.days)

    @cached_property
    def loads(self) -> Days | None:
        """Of which days loads are needed."""
        return needed([job.loads for job in self.jobs], self.days)

    @cached_property
    def whole_loads(self) -> Days | None:
        """Of which days all loads are needed."""
        return needed([job.loads for job in self.jobs if job.needs_all_loads], self.days)

    @cached_property
    def files(self) -> Sequence[HistoryFile]:
        """The files of attempts and instances, of all these days."""
        windows = {ATTEMPTS: self.attempts, INSTANCES: self.instances}
        return [
            one
            for table, days in windows.items()
            if days is not None
            for one in files_of(self.all_files, table.name, days)
        ]

    @cached_property
    def has_plans(self) -> bool:
        """Whether plans are needed."""
        return any(job.attempts is OF_RUNS for job in self.jobs)

    def columns(self, file: HistoryFile) -> tuple[str, ...]:
        """Return the columns of a file that are needed: fewer of days to look back at."""
        if file.table == INSTANCES.name:
            return tuple(one.name for one in INSTANCES.columns if one.name not in _UNUSED)
        found = set(_ALWAYS)
        for job in self.jobs:
            if job.attempts is None:
                continue
            reach = known_reach(job.attempts, self.days, self.begun)
            if file.day in reach.days(self.days):
                found.update(job.columns)
        return tuple(one.name for one in ATTEMPTS.columns if one.name in found)


@dataclass(frozen=True)
class _Preparation:
    """Divides the current rows into parts, and sweeps the loads of days."""

    context: SparkContext
    wanted: _Wanted
    scratch: Path

    def inputs(self) -> Inputs:
        """Write what the jobs read, and return it."""
        wanted = self.wanted
        parts = parts_of(
            max(
                sum(one.rows for one in wanted.files if one.table == table.name)
                for table in (ATTEMPTS, INSTANCES)
            )
        )
        loads = wanted.loads
        cut = Cut(
            parts,
            wanted.days,
            self._superseded(parts),
            Sorted(loads) if loads else _nothing,
        )
        first = (loads or wanted.days).first
        gather = Gather(self.scratch, parts, Swept(self.scratch, first, wanted.whole_loads))
        chunks = self._chunks(wanted.files, wanted.columns)
        if wanted.has_plans:
            plans = files_of(wanted.all_files, PLANS.name)
            chunks += self._chunks(plans, lambda _: [one.name for one in PLANS.columns])
        if chunks:
            pieces = self.context.parallelize(chunks, len(chunks)).flatMap(cut)
            sent(pieces, parts).mapPartitions(gather).count()
        return Inputs(self.context, self.scratch, parts, wanted.days)

    def _superseded(self, places: int) -> Mapping[str, Superseded]:
        """Return the keys that have several event ids, which are few."""
        chunks: list[Chunk] = []
        for table in (ATTEMPTS, INSTANCES):
            chunks += self._chunks(
                self._later(table), lambda _, table=table: [*table.key, "event_id"], 8
            )
        if not chunks:
            return {}
        pieces = self.context.parallelize(chunks, len(chunks)).flatMap(KeysOf(places))
        found = defaultdict(list)
        for name, keys in sent(pieces, places).mapPartitions(repeated).collect():
            found[name].append(keys)
        superseded = {}
        for name, tables in found.items():
            keys = joined(tables).sort_by("key")
            superseded[name] = Superseded(ints(keys, "key"), ints(keys, "event_id"))
        return superseded

    def _later(self, table: HistoryTable) -> list[HistoryFile]:
        """Return the files of a table that are needed, and those that may supersede their rows.

        A row is superseded by what was exported with it or later, of whatever day that is.
        """
        files = [one for one in self.wanted.files if one.table == table.name]
        since = min((one.since for one in files), default=None)
        if since is None:
            return []
        all_files = files_of(self.wanted.all_files, table.name)
        return [one for one in all_files if one.exported >= since]

    def _chunks(
        self,
        files: Iterable[HistoryFile],
        columns: Callable[[HistoryFile], Sequence[str]],
        scale: int = 1,
    ) -> list[Chunk]:
        """Return files in chunks of as many rows as a part has, those of one table and columns."""
        groups: dict[tuple[str, Sequence[str]], list[HistoryFile]] = defaultdict(list)
        for one in files:
            groups[one.table, tuple(columns(one))].append(one)
        found: list[Chunk] = []
        for (table, names), mine in groups.items():
            mine.sort(key=lambda one: (one.day, one.url))
            paths = local_paths(mine, self.scratch)
            rows, chunk = 0, []
            for one, path in zip(mine, paths, strict=True):
                if chunk and rows + one.rows > scale * ROWS_OF_PART:
                    found.append(Chunk(len(found), table, chunk, names))
                    rows, chunk = 0, []
                rows += one.rows
                chunk.append(path)
            found.append(Chunk(len(found), table, chunk, names))
        return found


def _nothing(_: object) -> Iterator[tuple[int, object]]:
    return iter(())
