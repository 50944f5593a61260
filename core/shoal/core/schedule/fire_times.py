"""The fire times of one schedule: its cron within a validity, without the days left out.

``due`` says which of them fire now. A fire time more than ``GRACE`` late was *missed*, and the
schedule's policy decides about it; one that is not so late fires under every policy, so a busy
master drops nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Self
from zoneinfo import ZoneInfo

from shoal.core.definition.model import Missed, ScheduleSpec
from shoal.core.runs.records import StoredSchedule
from shoal.core.timing import wallclock
from shoal.core.timing.cron import expression
from shoal.core.timing.cron.expression import Cron

GRACE = timedelta(seconds=60)

_DAY = timedelta(days=1)
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Timetable:
    """The times of ``cron`` from ``start`` (included) to ``end`` (not included).

    Days in ``excluded``, as the wall clock of the cron's zone counts them, have none. Fire times
    carry the zone, as those of ``cron`` do; bounds are aware.
    """

    cron: Cron
    start: datetime | None = None
    end: datetime | None = None
    excluded: frozenset[date] = frozenset()

    @classmethod
    def of(cls, schedule: StoredSchedule, calendar: Iterable[date] = ()) -> Self:
        """Return the timetable of a stored schedule; ``calendar``: the days of its calendar.

        Raises InvalidCron if this installation cannot read it (unknown zone, for example).
        """
        parsed = expression.parse(
            schedule.cron,
            schedule.timezone,
            on_gap=schedule.on_gap,
            on_overlap=schedule.on_overlap,
        )
        excluded = frozenset(schedule.exclude).union(calendar)
        return cls(parsed, schedule.starts_at, schedule.ends_at, excluded)

    @classmethod
    def defined(cls, spec: ScheduleSpec, timezone: str, calendar: Iterable[date] = ()) -> Self:
        """Return the timetable of a definition's schedule; ``timezone``: the workflow's."""
        zone = spec.timezone or timezone
        parsed = expression.parse(spec.cron, zone, on_gap=spec.on_gap, on_overlap=spec.on_overlap)
        excluded = frozenset(spec.exclude).union(calendar)
        return cls(parsed, instant(spec.start, zone), instant(spec.end, zone), excluded)

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire time strictly after ``after``; None if there is none."""
        after = _utc(after)
        if self.start is not None and after < self.start:
            after = self.start - _MOMENT
        found = self.cron.next(after)
        while found is not None and (self.end is None or _utc(found) < self.end):
            if found.date() not in self.excluded:
                return found
            found = self.cron.next(self._end_of_excluded(found) - _MOMENT)
        return None

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire time strictly before ``before``; None if there is none."""
        before = _utc(before)
        if self.end is not None and before > self.end:
            before = self.end
        found = self.cron.previous(before)
        while found is not None and (self.start is None or _utc(found) >= self.start):
            if found.date() not in self.excluded:
                return found
            found = self.cron.previous(self._start_of_excluded(found))
        return None

    def upcoming(self, after: datetime, count: int) -> list[datetime]:
        """Return the next ``count`` fire times after ``after``, fewer if there are no more."""
        return list(islice(self._after(after), count))

    def between(self, start: datetime, end: datetime) -> Iterable[datetime]:
        """Yield the fire times from ``start`` (included) to ``end`` (not included)."""
        for found in self._after(start - _MOMENT):
            if _utc(found) >= end:
                return
            yield found

    def admits(self, moment: datetime) -> bool:
        """Return whether ``moment`` is within the validity and on a day that is not left out."""
        return (
            (self.start is None or _utc(moment) >= self.start)
            and (self.end is None or _utc(moment) < self.end)
            and moment.astimezone(self.zone).date() not in self.excluded
        )

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.cron.timezone)

    def _after(self, moment: datetime) -> Iterable[datetime]:
        found = self.next(moment)
        while found is not None:
            yield found
            found = self.next(found)

    def _end_of_excluded(self, moment: datetime) -> datetime:
        """Return the first instant behind ``moment`` of a day that is not left out, in UTC.

        Where the clock goes back over midnight the day before comes a second time, and so does
        the start of the day: then it is the second one if ``moment`` is behind the first.
        """
        day = moment.date()
        while day in self.excluded:
            day += _DAY
        first, second = self._starts_of(day)
        return first if first > _utc(moment) else second

    def _start_of_excluded(self, moment: datetime) -> datetime:
        """Return the first of the instants in a row up to ``moment`` on days left out, in UTC."""
        wall = moment.replace(tzinfo=None, fold=0)
        change = wallclock.change_at(wall, self.zone)
        if change is not None and moment.fold and change.end.date() > wall.date():
            return change.instant  # the second time of this evening; the day behind it was before
        day = wall.date()
        while day - _DAY in self.excluded:
            day -= _DAY
        first, second = self._starts_of(day)
        return second if second <= _utc(moment) else first

    def _starts_of(self, day: date) -> tuple[datetime, datetime]:
        """Return when ``day`` begins, in both passes if the clock shows its midnight twice."""
        midnight = datetime(day.year, day.month, day.day)
        first = _utc(wallclock.first_instant_from(midnight, self.zone))
        change = wallclock.change_at(midnight, self.zone)
        if change is None or change.is_gap:
            return first, first
        return first, _utc(wallclock.at(midnight, self.zone, fold=1))


@dataclass(frozen=True, slots=True)
class DueFires:
    """``fires``: what fires now, ascending; ``next``: the first fire time behind those.

    ``next`` may lie in the past: there was more than one round may fire. ``passed_over``: fire
    times were missed that do not fire.
    """

    fires: tuple[datetime, ...]
    next: datetime | None
    passed_over: bool


def due(
    timetable: Timetable,
    planned: datetime,
    now: datetime,
    policy: Missed = Missed.LAST,
    window: timedelta | None = None,
    limit: int = 1_000,
) -> DueFires:
    """Return what fires at ``now`` of the times from ``planned`` on, at most ``limit``.

    ``planned`` itself was computed earlier. It fires although the timetable does not contain it
    (the zone's rules or the expression may have changed since), unless its day is left out or it
    is no longer valid. ``window``: how old a missed fire time may be; None means any age.
    """
    planned, now = _utc(planned), _utc(now)
    start = _first_to_fire(timetable, planned, now, policy, window)
    found = _first_from(timetable, planned, start)
    fires: list[datetime] = []
    while found is not None and _utc(found) <= now and len(fires) < limit:
        fires.append(found)
        found = timetable.next(found)
    earliest = _first_from(timetable, planned, planned)
    first = fires[0] if fires else found
    passed_over = earliest is not None and (first is None or _utc(earliest) < _utc(first))
    return DueFires(tuple(fires), found, passed_over)


def instant(moment: datetime | None, timezone: str) -> datetime | None:
    """Return ``moment`` in UTC; without an offset it is what a clock in ``timezone`` shows.

    Of a time that happens twice it is the first, of one that is skipped the end of the gap.
    """
    if moment is None:
        return None
    if wallclock.is_aware(moment):
        return _utc(moment)
    return _utc(wallclock.first_instant_from(moment, ZoneInfo(timezone)))


def _first_to_fire(
    timetable: Timetable,
    planned: datetime,
    now: datetime,
    policy: Missed,
    window: timedelta | None,
) -> datetime:
    """Return the instant from which on everything fires; ``planned`` or later."""
    timely = now - GRACE
    if planned >= timely:
        return planned
    oldest = planned if window is None else max(planned, min(timely, now - window))
    match policy:
        case Missed.ALL:
            return oldest
        case Missed.SKIP:
            return timely
        case Missed.LAST:
            newest = timetable.previous(timely)
            last = planned if newest is None else max(planned, _utc(newest))
            return last if last >= oldest else timely


def _first_from(timetable: Timetable, planned: datetime, start: datetime) -> datetime | None:
    """Return the first fire time from ``start`` on, ``planned`` taken for one."""
    if start == planned and timetable.admits(planned):
        return planned.astimezone(timetable.zone)
    return timetable.next(max(planned, start - _MOMENT))


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
