"""In which minutes schedules fire, how late their runs start, and which of them to move."""

from collections import Counter, defaultdict

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.insight.jobs.columns import DAY_US, micros, seconds, within
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.moves import MINUTES, moves

WINDOW_DAYS = 28
_MINUTE_US = 60_000_000
_HOT = 20  # minutes at most
_HOT_TIMES = 3.0  # the average of all minutes
_SCOPES = ("day", "hour")
_MINUTES_SCHEMA = (
    "day date, scope string, minute int, starts_mean double, starts_max bigint, "
    "skew_p50_s double, skew_p95_s double, skew_max_s double, is_hot boolean"
)
_MOVES_SCHEMA = (
    "day date, place int, schedule_id bigint, project string, workflow string, minute int, "
    "move_min int, starts_per_day double, highest_before double, highest_after double"
)


def schedule_minutes(instances: DataFrame, days: Days) -> DataFrame:
    """Return, as of the last of the days, a row for each minute in which schedules fired.

    ``scope`` ``day``: ``minute`` 0 to 1439 of the day, UTC; ``hour``: 0 to 59 of any hour. Looked
    at are runs of schedules that ended in the last 28 days, by their logical time. ``starts_mean``
    is by day, ``starts_max`` the most on one; ``skew``: seconds from the logical time to the start
    of the run. ``is_hot``: among the 20 fullest of the day and thrice as full as the average
    minute.
    """
    fired = _fired(instances, days)
    of_day, of_hour = F.col("minute"), F.col("minute") % F.lit(60)
    scopes = F.array(
        *(
            F.struct(F.lit(scope).alias("scope"), minute.alias("minute"))
            for scope, minute in zip(_SCOPES, (of_day, of_hour), strict=True)
        )
    )
    spread = (
        fired.select("skew_s", F.explode(scopes).alias("at"))
        .groupBy("at.scope", "at.minute")
        .agg(F.percentile("skew_s", [0.5, 0.95]).alias("skew"), F.max("skew_s").alias("most"))
        .collect()
    )
    skews = {
        (row["scope"], row["minute"]): (*(row["skew"] or (None, None)), row["most"])
        for row in spread
    }
    counts: dict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    daily = fired.groupBy("minute", "number").agg(F.count(F.lit(1)).alias("starts"))
    for row in daily.collect():
        for scope, minute in zip(_SCOPES, (row["minute"], row["minute"] % 60), strict=True):
            counts[scope, minute][row["number"]] += row["starts"]
    known_days = len({number for of in counts.values() for number in of})
    starts = {key: of.total() for key, of in counts.items()}
    by_number = sorted(
        (key for key in starts if key[0] == "day"), key=lambda key: (-starts[key], key[1])
    )
    average = sum(starts[key] for key in by_number) / MINUTES
    hot = {key for key in by_number[:_HOT] if starts[key] >= _HOT_TIMES * average}
    rows = [
        (
            days.last,
            *key,
            starts[key] / known_days,
            max(of.values()),
            *skews[key],
            key in hot,
        )
        for key, of in counts.items()
    ]
    return instances.sparkSession.createDataFrame(rows, _MINUTES_SCHEMA)


def schedule_moves(instances: DataFrame, days: Days) -> DataFrame:
    """Return, as of the last of the days, the schedules to move, the most useful first.

    ``minute`` (of the day) is relieved if the schedule fires ``move_min`` minutes later (negative:
    earlier). ``highest_before`` and ``highest_after``: the most starts that are to be expected in
    one minute, without and with this move and all of a lower ``place``. Only schedules that fire
    at most 48 times a day are moved, by 15 minutes at most.
    """
    fired = _fired(instances, days)
    rows = (
        fired.groupBy("schedule_id", "minute")
        .agg(
            F.count(F.lit(1)).alias("starts"),
            F.max("project").alias("project"),
            F.max("workflow").alias("workflow"),
        )
        .collect()
    )
    known_days = max(1, fired.agg(F.count_distinct("number")).collect()[0][0])
    fires: dict[int, dict[int, float]] = defaultdict(dict)
    names = {}
    for row in rows:
        fires[row.schedule_id][row.minute] = row.starts / known_days
        names[row.schedule_id] = (row.project, row.workflow)
    found = [
        (
            days.last,
            place,
            move.schedule,
            *names[move.schedule],
            move.minute,
            move.minutes,
            float(sum(fires[move.schedule].values())),
            move.before,
            move.after,
        )
        for place, move in enumerate(moves(fires), 1)
    ]
    return instances.sparkSession.createDataFrame(found, _MOVES_SCHEMA)


def _fired(instances: DataFrame, days: Days) -> DataFrame:
    """Return the runs of schedules, with the minute and the day's number of their logical time."""
    at = micros("logical_time")
    return instances.where(
        within("finished_at", days.up_to_last(WINDOW_DAYS))
        & (F.col("trigger") == "schedule")
        & F.col("schedule_id").isNotNull()
    ).select(
        "project",
        "workflow",
        "schedule_id",
        F.floor(at / F.lit(DAY_US)).alias("number"),
        (F.floor(at / F.lit(_MINUTE_US)) % F.lit(MINUTES)).cast("int").alias("minute"),
        seconds("logical_time", "started_at").alias("skew_s"),
    )
