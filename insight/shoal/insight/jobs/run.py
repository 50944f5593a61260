"""One run of the jobs: read the history, compute, store."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JError, Py4JJavaError

from shoal.insight.jobs import late_rows
from shoal.insight.jobs.catalogue import InsightJob
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.errors import SparkEnded
from shoal.insight.jobs.needs import JobNeeds
from shoal.insight.jobs.output import Format, Staging, scratch_folder
from shoal.insight.jobs.preparation import Preparation
from shoal.insight.jobs.session import started
from shoal.insight.jobs.source import manifested


@dataclass(frozen=True)
class JobsRequest:
    """What to compute from where to where. ``master`` None: as ``spark-submit`` has set it.

    ``scratch``: a folder that all machines of Spark's see, for what is unfinished; None: beside
    the results. ``memory``: the heap of Spark's driver. ``by_job``: jobs that are for some of the
    days alone.
    """

    history: str
    out: str
    days: Days
    jobs: Sequence[InsightJob]
    master: str | None = None
    format: Format = Format.PARQUET
    scratch: str | None = None
    memory: str = "1g"
    by_job: Mapping[str, Days] = field(default_factory=dict)


@dataclass(frozen=True)
class StepDone:
    """A step that is done; ``rows``: how many results it has stored, or rows it has prepared.

    ``days``: FROM:TO, of which it was about.
    """

    job: str
    days: str
    rows: int
    seconds: float


PREPARED = "prepare"


def run(request: JobsRequest) -> Iterator[StepDone]:
    """Compute and store job after job; say so of each. Raises JobsError.

    Every job and day is replaced as a whole, so to run it again, or for other days, changes nothing
    else, and what has been stored before an error is right.
    """
    began = time.monotonic()
    files = manifested(request.history)
    wanted = JobNeeds(files, request.jobs, request.days)
    rows = sum(one.rows for one in wanted.files)
    with (
        scratch_folder(request.out, request.scratch) as scratch,
        started(request.master, scratch, request.memory) as context,
    ):
        with _told(PREPARED):
            inputs = Preparation(context, wanted, scratch).inputs()
        yield StepDone(PREPARED, str(request.days), rows, time.monotonic() - began)
        staging = Staging(request.out, scratch, request.format)
        for job in request.jobs:
            began = time.monotonic()
            with _told(job.name):
                some = request.by_job.get(job.name)
                on = inputs if some is None else replace(inputs, days=some)
                days = job.days(on.days)
                stored = staging.replace(job.name, job.compute(on), days)
            yield StepDone(job.name, str(days), stored, time.monotonic() - began)
        staging.finish({job.name for job in request.jobs if job.is_served})


def run_with_late(request: JobsRequest) -> Iterator[StepDone]:
    """Do as ``run``, also for the days before that rows have come for since the last such run.

    What was looked at is remembered at the end, so whatever was broken off is done again.
    """
    of_days = [job for job in request.jobs if not job.is_snapshot]
    work = late_rows.work_of(manifested(request.history), request.out, of_days, request.days)
    for one in work.ranges:
        is_last = one is work.ranges[-1]
        jobs = [
            job for job in request.jobs if job.name in one.by_job or (is_last and job.is_snapshot)
        ]
        yield from run(replace(request, days=one.days, jobs=jobs, by_job=one.by_job))
    if work.look is not None:
        with scratch_folder(request.out, request.scratch) as scratch:
            names = [job.name for job in of_days]
            late_rows.remember(Staging(request.out, scratch), names, work.look)


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
