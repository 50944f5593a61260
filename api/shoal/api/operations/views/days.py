"""The days of a workflow's calendar, a page at a time."""

import asyncio
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from shoal.api.operations.authoring.timetables import days_of, timetable_of
from shoal.api.operations.views.calendar import Day, Expected, days, start_of
from shoal.core.runs.records import Workflow
from shoal.core.schedule.fire_times import GRACE
from shoal.sql import UnitOfWork

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
    workflow: Workflow,
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


async def _expected(uow: UnitOfWork, workflow_id: int) -> list[Expected]:
    """Return the schedules that fire, each with the time from which on that is known."""
    found = await uow.schedules.of_id(workflow_id)
    left_out = await days_of(uow, found)
    kept_since = await uow.grid.kept_since(workflow_id)
    expected = []
    for one in found:
        timetable = timetable_of(one, left_out)
        if timetable and one.enabled and not one.paused_at and one.expected_since:
            since = one.expected_since
            expected.append(Expected(timetable, max(since, kept_since) if kept_since else since))
    return expected
