"""Days that were computed already, and about which the history has learned something since.

A row may be exported after its day was computed: of an attempt that ended while the exporter was
behind, or of a run that went on after its end. An attempt that crosses midnight is known only after
its end, and counts in the hours before it as well. So each new row asks for the day of its end, and
jobs that look at more than that for all days that it touches (``ChangedDays``).

How far a job has looked is beside its results, in ``<job>/looked.json``.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Self

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shoal.core.untrusted import read_json
from shoal.insight.history.tables import ATTEMPTS, INSTANCES, HistoryTable
from shoal.insight.jobs.catalogue import InsightJob
from shoal.insight.jobs.days import LONGEST_DAYS, Days
from shoal.insight.jobs.errors import MissingFile
from shoal.insight.jobs.output import Staging
from shoal.insight.jobs.source import SourceFile, files_of

#: Ranges of days with no more days between them are one: Spark's start costs more than a few days.
_TOGETHER_DAYS = 3
_NEWEST_FILES = 10
_SINCE: dict[HistoryTable, Sequence[str]] = {
    ATTEMPTS: ("queued_at", "started_at"),
    INSTANCES: ("created_at",),
}


@dataclass(frozen=True)
class Look:
    """How far the history was looked at: up to this export, this event id and this day."""

    exports: int
    event: int
    day: date

    @classmethod
    def now(cls, files: Sequence[SourceFile], day: date) -> Self:
        """Return how far the history goes, for days up to ``day``. Raises MissingFile."""
        newest = sorted(_of_runs(files), key=lambda one: one.exported)[-_NEWEST_FILES:]
        return cls(
            max((one.exported for one in files), default=0),
            max((_newest_event(one) for one in newest), default=0),
            day,
        )

    def to_json(self) -> bytes:
        """Return what ``from_json`` reads."""
        return json.dumps(asdict(self) | {"day": self.day.isoformat()}).encode()

    @classmethod
    def from_json(cls, stored: bytes) -> Self:
        """Build it from what ``to_json`` made. Raises ValueError, TypeError, KeyError."""
        found = read_json(stored)
        return cls(**{**found, "day": date.fromisoformat(found["day"])})


@dataclass(frozen=True)
class ChangedDays:
    """Days that rows are about which came after a look.

    ``ended``: attempts ended on them; ``worked``: attempts were there, from the queue to the end;
    ``went_on``: runs were there, from their creation to the end.
    """

    ended: Collection[date] = ()
    worked: Collection[date] = ()
    went_on: Collection[date] = ()

    def of(self, job: InsightJob) -> set[date]:
        """Return the days of which a job's result may be another one now.

        An attempt never changes after its end, so it counts on that day, and in loads on all days.
        A run counts on all days: attempts of each have its labels, and one of them may be that of
        an end which it had before.
        """
        found = set(self.ended)
        if job.loads is not None:
            found.update(self.worked)
        if job.instances is not None:
            found.update(self.went_on)
        return found


@dataclass(frozen=True)
class LateRange:
    """Days that are computed together, and which of them each job needs; the others need none."""

    days: Days
    by_job: Mapping[str, Days]


@dataclass(frozen=True)
class LateWork:
    """Ranges of days that are to be computed, and how far was looked by that; None: not at all."""

    ranges: Sequence[LateRange]
    look: Look | None


def work_of(
    files: Sequence[SourceFile], out: str, jobs: Sequence[InsightJob], asked: Days
) -> LateWork:
    """Return the days that are asked for, last, and before them those that rows have come for.

    ``jobs``: those with a result for each day. Days that are older than those of the last look are
    computed alone: what has come for the days behind them is the matter of another run. Raises
    MissingFile.
    """
    last = _last_look(out, [job.name for job in jobs])
    if last is not None and last.day > datetime.now(UTC).date() + timedelta(days=1):
        last = None  # a run while the clock was ahead
    alone = [LateRange(asked, {job.name: asked for job in jobs})]
    if last is not None and asked.last < last.day:
        return LateWork(alone, None)
    look = Look.now(files, asked.last)
    if last is None or last.exports > look.exports:  # never before, or it is another history
        return LateWork(alone, look)
    return LateWork(divided(asked, changed_days(files, last, asked), jobs), look)


def divided(asked: Days, changed: ChangedDays, jobs: Sequence[InsightJob]) -> list[LateRange]:
    """Return the days that are asked for, last, and what has changed before them, by job."""
    wanted: dict[str, set[date]] = {}
    for job in jobs:
        days = changed.of(job)
        if job.goes_on and days:
            days.update(Days(min(*days, asked.last), asked.last))
        wanted[job.name] = {*days, *asked}
    found = []
    for days_together in ranges(asked, set().union(*wanted.values())):
        of_job = {
            name: [day for day in days if day in days_together] for name, days in wanted.items()
        }
        by_job = {name: Days(min(days), max(days)) for name, days in of_job.items() if days}
        found.append(LateRange(days_together, by_job))
    return found


def remember(staging: Staging, jobs: Collection[str], look: Look) -> None:
    """Store how far these jobs have looked."""
    for job in jobs:
        staging.publish_bytes(look.to_json(), _place(job))


def _last_look(out: str, jobs: Collection[str]) -> Look | None:
    """Return how far all of these jobs have looked; None: one of them has not yet."""
    looks = []
    fs, root = fsspec.core.url_to_fs(out)
    for job in jobs:
        try:
            looks.append(Look.from_json(fs.cat_file(f"{root}/{_place(job)}")))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None
    if not looks:
        return None
    return Look(
        min(one.exports for one in looks),
        min(one.event for one in looks),
        min(one.day for one in looks),
    )


def changed_days(files: Sequence[SourceFile], look: Look, asked: Days) -> ChangedDays:
    """Return the days that rows which came after ``look`` are about, up to the last one asked for.

    Days behind that of the look were not computed, so all rows count for them. Of earlier days
    those within 31 days. Raises MissingFile.
    """
    bounds = asked.widened(before=LONGEST_DAYS)
    reach = bounds.widened(after=LONGEST_DAYS)
    ended: set[date] = set()
    touched: dict[str, set[date]] = {table.name: set() for table in _SINCE}
    for one in _of_runs(files):
        is_new = one.day in reach and _has_come_since(one, look)
        if not is_new and (one.day not in reach or one.day <= look.day):
            continue
        # A file of a day that was computed may have been joined with what came since.
        is_joined = one.since <= look.exports and one.day <= look.day
        first = _first_touched(one, look.event if is_joined else 0)
        days = {day for day in Days(first, one.day) if is_new or day > look.day}
        touched[one.table] |= days
        if one.table == ATTEMPTS.name:
            ended.add(one.day)
    worked, went_on = (
        {day for day in touched[table.name] if day in bounds} for table in (ATTEMPTS, INSTANCES)
    )
    return ChangedDays({day for day in ended if day in bounds}, worked, went_on)


def ranges(asked: Days, changed: Collection[date]) -> list[Days]:
    """Return the days that are asked for, last, and what has changed before them, in few ranges."""
    found: list[Days] = []
    for day in sorted({*(one for one in changed if one < asked.first), asked.first}):
        if found and (day - found[-1].last).days <= _TOGETHER_DAYS:
            found[-1] = Days(found[-1].first, day)
        else:
            found.append(Days(day, day))
    found[-1] = Days(found[-1].first, asked.last)
    return found


def _of_runs(files: Sequence[SourceFile]) -> Iterator[SourceFile]:
    for table in _SINCE:
        yield from files_of(files, table.name)


def _has_come_since(one: SourceFile, look: Look) -> bool:
    """Whether a file has rows of later exports. One that was joined may have earlier ones alone."""
    if one.exported <= look.exports:
        return False
    return one.since > look.exports or _newest_event(one) >= look.event


def _newest_event(one: SourceFile) -> int:
    return int(pc.max(_read(one, ["event_id"])["event_id"]).as_py() or 0)


def _first_touched(one: SourceFile, event: int) -> date:
    """Return the first of the days on which something of a file was there; at most its own.

    Rows before an event do not count: they were seen.
    """
    [columns] = [names for table, names in _SINCE.items() if table.name == one.table]
    table = _read(one, [*columns, "event_id"])
    table = table.filter(pc.greater_equal(table["event_id"], event))
    earliest = [pc.min(table[name]).as_py() for name in columns]
    days = [at.astimezone(UTC).date() for at in earliest if at is not None]
    first: date = min([*days, one.day])
    earliest_day = date.fromordinal(max(one.day.toordinal() - 2 * LONGEST_DAYS, 1))
    return max(first, earliest_day)


def _read(one: SourceFile, columns: Sequence[str]) -> pa.Table:
    try:
        with fsspec.open(one.url, "rb") as file:
            return pq.read_table(file, columns=list(columns))
    except FileNotFoundError as error:
        raise MissingFile(one.url.removeprefix("file://")) from error


def _place(job: str) -> str:
    return f"{job}/looked.json"
