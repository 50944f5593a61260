"""How many slots each worker group will need in the next week."""

import math
from datetime import timedelta

import pyarrow as pa

from shoal.insight.jobs.columns import (
    DAY_US,
    EPOCH_WEEKDAY,
    HOUR_US,
    chosen,
    end_us,
    number_of,
    result_schema,
)
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.arrays import ints, is_one_of
from shoal.insight.jobs.kernels.forecasts import AHEAD_DAYS, backtest, filled, forecast
from shoal.insight.jobs.rollups.loads import NEEDED

WINDOW_DAYS = 60
SCHEMA = result_schema("capacity")


def capacity(loads: pa.Table, days: Days) -> pa.Table:
    """Return, as of the last of the days, a row for each hour of the next 7 days and worker group.

    ``loads``: those of the 60 days that end with the last one. An hour needs as many slots as
    attempts ran or waited at the same time at most: then none waits. ``slots`` is the 95th
    percentile that is to be expected, rounded up, ``expected`` the median. ``error_p50`` and
    ``within_p95`` say how the forecasts of the last 4 weeks were, each made from what was before:
    the median of |real - expected|, and the share of ``tested_hours`` for which ``slots`` were
    enough. Without three weeks there is no such test.
    """
    first_hour = number_of(days.up_to_last(WINDOW_DAYS).first) * DAY_US // HOUR_US
    last_hour = end_us(days.last) // HOUR_US - 1
    hour = ints(loads, "hour")
    wanted = is_one_of(loads, "kind", NEEDED) & (first_hour <= hour) & (hour <= last_hour)
    table = chosen(loads, wanted).sort_by("hour")
    rows = []
    for name in sorted(set(table["name"].to_pylist())):
        mine = chosen(table, is_one_of(table, "name", name))
        first_day, needed = filled(ints(mine, "hour"), ints(mine, "highest"), last_hour)
        weekday = (first_day + EPOCH_WEEKDAY) % 7
        expected, judged = forecast(needed, weekday), backtest(needed, weekday)
        rows += [
            {
                "day": days.last,
                "forecast_day": days.last + timedelta(days=step + 1),
                "hour": hour_of_day,
                "worker_group": name,
                "slots": math.ceil(expected.p95[step, hour_of_day] - 1e-9),
                "expected": float(expected.p50[step, hour_of_day]),
                "tested_hours": judged.hours,
                "error_p50": None if math.isnan(judged.error_p50) else judged.error_p50,
                "within_p95": None if math.isnan(judged.within_p95) else judged.within_p95,
            }
            for step in range(AHEAD_DAYS)
            for hour_of_day in range(24)
        ]
    return pa.Table.from_pylist(rows, SCHEMA)
