"""The intervals that a DEPENDENT task's date value means.

An item of a DEPENDENT task is satisfied if every interval holds a suitable run.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice, takewhile

from shoal.core.errors import ShoalError
from shoal.core.timing.wallclock import SECOND, at, change_at, first_instant_from, is_aware

Interval = tuple[datetime, datetime]
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class UnknownDateValue(ShoalError, ValueError):
    """A date value that no cycle has."""

    def __init__(self, value: str) -> None:
        self.value = value
        known = "; ".join(f"{cycle}: {', '.join(values)}" for cycle, values in CYCLES.items())
        super().__init__(f"date value {value!r} is unknown; known are {known}")


class DateOutOfRange(ShoalError, OverflowError):
    """The intervals of a date value lie outside the years 1 to 9999."""

    def __init__(self, value: str, base: datetime) -> None:
        self.value, self.base = value, base
        super().__init__(
            f"the date value {value!r} of {base.isoformat()} lies outside the years 1 to 9999"
        )


def intervals(value: str, base: datetime) -> list[Interval]:
    """Return the intervals of ``value`` around ``base``, the oldest first.

    Intervals are closed, of whole seconds, and in the zone of ``base``, on whose calendar all is
    reckoned: a day lasts from its first to its last second even if it has 23 or 25 hours, a
    day that a zone leaves out does not exist, an hour that happens twice is two hours.

    - ``currentHour``, ``today``: the whole hour, day of the base.
    - ``last1Hour`` … ``last3Hours``, ``last1Days`` … ``last7Days``: the N hours, days before
      that of the base, one interval each.
    - ``last24Hours`` does **not** slide: it is the hours from yesterday 01:00 up to the one that
      starts today at 00:00, whatever the hour of the base.
    - ``thisWeek``, ``thisMonth``: each day from Monday, the first, up to the day of the base.
    - ``lastWeek``, ``lastMonth``: each day of the week (Monday to Sunday), the month before.
    - ``lastMonday`` … ``lastSunday``: that day of the week before, not the most recent one.
    - ``thisMonthBegin``, ``thisMonthEnd``, ``lastMonthBegin``, ``lastMonthEnd``: the first, the
      last day of the month; ``thisMonthEnd`` may lie ahead.

    Python compares two datetimes of one zone by the wall clock: compare bounds with other times
    after ``astimezone(UTC)``. Raises UnknownDateValue, DateOutOfRange.
    """
    find = _VALUES.get(value)
    if find is None:
        raise UnknownDateValue(value)
    try:
        if is_aware(base):
            return find(base)
        # A base without a zone is a clock that never jumps, as is UTC.
        found = find(base.replace(tzinfo=UTC, fold=0))
    except (OverflowError, ValueError):
        raise DateOutOfRange(value, base) from None
    return [(start.replace(tzinfo=None), end.replace(tzinfo=None)) for start, end in found]


def check(value: str) -> None:
    """Raise UnknownDateValue unless ``value`` is a date value."""
    if value not in _VALUES:
        raise UnknownDateValue(value)


def _until(start: datetime, end: datetime) -> Interval:
    """Return the closed interval from ``start`` to the second before ``end``."""
    return start, _second_before(end)


def _second_before(moment: datetime) -> datetime:
    return (moment.astimezone(UTC) - SECOND).astimezone(moment.tzinfo)


def _first_instant(base: datetime, day: date, hour: int = 0) -> datetime:
    return first_instant_from(datetime.combine(day, time(hour)), _zone(base))


def _zone(base: datetime) -> tzinfo:
    return base.tzinfo or UTC


def _day(base: datetime, day: date) -> list[Interval]:
    start, end = _first_instant(base, day), _first_instant(base, day + _DAY)
    return [] if start == end else [_until(start, end)]  # equal: the zone left the day out


def _days(base: datetime, first: date, last: date) -> list[Interval]:
    count = (last - first).days + 1
    return [one for step in range(count) for one in _day(base, first + step * _DAY)]


def _hour_start(moment: datetime) -> datetime:
    """Return the start of the clock hour around ``moment``, in the same pass if it repeats."""
    wall = moment.replace(minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
    change = change_at(wall, _zone(moment))
    if change is not None and not change.is_gap:
        return at(wall, _zone(moment), moment.fold)
    return first_instant_from(wall, _zone(moment))


def _hour_end(moment: datetime) -> datetime:
    """Return the first instant behind the clock hour around ``moment``."""
    wall = moment.replace(minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
    change = change_at(wall, _zone(moment))
    if change is not None and not change.is_gap and moment.fold == 0:
        return change.instant.astimezone(moment.tzinfo)  # the second pass begins
    return first_instant_from(wall + _HOUR, _zone(moment))


def _current_hour(base: datetime) -> list[Interval]:
    return [_until(_hour_start(base), _hour_end(base))]


def _hours_before(moment: datetime) -> Iterator[Interval]:
    """Yield the clock hours before that of ``moment``, the latest first."""
    start = _hour_start(moment)
    while True:
        end, start = start, _hour_start(_second_before(start))
        yield _until(start, end)


def _last_hours(count: int) -> Callable[[datetime], list[Interval]]:
    return lambda base: list(islice(_hours_before(base), count))[::-1]


def _last_24_hours(base: datetime) -> list[Interval]:
    midnight = _first_instant(base, base.date())
    earliest = _first_instant(base, base.date() - _DAY, hour=1).astimezone(UTC)
    hours = takewhile(lambda hour: hour[0].astimezone(UTC) >= earliest, _hours_before(midnight))
    return [*list(hours)[::-1], *_current_hour(midnight)]


def _last_days(count: int) -> Callable[[datetime], list[Interval]]:
    def find(base: datetime) -> list[Interval]:
        found: list[Interval] = []
        day = base.date()
        while len(found) < count:
            day -= _DAY
            found = _day(base, day) + found
        return found

    return find


def _monday(base: datetime) -> date:
    return base.date() - base.weekday() * _DAY


def _first(base: datetime) -> date:
    return base.date().replace(day=1)


def _next_first(first: date) -> date:
    return (first + 31 * _DAY).replace(day=1)


def _previous_first(base: datetime) -> date:
    return (_first(base) - _DAY).replace(day=1)


def _weekday_before(weekday: int) -> Callable[[datetime], list[Interval]]:
    return lambda base: _day(base, _monday(base) + (weekday - 7) * _DAY)


_VALUES: Mapping[str, Callable[[datetime], list[Interval]]] = {
    "currentHour": _current_hour,
    "last1Hour": _last_hours(1),
    "last2Hours": _last_hours(2),
    "last3Hours": _last_hours(3),
    "last24Hours": _last_24_hours,
    "today": lambda base: _day(base, base.date()),
    "last1Days": _last_days(1),
    "last2Days": _last_days(2),
    "last3Days": _last_days(3),
    "last7Days": _last_days(7),
    "thisWeek": lambda base: _days(base, _monday(base), base.date()),
    "lastWeek": lambda base: _days(base, _monday(base) - 7 * _DAY, _monday(base) - _DAY),
    **{f"last{name}": _weekday_before(weekday) for weekday, name in enumerate(_WEEKDAYS)},
    "thisMonth": lambda base: _days(base, _first(base), base.date()),
    "thisMonthBegin": lambda base: _day(base, _first(base)),
    "thisMonthEnd": lambda base: _day(base, _next_first(_first(base)) - _DAY),
    "lastMonth": lambda base: _days(base, _previous_first(base), _first(base) - _DAY),
    "lastMonthBegin": lambda base: _day(base, _previous_first(base)),
    "lastMonthEnd": lambda base: _day(base, _first(base) - _DAY),
}

CYCLES: Mapping[str, tuple[str, ...]] = {
    "hour": ("currentHour", "last1Hour", "last2Hours", "last3Hours", "last24Hours"),
    "day": ("today", "last1Days", "last2Days", "last3Days", "last7Days"),
    "week": ("thisWeek", "lastWeek", *(f"last{name}" for name in _WEEKDAYS)),
    "month": (
        "thisMonth",
        "thisMonthBegin",
        "thisMonthEnd",
        "lastMonth",
        "lastMonthBegin",
        "lastMonthEnd",
    ),
}
"""The date values of each cycle, in the order in which to offer them."""
