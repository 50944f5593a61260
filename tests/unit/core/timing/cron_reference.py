"""A second, slow and simple opinion on when a cron schedule fires.

It shares no code with the product: it walks through every minute or second in UTC, looks at the
wall clock, and compares it with plain sets of values.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

ALL_WEEKDAYS = frozenset(range(7))


@dataclass(frozen=True)
class Fields:
    """An expression and what it means, written down side by side. Weekdays: Sunday = 0."""

    text: str
    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    is_interval: bool

    def match(self, wall: datetime) -> bool:
        by_day = wall.day in self.days
        by_weekday = wall.isoweekday() % 7 in self.weekdays
        return (
            wall.second in self.seconds
            and wall.minute in self.minutes
            and wall.hour in self.hours
            and wall.month in self.months
            and ((by_day or by_weekday) if self.either_day else (by_day and by_weekday))
        )


def walk(
    fields: Fields,
    zone: ZoneInfo,
    start: datetime,
    end: datetime,
    step: timedelta,
    *,
    on_gap: str | None,
    on_overlap: str | None,
) -> list[datetime]:
    """Every fire time in [start, end), in UTC, ``step`` being one second or one minute."""
    gap = on_gap or ("skip" if fields.is_interval else "shift")
    overlap = on_overlap or ("both" if fields.is_interval else "first")
    fires: list[datetime] = []
    shown: datetime | None = None  # the wall clock one step ago
    now = start - step
    while now < end:
        local = now.astimezone(zone)
        wall = local.replace(tzinfo=None, fold=0)
        if shown is not None:
            skipped = _between(shown + step, wall, step) if wall > shown + step else []
            shifted = gap == "shift" and any(fields.match(one) for one in skipped)
            if shifted or (fields.match(wall) and _pass_counts(local, overlap)):
                fires.append(now)
        shown = wall
        now += step
    return fires


def _pass_counts(local: datetime, overlap: str) -> bool:
    twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    return not twice or overlap == "both" or (overlap == "first") == (local.fold == 0)


def _between(start: datetime, end: datetime, step: timedelta) -> Iterable[datetime]:
    while start < end:
        yield start
        start += step


def clock_changes(zone: ZoneInfo, first_year: int, last_year: int) -> list[datetime]:
    """The instants at which the zone's offset changes, to the minute, in UTC."""
    changes: list[datetime] = []
    step = timedelta(days=7)  # Ramadan takes four weeks off summer time: two changes
    now, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC)
    before = now.astimezone(zone).utcoffset()
    while now < end:
        after = (now + step).astimezone(zone).utcoffset()
        if after != before:
            low, high = now, now + step
            while high - low > timedelta(minutes=1):
                middle = low + timedelta(minutes=(high - low) // timedelta(minutes=2))
                if middle.astimezone(zone).utcoffset() == before:
                    low = middle
                else:
                    high = middle
            changes.append(high)
        before, now = after, now + step
    return changes


def weekday_of(day: date) -> int:
    """Sunday = 1 … Saturday = 7, as Quartz counts."""
    return day.isoweekday() % 7 + 1
