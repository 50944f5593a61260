"""Which days are looked at, and numbers over several days.

Results are of days. What is exact by day is not always exact for several days: counts, sums, means
and highest values are; a percentile of a window is the mean of the days' percentiles, weighted by
how many values each day had. So one busy day counts for more than many quiet ones, and a window of
one day is exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

USUAL_DAYS = 28
LONGEST_DAYS = 92


@dataclass(frozen=True)
class DayWindow:
    """Days in a row, both included. UTC."""

    first: date
    last: date

    @property
    def length(self) -> int:
        """How many days there are."""
        return (self.last - self.first).days + 1

    @property
    def before(self) -> "DayWindow":
        """The window of the same length that ends the day before."""
        days = timedelta(days=self.length)
        return DayWindow(self.first - days, self.last - days)

    def has(self, day: date) -> bool:
        """Whether the day is one of them."""
        return self.first <= day <= self.last


def window_of(newest: date | None, first: date | None, last: date | None) -> DayWindow | None:
    """Return the window that is asked for; None: there are no results, so there is none.

    ``newest``: of which day the newest results are. Without ``last`` the window ends with it,
    without ``first`` it has 28 days. Raises ValueError.
    """
    if first is not None and last is not None and first > last:
        raise ValueError("ends before it begins")
    if newest is None:
        return None
    end = last or max(first or newest, newest)
    try:
        window = DayWindow(first or end - timedelta(days=USUAL_DAYS - 1), end)
        before = window.before
    except OverflowError:
        raise ValueError("lies outside of the years that there are") from None
    if window.length > LONGEST_DAYS:
        raise ValueError(f"has {window.length} days; {LONGEST_DAYS} at most")
    assert before.length == window.length, "both are compared day by day"
    return window


def weighted(values: Iterable[tuple[float | None, float]]) -> float | None:
    """Return the mean of (value, weight); None: nothing has both."""
    total = weights = 0.0
    for value, weight in values:
        if value is not None and weight > 0:
            total += value * weight
            weights += weight
    return total / weights if weights else None


def added(values: Iterable[float | None]) -> float | None:
    """Return the sum of what was measured; None: nothing was."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def highest(values: Iterable[float | None]) -> float | None:
    """Return the highest of what was measured; None: nothing was."""
    return max((value for value in values if value is not None), default=None)


def rate(part: float, whole: float) -> float | None:
    """Return the share; None: there was nothing."""
    return part / whole if whole else None


def difference(now: float | None, before: float | None) -> float | None:
    """Return by how much it has grown; None: one of them is not known."""
    return None if now is None or before is None else now - before


def ratio(now: float | None, before: float | None) -> float | None:
    """Return how many times as much it is; None: one is not known, or there was nothing before."""
    return None if now is None or not before else now / before
