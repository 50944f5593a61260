"""All jobs: what each needs, and how it is computed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext

from shoal.insight.jobs.columns import number_of
from shoal.insight.jobs.days import LONGEST_DAYS, Days
from shoal.insight.jobs.errors import UnknownJob
from shoal.insight.jobs.output import JobOutput, by_day
from shoal.insight.jobs.rollups import baselines as expectations
from shoal.insight.jobs.rollups import (
    capacity,
    concurrency,
    costs,
    critical_paths,
    failures,
    flapping,
    gains,
    loads,
    schedules,
    tasks,
    workers,
    workflows,
)
from shoal.insight.jobs.rollups.loads import DayLoads
from shoal.insight.jobs.rows.parts import RowsPart
from shoal.insight.jobs.rows.transfer import joined, packed, unpacked
from shoal.insight.serving.results import RESULTS

_OfPart = Callable[[RowsPart, Days], pa.Table]


@dataclass(frozen=True)
class Inputs:
    """What jobs are made from: the parts of the rows, and the loads of days, in ``folder``."""

    context: SparkContext
    folder: Path
    parts: int
    days: Days

    def of_parts(self, compute: _OfPart, schema: pa.Schema) -> JobOutput:
        """Compute a result from each part by itself."""
        numbers = self.context.parallelize(range(self.parts), self.parts)
        return JobOutput(schema, numbers.flatMap(_ByPart(self.folder, self.days, compute)))

    def of_loads(self, compute: Callable[[DayLoads], pa.Table], schema: pa.Schema) -> JobOutput:
        """Compute a result from the loads of each day by itself."""
        days = [DayLoads(self.folder, number_of(day)) for day in self.days]
        numbers = self.context.parallelize(days, min(len(days), self.parts))
        return JobOutput(schema, numbers.flatMap(partial(_of_loads, compute)))

    def of_table(self, table: pa.Table) -> JobOutput:
        """Return a result that is small, and there already."""
        return JobOutput(table.schema, self.context.parallelize(list(by_day(0, table)), 1))

    def needed_loads(self, days: Days) -> pa.Table:
        """Return the loads of some days: hours and names, few rows."""
        of_days = [DayLoads(self.folder, number_of(day)).loads() for day in days]
        return joined([loads.LOADS.empty_table(), *of_days])

    @cached_property
    def fires(self) -> pa.Table:
        """The runs of schedules of four weeks."""
        numbers = self.context.parallelize(range(self.parts), self.parts)
        fired = numbers.map(_Packed(self.folder, self.days, schedules.fired)).collect()
        return joined(unpacked(content) for content in fired)


@dataclass(frozen=True)
class _ByPart:
    folder: Path
    days: Days
    compute: _OfPart

    def __call__(self, number: int) -> Iterator[tuple[int, tuple[int, bytes]]]:
        return by_day(number, self.compute(RowsPart(self.folder, number), self.days))


@dataclass(frozen=True)
class _Packed:
    folder: Path
    days: Days
    compute: _OfPart

    def __call__(self, number: int) -> bytes:
        return packed(self.compute(RowsPart(self.folder, number), self.days))


def _of_loads(
    compute: Callable[[DayLoads], pa.Table], day: DayLoads
) -> Iterator[tuple[int, tuple[int, bytes]]]:
    return by_day(0, compute(day))


@dataclass(frozen=True)
class DayReach:
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
class InsightJob:
    """A job. ``attempts``, ``instances``, ``loads``: which rows it needs; None: none.

    ``columns``: of the attempts. ``needs_all_loads``: not only what worker groups needed.
    ``goes_on``: what is late for a day changes the results of the days after it as well.
    """

    name: str
    compute: Callable[[Inputs], JobOutput]
    attempts: DayReach | None = None
    columns: Sequence[str] = ()
    instances: DayReach | None = None
    loads: DayReach | None = None
    needs_all_loads: bool = False
    goes_on: bool = False

    @property
    def is_served(self) -> bool:
        """Whether its result is loaded into the database."""
        return self.name in RESULTS

    @property
    def is_snapshot(self) -> bool:
        """Whether it has one result, as of the last of the days, instead of one for each day."""
        return self.is_served and RESULTS[self.name].is_snapshot

    def days(self, days: Days) -> Days:
        """Return the days of which there are results."""
        return days.up_to_last(1) if self.is_snapshot else days


_DAYS = DayReach()
_LAST_60 = DayReach(before=expectations.WINDOW_DAYS - 1, of_last=True)
_LAST_28 = DayReach(before=schedules.WINDOW_DAYS - 1, of_last=True)
#: Attempts of the runs that ended on the days; ``needed`` knows since when there are any.
OF_RUNS = DayReach(before=LONGEST_DAYS)
_AFTER = DayReach(after=LONGEST_DAYS)

_ALL = (
    InsightJob(
        "task_days",
        lambda on: on.of_parts(tasks.task_days, tasks.SCHEMA),
        attempts=_DAYS,
        columns=tasks.COLUMNS,
    ),
    InsightJob(
        "critical_paths",  # not served: a row for each task of each run is too much for a database
        lambda on: on.of_parts(critical_paths.critical_paths, critical_paths.SCHEMA),
        attempts=OF_RUNS,
        columns=critical_paths.COLUMNS,
        instances=_DAYS,
    ),
    InsightJob(
        "critical_days",
        lambda on: on.of_parts(gains.critical_days, gains.SCHEMA),
        attempts=OF_RUNS,
        columns=critical_paths.COLUMNS,
        instances=_DAYS,
    ),
    InsightJob(
        "workflow_days",
        lambda on: on.of_parts(workflows.workflow_days, workflows.SCHEMA),
        attempts=OF_RUNS,
        columns=critical_paths.COLUMNS,
        instances=_DAYS,
    ),
    InsightJob(
        "worker_days",
        lambda on: on.of_loads(workers.worker_days, workers.SCHEMA),
        attempts=_AFTER,
        columns=loads.COLUMNS,
        loads=_DAYS,
        needs_all_loads=True,
    ),
    InsightJob(
        "concurrency_hours",
        lambda on: on.of_loads(concurrency.concurrency_hours, concurrency.SCHEMA),
        attempts=_AFTER,
        columns=loads.COLUMNS,
        loads=_DAYS,
        needs_all_loads=True,
    ),
    InsightJob(
        "capacity",
        lambda on: on.of_table(capacity.capacity(on.needed_loads(_LAST_60.days(on.days)), on.days)),
        attempts=DayReach(before=capacity.WINDOW_DAYS - 1, after=LONGEST_DAYS, of_last=True),
        columns=loads.COLUMNS,
        loads=_LAST_60,
    ),
    InsightJob(
        "costs",
        lambda on: on.of_parts(costs.costs, costs.SCHEMA),
        attempts=_DAYS,
        columns=costs.COLUMNS,
        instances=_AFTER,
    ),
    InsightJob(
        "failures",
        lambda on: on.of_parts(failures.failures, failures.SCHEMA),
        attempts=DayReach(before=failures.WINDOW_DAYS - 1),
        columns=failures.COLUMNS,
        goes_on=True,
    ),
    InsightJob(
        "flapping",
        lambda on: on.of_parts(flapping.flapping, flapping.SCHEMA),
        attempts=_LAST_60,
        columns=flapping.COLUMNS,
    ),
    InsightJob(
        "baselines",
        lambda on: on.of_parts(expectations.baselines, expectations.SCHEMA),
        attempts=_LAST_60,
        columns=expectations.COLUMNS,
        instances=_LAST_60,
    ),
    InsightJob(
        "baseline_errors",
        lambda on: on.of_parts(expectations.baseline_errors, expectations.ERRORS_SCHEMA),
        instances=_LAST_60,
    ),
    InsightJob(
        "schedule_minutes",
        lambda on: on.of_table(schedules.schedule_minutes(on.fires, on.days)),
        instances=_LAST_28,
    ),
    InsightJob(
        "schedule_moves",
        lambda on: on.of_table(schedules.schedule_moves(on.fires, on.days)),
        instances=_LAST_28,
    ),
)
JOBS: Mapping[str, InsightJob] = {job.name: job for job in _ALL}


def chosen(names: Iterable[str] | None) -> list[InsightJob]:
    """Return the jobs of some names, in the order in which they share most. Raises UnknownJob."""
    wanted = set(JOBS if names is None else names)
    if unknown := wanted - JOBS.keys():
        raise UnknownJob(unknown, JOBS)
    return [job for job in _ALL if job.name in wanted]


def needed(
    reaches: Sequence[DayReach | None], days: Days, begun: date | None = None
) -> Days | None:
    """Return the days that hold all that is reached for; None: nothing is.

    ``begun``: when the first of the runs that ended on the days had begun, if that is known.
    """
    reached = [known_reach(reach, days, begun).days(days) for reach in reaches if reach is not None]
    if not reached:
        return None
    return Days(min(one.first for one in reached), max(one.last for one in reached))


def known_reach(reach: DayReach, days: Days, begun: date | None) -> DayReach:
    """Return how far a job looks, now that it is known when the first of the runs had begun."""
    if reach is not OF_RUNS or begun is None:
        return reach
    return DayReach(before=min(max((days.first - begun).days, 0), LONGEST_DAYS))
