"""Which files of the history some jobs need, and which columns of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from shoal.insight.history.tables import ATTEMPTS, INSTANCES, HistoryTable
from shoal.insight.jobs.catalogue import OF_RUNS, InsightJob, known_reach, needed
from shoal.insight.jobs.columns import end_us
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.rows.chunks import ColumnSelection
from shoal.insight.jobs.source import SourceFile, files_of, first_begun

_UNUSED = ("exit_code", "forced", "priority", "backfill_id", "parent_instance_id", "deadline_at")
#: Of each attempt, whatever is computed.
_ALWAYS = ("attempt_id", "instance_id", "project", "workflow", "version", "finished_at", "event_id")


@dataclass(frozen=True)
class JobNeeds:
    """Which files, days and columns the jobs need."""

    all_files: Sequence[SourceFile]
    jobs: Sequence[InsightJob]
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
    def files(self) -> Sequence[SourceFile]:
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

    @cached_property
    def rows(self) -> int:
        """How many rows are prepared of the larger of both tables, but for what ended later."""
        near = [one for one in self.files if one.day <= self.days.last]
        tables = (ATTEMPTS.name, INSTANCES.name)
        return max(sum(one.rows for one in files_of(near, table)) for table in tables)

    def selection(self, file: SourceFile) -> ColumnSelection:
        """Return what is needed of a file: fewer columns of days to look back at."""
        if file.table == INSTANCES.name:
            names = (one.name for one in INSTANCES.columns)
            return ColumnSelection(tuple(name for name in names if name not in _UNUSED))
        found = set(_ALWAYS)
        for job in self.jobs:
            if job.attempts is None:
                continue
            reach = known_reach(job.attempts, self.days, self.begun)
            if file.day in reach.days(self.days):
                found.update(job.columns)
        columns = tuple(one.name for one in ATTEMPTS.columns if one.name in found)
        is_later = file.day > self.days.last
        return ColumnSelection(columns, end_us(self.days.last) if is_later else None)

    def superseding(self, table: HistoryTable) -> list[SourceFile]:
        """Return the files of a table that are needed, and those that may supersede their rows.

        A row is superseded by what was exported with it or later, of whatever day that is.
        """
        since = min((one.since for one in files_of(self.files, table.name)), default=None)
        if since is None:
            return []
        return [one for one in files_of(self.all_files, table.name) if one.exported >= since]
