"""The days of a calendar: how the runs for each went, and which fire times have none."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from shoal.api.operations.authoring.timetables import days_of, timetable_of
from shoal.core.runs.records import StoredWorkflow
from shoal.core.runs.states import WorkflowState
from shoal.core.schedule.fire_times import GRACE, Timetable
from shoal.core.timing import wallclock
from shoal.sql import UnitOfWork

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class ExpectedSchedule:
    """A schedule that has had to fire from ``since`` on."""

    timetable: Timetable
    since: datetime


@dataclass
class Day:
    """One day. ``states``: of the newest run for each logical time. ``is_more``: and perhaps more.

    ``missing``: fire times of the schedules as they are now for which there is no run.
    """

    date: date
    states: dict[WorkflowState, int] = field(default_factory=dict)
    missing: int = 0
    is_more: bool = False


def start_of(day: date, zone: ZoneInfo) -> datetime:
    """Return the first instant of a day, in UTC."""
    midnight = datetime(day.year, day.month, day.day)
    return wallclock.first_instant_from(midnight, zone).astimezone(UTC)


def days(
    first: date,
    last: date,
    zone: ZoneInfo,
    newest: Mapping[datetime, WorkflowState],
    schedules: Sequence[ExpectedSchedule],
    until: datetime,
    most_fires: int,
) -> Iterator[Day]:
    """Yield the days from ``first`` to ``last``, as many as ``most_fires`` fire times allow.

    ``newest``: the states of the newest runs by logical time. Fire times before ``until`` count. A
    day that has more of them than are left is not yielded, unless it is the first one.
    """
    by_day: dict[date, Day] = {}
    for moment, state in newest.items():
        day = moment.astimezone(zone).date()
        states = by_day.setdefault(day, Day(day)).states
        states[state] = states.get(state, 0) + 1
    left, current = most_fires, first
    while current <= last:
        found = by_day.get(current, Day(current))
        end = min(start_of(current + _DAY, zone), until)
        fires = list(islice(_fires(schedules, start_of(current, zone), end), left + 1))
        left -= len(fires)
        if left < 0 and current > first:
            return
        found.is_more = left < 0
        found.missing = len(set(fires) - newest.keys())
        yield found
        if left < 0:
            return
        current += _DAY


def _fires(
    schedules: Iterable[ExpectedSchedule], start: datetime, end: datetime
) -> Iterator[datetime]:
    for one in schedules:
        for fire in one.timetable.between(max(start, one.since), end):
            yield fire.astimezone(UTC)


MOST_RUNS = 20_000  # of one page
MOST_FIRES = 10_000
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class DaysPage:
    """Days, and the one to go on with; None: that was the last one."""

    days: list[Day]
    next: date | None


async def page_of_days(
    uow: UnitOfWork,
    workflow: StoredWorkflow,
    first: date,
    last: date,
    zone: ZoneInfo,
    now: datetime,
) -> DaysPage:
    """Return the days from ``first`` to ``last``, as far as one page reads."""
    start, end = start_of(first, zone), start_of(last + _DAY, zone)
    newest, is_all = await uow.grid.newest(workflow.id, start, end, MOST_RUNS)
    is_cut = False
    if not is_all:  # the last day read may have more: it is left to the next page
        latest = max(newest, default=start).astimezone(zone).date()
        is_cut = latest <= first
        last = max(first, latest - _DAY)
        newest = {m: s for m, s in newest.items() if m.astimezone(zone).date() <= last}
    schedules = [] if workflow.archived_at else await _expected(uow, workflow.id)
    made = await asyncio.to_thread(
        lambda: list(days(first, last, zone, newest, schedules, now - GRACE, MOST_FIRES))
    )
    if is_cut:
        made[0].is_more = True
    reached = made[-1].date + _DAY
    return DaysPage(made, reached if start_of(reached, zone) < end else None)


async def _expected(uow: UnitOfWork, workflow_id: int) -> list[ExpectedSchedule]:
    """Return the schedules that fire, each with the time from which on that is known."""
    found = await uow.schedules.of_id(workflow_id)
    left_out = await days_of(uow, found)
    kept_since = await uow.grid.kept_since(workflow_id)
    expected = []
    for one in found:
        timetable = timetable_of(one, left_out)
        if timetable and one.enabled and not one.paused_at and one.expected_since:
            since = one.expected_since
            expected.append(
                ExpectedSchedule(timetable, max(since, kept_since) if kept_since else since)
            )
    return expected
