"""How many slots will be needed at each hour of the next days."""

from dataclasses import dataclass

import numpy as np

from shoal.insight.jobs.kernels.statistics import Ints, Numbers

AHEAD_DAYS = 7
_FEWEST = 4  # values of an hour of a weekday
_SHORTEST_TREND_DAYS = 14
_LARGEST_GROWTH = 2.0


@dataclass(frozen=True)
class Forecast:
    """Days x 24 hours: the median that is to be expected, and the 95th percentile."""

    p50: Numbers
    p95: Numbers


@dataclass(frozen=True)
class Tested:
    """How forecasts of earlier weeks were.

    ``hours``: of how many; ``error_p50``: the median of |real - p50|; ``within_p95``: the share of
    hours that needed no more than p95. Without a test they are NaN.
    """

    hours: int
    error_p50: float
    within_p95: float


def slope(levels: Numbers) -> float:
    """Return by how much the level of a day grows each day.

    The median slope between all days that are whole weeks apart (Theil and Sen's, by season as
    Hirsch's): weekends do not bend it, nor do some odd days. 0 below two weeks.
    """
    if len(levels) < _SHORTEST_TREND_DAYS:
        return 0.0
    slopes = [(levels[apart:] - levels[:-apart]) / apart for apart in range(7, len(levels), 7)]
    return float(np.median(np.concatenate(slopes)))


def forecast(needed: Numbers, first_weekday: int, ahead: int = AHEAD_DAYS) -> Forecast:
    """Return the forecast of the days behind ``needed`` (days x 24 hours).

    ``first_weekday``: of the first of these days, 0 is Monday. Each past hour is first brought to
    the level of the day that is forecast, by the trend; then the same hours of the same weekday
    count, or of all days if there are less than 4.
    """
    days = len(needed)
    levels = needed.mean(axis=1)
    trend = slope(levels)
    line = np.median(levels) + trend * (np.arange(days + ahead) - (days - 1) / 2)
    floor = max(float(np.median(levels)) / _LARGEST_GROWTH, 1e-9)
    line = np.maximum(line, floor)
    weekdays = (first_weekday + np.arange(days + ahead)) % 7
    p50, p95 = np.empty((ahead, 24)), np.empty((ahead, 24))
    for step in range(ahead):
        day = days + step
        growth = np.clip(line[day] / line[:days], 1 / _LARGEST_GROWTH, _LARGEST_GROWTH)
        same = weekdays[:days] == weekdays[day]
        if same.sum() < _FEWEST:
            same = np.ones(days, dtype=bool)
        values = needed[same] * growth[same, None]
        p50[step], p95[step] = np.percentile(values, (50, 95), axis=0)
    return Forecast(p50, p95)


def backtest(needed: Numbers, first_weekday: int, weeks: int = 4) -> Tested:
    """Return how well the last weeks would have been forecast, each from what was before it."""
    errors, within = [], []
    for week in range(1, weeks + 1):
        known = len(needed) - AHEAD_DAYS * week
        if known < _SHORTEST_TREND_DAYS:
            break
        real = needed[known : known + AHEAD_DAYS]
        expected = forecast(needed[:known], first_weekday)
        errors.append(np.abs(real - expected.p50).ravel())
        within.append((real <= np.ceil(expected.p95)).ravel())
    if not errors:
        return Tested(0, float("nan"), float("nan"))
    error, inside = np.concatenate(errors), np.concatenate(within)
    return Tested(len(error), float(np.median(error)), float(inside.mean()))


def filled(hours: Ints, values: Ints, last_hour: int) -> tuple[int, Numbers]:
    """Return the first day (days since 1970) and all hours from then on, 0 where there is none."""
    first_day = int(hours.min()) // 24
    found = np.zeros((last_hour // 24 + 1 - first_day, 24))
    found.reshape(-1)[hours - first_day * 24] = values
    return first_day, found
