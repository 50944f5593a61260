"""In which minutes schedules fire, how late their runs start, and which of them to move."""

from collections import defaultdict

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shoal.insight.jobs.columns import DAY_US, micros, seconds, within
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.moves import MINUTES, moves

WINDOW_DAYS = 28
_MINUTE_US = 60_000_000
_HOT = 20  # minutes at most
_HOT_TIMES = 3.0  # the average of all minutes
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
    known_days = F.greatest(F.lit(1), F.col("days"))
    count = fired.agg(F.count_distinct("number").alias("days"))

    def of(scope: str, minute: Column) -> DataFrame:
        rows = fired.select("number", "skew_s", minute.cast("int").alias("minute"))
        daily = rows.groupBy("minute", "number").agg(F.count(F.lit(1)).alias("starts"))
        most = daily.groupBy("minute").agg(F.max("starts").alias("starts_max"))
        spread = rows.groupBy("minute").agg(
            F.count(F.lit(1)).alias("starts"),
            F.percentile("skew_s", [0.5, 0.95]).alias("skew"),
            F.max("skew_s").alias("skew_max_s"),
        )
        return (
            spread.join(most, "minute")
            .crossJoin(F.broadcast(count))
            .select(
                F.lit(scope).alias("scope"),
                "minute",
                (F.col("starts") / known_days).alias("starts_mean"),
                "starts_max",
                F.col("skew")[0].alias("skew_p50_s"),
                F.col("skew")[1].alias("skew_p95_s"),
                "skew_max_s",
            )
        )

    found = of("day", F.col("minute")).unionByName(of("hour", F.col("minute") % F.lit(60)))
    by_day = F.col("scope") == "day"
    fullest = Window.partitionBy("scope").orderBy(F.desc("starts_mean"), "minute")
    average = F.sum("starts_mean").over(Window.partitionBy("scope")) / F.lit(float(MINUTES))
    is_hot = (
        by_day & (F.col("_rank") <= _HOT) & (F.col("starts_mean") >= _HOT_TIMES * F.col("_average"))
    )
    return (
        found.withColumns({"_rank": F.row_number().over(fullest), "_average": average})
        .withColumn("is_hot", is_hot)
        .drop("_rank", "_average")
        .select(F.lit(days.last).alias("day"), "*")
    )


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
