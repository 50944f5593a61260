"""Sweeps, percentiles, baselines, moves and forecasts, against the plainest way to compute them."""

import math
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.insight.jobs.kernels.expectations import ANY, ENOUGH, baselines, chosen, late_after
from shoal.insight.jobs.kernels.forecasts import backtest, filled, forecast, slope
from shoal.insight.jobs.kernels.moves import MINUTES, moves
from shoal.insight.jobs.kernels.statistics import quantiles, spreads
from shoal.insight.jobs.kernels.sweeps import highest, totals

INTERVALS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 20)), max_size=40
)
VALUES = st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e6) | st.just(math.nan)), max_size=60)
#: Whole microseconds, for which there is a way of their own; up to a hundred years.
TIMES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 1 << 52).map(lambda micros: micros / 1e6)),
    max_size=60,
)


@given(INTERVALS)
def test_highest_number_of_intervals_is_that_of_each_moment(
    intervals: list[tuple[int, int, int]],
) -> None:
    keys, starts, ends = (
        np.array([one[at] for one in intervals], dtype=np.int64) for at in range(3)
    )
    expected = [
        max(sum(key == of and a <= at < b for of, a, b in intervals) for at in range(21))
        for key in range(4)
    ]
    assert highest(keys, starts, ends, 4).tolist() == expected
    lengths = [sum(max(b - a, 0) for of, a, b in intervals if of == key) for key in range(4)]
    assert totals(keys, starts, ends, 4).tolist() == lengths


@given(VALUES | TIMES)
def test_quantiles_and_deviations_of_groups_are_those_of_each(
    values: list[tuple[int, float]],
) -> None:
    keys = np.array([key for key, _ in values], dtype=np.int64)
    numbers = np.array([value for _, value in values], dtype=np.float64)
    sizes, found = quantiles(keys, numbers, 5, (0.5, 0.95))
    known = ~np.isnan(numbers)
    assert np.array_equal(
        found, spreads(keys[known], numbers[known], 5, (0.5, 0.95))[1], equal_nan=True
    )
    deviations = spreads(keys[known], numbers[known], 5, (0.5,))[2]
    for key in range(5):
        mine = [value for of, value in values if of == key and not math.isnan(value)]
        assert sizes[key] == len(mine)
        if mine:
            assert found[:, key] == pytest.approx(np.quantile(mine, (0.5, 0.95)))
            middle = median(mine)
            assert deviations[key] == pytest.approx(median(abs(one - middle) for one in mine))
        else:
            assert np.isnan(found[:, key]).all()


def test_finest_baseline_with_values_enough_counts() -> None:
    count = 7 * ENOUGH
    weekday = np.arange(count) % 7
    hour = np.where(weekday == 0, 3, 4)
    subject = np.zeros(count, dtype=np.int64)
    known = baselines(subject, weekday, hour, weekday.astype(float))
    assert known.number.tolist()[-1] == count

    def value(day: int, at: int) -> tuple[int, int, float]:
        (place,) = chosen(known, *(np.array([one]) for one in (0, day, at)))
        return known.weekday[place], known.hour[place], known.p50[place]

    assert value(0, 3) == (0, 3, 0.0)
    assert value(5, 3) == (ANY, 3, 0.0)  # never so on that day; the hour goes before the weekday
    assert value(5, 9) == (5, ANY, 5.0)
    few = baselines(subject[:5], weekday[:5], hour[:5], np.arange(5.0))
    assert (few.weekday.tolist(), few.hour.tolist(), few.p50.tolist()) == ([ANY], [ANY], [2.0])
    assert chosen(few, np.array([1]), np.array([0]), np.array([0])).tolist() == [-1]


def test_late_is_what_is_far_above_both_measures() -> None:
    p50, p95, mad = np.array([10.0, 10.0]), np.array([12.0, 12.0]), np.array([1.0, 9.0])
    assert late_after(p50, p95, mad).tolist() == [18.0, 37.0]


def test_moves_spread_what_fires_in_one_minute() -> None:
    # Ten schedules fire at 02:00; one fires every minute, which nobody can move.
    fires = {number: {120: 1.0} for number in range(10)}
    fires[99] = dict.fromkeys(range(MINUTES), 1.0)
    found = moves(fires)
    assert found[0].before == 11
    assert found[-1].after == 2
    assert 99 not in {move.schedule for move in found}
    assert all(move.minute == 120 and 1 <= abs(move.minutes) <= 15 for move in found)
    assert [move.after for move in found] == sorted((m.after for m in found), reverse=True)
    assert moves({1: {0: 1.0}}) == []


def test_slope_is_that_of_weeks_whatever_a_weekend_or_an_odd_day_does() -> None:
    days = np.arange(42)
    levels = np.asarray(10.0 + 0.5 * days + np.where(days % 7 >= 5, -8.0, 0.0), dtype=np.float64)
    levels[17] = 500.0
    assert slope(levels) == pytest.approx(0.5)
    assert slope(levels[:13]) == 0.0


def test_forecast_follows_weekday_hour_and_trend_and_tells_how_it_did() -> None:
    days = np.arange(56)
    shape = np.where(np.arange(24) == 2, 30.0, 3.0)
    needed = shape * np.where(days % 7 >= 5, 0.2, 1.0)[:, None] * (1 + days / 100)[:, None]
    expected = forecast(needed, first_weekday=0)
    real = (
        shape
        * np.where(np.arange(7) >= 5, 0.2, 1.0)[:, None]
        * (1 + (56 + np.arange(7)) / 100)[:, None]
    )
    assert expected.p50 == pytest.approx(real, rel=0.1)
    assert (expected.p95 >= expected.p50).all()
    judged = backtest(np.round(needed), first_weekday=0)
    assert judged.hours == 4 * 7 * 24
    assert judged.within_p95 > 0.9
    assert judged.error_p50 < 1
    assert backtest(needed[:15], 0).hours == 0


def test_hours_without_a_value_need_nothing() -> None:
    first_day, found = filled(np.array([26, 30]), np.array([4, 7]), last_hour=71)
    assert first_day == 1
    assert found.shape == (2, 24)
    assert (found[0, 2], found[0, 6], found.sum()) == (4, 7, 11)
