"""How many slots each worker group will need in the next week."""

import math
from datetime import timedelta

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.insight.jobs.columns import end_of
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.forecasts import AHEAD_DAYS, backtest, filled, forecast
from shoal.insight.jobs.rollups.loads import NEEDED

WINDOW_DAYS = 60
_EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday
_SCHEMA = (
    "day date, forecast_day date, hour int, worker_group string, slots int, expected double, "
    "tested_hours int, error_p50 double, within_p95 double"
)


def capacity(loads: DataFrame, days: Days) -> DataFrame:
    """Return, as of the last of the days, a row for each hour of the next 7 days and worker group.

    ``loads``: ``hourly_loads`` of the 60 days that end with the last one. An hour needs as many
    slots as attempts ran or waited at the same time at most: then none waits. ``slots`` is the 95th
    percentile that is to be expected, rounded up, ``expected`` the median. ``error_p50`` and
    ``within_p95`` say how the forecasts of the last 4 weeks were, each made from what was before:
    the median of |real - expected|, and the share of ``tested_hours`` for which ``slots`` were
    enough. Without three weeks there is no such test.
    """
    table = (
        loads.where(F.col("kind") == NEEDED).select("name", "hour", "highest").orderBy("hour")
    ).toArrow()
    last_hour = int(end_of(days.last).timestamp()) // 3600 - 1
    rows = []
    for name in sorted(pc.unique(table["name"]).to_pylist()):
        mine = table.filter(pc.equal(table["name"], name))
        first_day, needed = filled(mine["hour"].to_numpy(), mine["highest"].to_numpy(), last_hour)
        weekday = (first_day + _EPOCH_WEEKDAY) % 7
        expected, judged = forecast(needed, weekday), backtest(needed, weekday)
        rows += [
            (
                days.last,
                days.last + timedelta(days=step + 1),
                hour,
                name,
                math.ceil(expected.p95[step, hour] - 1e-9),
                float(expected.p50[step, hour]),
                judged.hours,
                None if math.isnan(judged.error_p50) else judged.error_p50,
                None if math.isnan(judged.within_p95) else judged.within_p95,
            )
            for step in range(AHEAD_DAYS)
            for hour in range(24)
        ]
    return loads.sparkSession.createDataFrame(rows, _SCHEMA)
