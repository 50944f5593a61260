"""All jobs: what each needs, and how it is computed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame

from shoal.insight.jobs.days import LONGEST_DAYS, Days
from shoal.insight.jobs.errors import UnknownJob
from shoal.insight.jobs.rollups import baselines, capacity, failures, flapping, schedules
from shoal.insight.jobs.rollups.concurrency import concurrency_hours
from shoal.insight.jobs.rollups.costs import costs
from shoal.insight.jobs.rollups.critical import critical_paths
from shoal.insight.jobs.rollups.gains import critical_days
from shoal.insight.jobs.rollups.loads import hourly_loads, loads_of
from shoal.insight.jobs.rollups.tasks import task_days
from shoal.insight.jobs.rollups.workers import worker_days
from shoal.insight.jobs.rollups.workflows import workflow_days


@dataclass(frozen=True)
class Inputs:
    """What jobs are made from: current rows of the history, and results that several jobs share.

    ``load_days``: of which the loads are; ``scratch``: a folder for what is used more than once.
    """

    attempts: DataFrame
    instances: DataFrame
    plans: DataFrame
    days: Days
    load_days: Days
    scratch: Path

    @cached_property
    def loads(self) -> DataFrame:
        """The hourly loads, of hours and names: few rows."""
        return self._kept("loads", hourly_loads(self.attempts, self.load_days))

    @cached_property
    def critical_paths(self) -> DataFrame:
        """The links of the critical paths."""
        found = critical_paths(self.attempts, self.instances, self.plans, self.days)
        return self._kept("critical_paths", found)

    def _kept(self, name: str, found: DataFrame) -> DataFrame:
        folder = str(self.scratch / "shared" / name)
        found.write.parquet(folder)
        return found.sparkSession.read.schema(found.schema).parquet(folder)


@dataclass(frozen=True)
class Reach:
    """How far a job looks at rows of a table: days before and after those that are asked for.

    ``of_last``: seen from the last day alone, as its result is one of that day.
    """

    before: int = 0
    after: int = 0
    of_last: bool = False

    def days(self, days: Days) -> Days:
        """Return the days of which rows are needed."""
        start = days.up_to_last(1) if self.of_last else days
        return start.widened(self.before, self.after)


@dataclass(frozen=True)
class Job:
    """A job. ``attempts``, ``instances``, ``loads``: which rows it needs; None: none.

    ``is_snapshot``: its result is one as of the last of the days, not one of each day.
    ``goes_on``: what is late for a day changes the results of the days after it as well.
    ``is_served``: its result is for the database, too (``serving/results.py``).
    """

    name: str
    compute: Callable[[Inputs], DataFrame]
    attempts: Reach | None = None
    instances: Reach | None = None
    is_snapshot: bool = False
    loads: Reach | None = None
    goes_on: bool = False
    is_served: bool = True

    def days(self, days: Days) -> Days:
        """Return the days of which there are results."""
        return days.up_to_last(1) if self.is_snapshot else days


_DAYS = Reach()
_LAST_60 = Reach(before=baselines.WINDOW_DAYS - 1, of_last=True)
_LAST_28 = Reach(before=schedules.WINDOW_DAYS - 1, of_last=True)
#: Attempts of the runs that ended on the days; ``needed`` knows since when there are any.
_OF_RUNS = Reach(before=LONGEST_DAYS)
_AFTER = Reach(after=LONGEST_DAYS)

_ALL = (
    Job("task_days", lambda on: task_days(on.attempts, on.days), attempts=_DAYS),
    Job(
        "critical_paths",
        lambda on: on.critical_paths,
        attempts=_OF_RUNS,
        instances=_DAYS,
        is_served=False,  # a row for each task of each run is too much for a database
    ),
    Job(
        "critical_days",
        lambda on: critical_days(on.critical_paths),
        attempts=_OF_RUNS,
        instances=_DAYS,
    ),
    Job(
        "workflow_days",
        lambda on: workflow_days(on.instances, on.critical_paths, on.days),
        attempts=_OF_RUNS,
        instances=_DAYS,
    ),
    Job(
        "worker_days",
        lambda on: worker_days(on.attempts, loads_of(on.loads, on.days), on.days),
        attempts=_AFTER,
        loads=_DAYS,
    ),
    Job(
        "concurrency_hours",
        lambda on: concurrency_hours(loads_of(on.loads, on.days)),
        attempts=_AFTER,
        loads=_DAYS,
    ),
    Job(
        "capacity",
        lambda on: capacity.capacity(
            loads_of(on.loads, on.days.up_to_last(capacity.WINDOW_DAYS)), on.days
        ),
        attempts=Reach(before=capacity.WINDOW_DAYS - 1, after=LONGEST_DAYS, of_last=True),
        is_snapshot=True,
        loads=_LAST_60,
    ),
    Job(
        "costs",
        lambda on: costs(on.attempts, on.instances, on.days),
        attempts=_DAYS,
        instances=_AFTER,
    ),
    Job(
        "failures",
        lambda on: failures.failures(on.attempts, on.days),
        attempts=Reach(before=failures.WINDOW_DAYS - 1),
        goes_on=True,
    ),
    Job(
        "flapping",
        lambda on: flapping.flapping(on.attempts, on.days),
        attempts=_LAST_60,
        is_snapshot=True,
    ),
    Job(
        "baselines",
        lambda on: baselines.baselines(on.attempts, on.instances, on.days),
        attempts=_LAST_60,
        instances=_LAST_60,
        is_snapshot=True,
    ),
    Job(
        "baseline_errors",
        lambda on: baselines.baseline_errors(on.instances, on.days),
        instances=_LAST_60,
        is_snapshot=True,
    ),
    Job(
        "schedule_minutes",
        lambda on: schedules.schedule_minutes(on.instances, on.days),
        instances=_LAST_28,
        is_snapshot=True,
    ),
    Job(
        "schedule_moves",
        lambda on: schedules.schedule_moves(on.instances, on.days),
        instances=_LAST_28,
        is_snapshot=True,
    ),
)
JOBS: Mapping[str, Job] = {job.name: job for job in _ALL}


def chosen(names: Iterable[str] | None) -> list[Job]:
    """Return the jobs of some names, in the order in which they share most. Raises UnknownJob."""
    wanted = set(JOBS if names is None else names)
    if unknown := wanted - JOBS.keys():
        raise UnknownJob(unknown, JOBS)
    return [job for job in _ALL if job.name in wanted]


def needed(reaches: Sequence[Reach | None], days: Days, begun: date | None = None) -> Days | None:
    """Return the days that hold all that is reached for; None: nothing is.

    ``begun``: when the first of the runs that ended on the days had begun, if that is known.
    """
    since = days.first if begun is None else min(begun, days.first)
    of_runs = _OF_RUNS if begun is None else Reach(before=(days.first - since).days)
    of_runs = Reach(before=min(of_runs.before, LONGEST_DAYS))
    reached = [
        (of_runs if reach is _OF_RUNS else reach).days(days)
        for reach in reaches
        if reach is not None
    ]
    if not reached:
        return None
    return Days(min(one.first for one in reached), max(one.last for one in reached))
