"""Which days of a month a cron expression means.

A *selector* turns the shape of a month (its first weekday and its length) into day numbers, so
that ``L``, ``15W`` and ``FRI#3`` are all the same kind of thing. Only 28 shapes exist.
Weekdays count from Monday = 0, as in ``datetime.weekday``.
"""

import calendar
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

SATURDAY, SUNDAY = 5, 6


class MonthShape(NamedTuple):
    first_weekday: int
    length: int

    def weekday(self, day: int) -> int:
        return (self.first_weekday + day - 1) % 7

    def first(self, weekday: int) -> int:
        """Return the first day of the month that is a ``weekday``."""
        return 1 + (weekday - self.first_weekday) % 7


Selector = Callable[[MonthShape], Iterable[int]]


def every_day(shape: MonthShape) -> Iterable[int]:
    return range(1, shape.length + 1)


def numbered(days: Iterable[int]) -> Selector:
    """Select the given day numbers; a month without such a day has none."""
    wanted = frozenset(days)
    return lambda shape: (day for day in wanted if day <= shape.length)


def before_last(offset: int) -> Selector:
    """Select the day ``offset`` days before the last one (``L``, ``L-3``)."""
    return lambda shape: [shape.length - offset] if shape.length > offset else []


def nearest_weekday(target: Selector) -> Selector:
    """Select the Monday-to-Friday day nearest to ``target`` in the same month (``15W``, ``LW``)."""
    return lambda shape: [_nearest(shape, day) for day in target(shape)]


def _nearest(shape: MonthShape, day: int) -> int:
    weekday = shape.weekday(day)
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == SUNDAY:
        return day + 1 if day < shape.length else day - 2
    return day


def weekdays(wanted: Iterable[int]) -> Selector:
    chosen = frozenset(wanted)
    return lambda shape: (day for day in every_day(shape) if shape.weekday(day) in chosen)


def nth_weekday(weekday: int, n: int) -> Selector:
    """Select the ``n``-th ``weekday`` (``FRI#3``); a month with only four has no fifth."""

    def select(shape: MonthShape) -> Iterable[int]:
        day = shape.first(weekday) + 7 * (n - 1)
        return [day] if day <= shape.length else []

    return select


def last_weekday(weekday: int) -> Selector:
    """Select the last ``weekday`` of the month (``6L`` or ``FRIL``)."""

    def select(shape: MonthShape) -> Iterable[int]:
        return [max(range(shape.first(weekday), shape.length + 1, 7))]

    return select


def any_of(selectors: Iterable[Selector]) -> Selector:
    every = tuple(selectors)
    return lambda shape: {day for select in every for day in select(shape)}


def both(one: Selector, other: Selector) -> Selector:
    return lambda shape: set(one(shape)) & set(other(shape))


@dataclass(frozen=True, slots=True)
class DayRule:
    """The days of every month that ``select`` means, remembered per shape of month."""

    select: Selector
    _known: dict[MonthShape, tuple[int, ...]] = field(default_factory=dict, repr=False)

    def days(self, year: int, month: int) -> tuple[int, ...]:
        """Return the days of that month, ascending."""
        shape = MonthShape(*calendar.monthrange(year, month))
        days = self._known.get(shape)
        if days is None:
            days = self._known[shape] = tuple(sorted(self.select(shape)))
        return days
