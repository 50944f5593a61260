"""The wall-clock times that a cron expression means, searched field by field.

Nothing here knows of time zones: the days are 24 hours long and no time is skipped or repeated.
A search jumps from year to month to day to time of day and never counts seconds, so an
impossible date is known to be impossible after one check of its months.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from shoal.core.timing.cron.days import DayRule

FIRST_YEAR, LAST_YEAR = 1970, 2199
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Ascending values per field; ``is_interval`` says whether a time field has ``* / -``."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: DayRule
    months: tuple[int, ...]
    years: tuple[int, ...]
    is_interval: bool

    def contains(self, wall: datetime) -> bool:
        return (
            wall.second in self.seconds
            and wall.minute in self.minutes
            and wall.hour in self.hours
            and wall.month in self.months
            and wall.year in self.years
            and wall.day in self.days.days(wall.year, wall.month)
        )

    def at_or_after(self, wall: datetime) -> datetime | None:
        """Return the first time of the pattern from ``wall`` on (naive, whole seconds)."""
        day = self._day_from(wall.date())
        if day == wall.date():
            found = _ceiling(self._clock, (wall.hour, wall.minute, wall.second))
            if found is not None:
                return _at_clock(day, found)
            day = self._day_from(day + _DAY)
        if day is None:
            return None
        return _at_clock(day, [column[0] for column in self._clock])

    def at_or_before(self, wall: datetime) -> datetime | None:
        """Return the last time of the pattern up to ``wall`` (naive, whole seconds)."""
        day = self._day_until(wall.date())
        if day == wall.date():
            found = _floor(self._clock, (wall.hour, wall.minute, wall.second))
            if found is not None:
                return _at_clock(day, found)
            day = self._day_until(day - _DAY)
        if day is None:
            return None
        return _at_clock(day, [column[-1] for column in self._clock])

    @property
    def _clock(self) -> tuple[tuple[int, ...], ...]:
        return self.hours, self.minutes, self.seconds

    @property
    def _calendar(self) -> tuple[tuple[int, ...], ...]:
        return self.years, self.months

    def _day_from(self, start: date) -> date | None:
        month = _ceiling(self._calendar, (start.year, start.month))
        while month is not None:
            days = self.days.days(month[0], month[1])
            first = start.day if month == (start.year, start.month) else 1
            if (position := bisect_left(days, first)) < len(days):
                return date(month[0], month[1], days[position])
            month = _ceiling(self._calendar, (month[0], month[1] + 1))
        return None

    def _day_until(self, end: date) -> date | None:
        month = _floor(self._calendar, (end.year, end.month))
        while month is not None:
            days = self.days.days(month[0], month[1])
            last = end.day if month == (end.year, end.month) else 31
            if (position := bisect_right(days, last)) > 0:
                return date(month[0], month[1], days[position - 1])
            month = _floor(self._calendar, (month[0], month[1] - 1))
        return None


def _at_clock(day: date, clock: Sequence[int]) -> datetime:
    hour, minute, second = clock
    return datetime.combine(day, time(hour, minute, second))


def _ceiling(columns: Sequence[Sequence[int]], value: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the smallest tuple with one item of each column that is >= ``value``."""
    if not columns:
        return ()
    column, rest = columns[0], columns[1:]
    position = bisect_left(column, value[0])
    if position < len(column) and column[position] == value[0]:
        tail = _ceiling(rest, value[1:])
        if tail is not None:
            return value[0], *tail
        position += 1
    if position == len(column):
        return None
    return column[position], *(other[0] for other in rest)


def _floor(columns: Sequence[Sequence[int]], value: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the largest tuple with one item of each column that is <= ``value``."""
    if not columns:
        return ()
    column, rest = columns[0], columns[1:]
    position = bisect_right(column, value[0]) - 1
    if position >= 0 and column[position] == value[0]:
        tail = _floor(rest, value[1:])
        if tail is not None:
            return value[0], *tail
        position -= 1
    if position < 0:
        return None
    return column[position], *(other[-1] for other in rest)
