"""How much each worker had to do, by day."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.core.runs.states import TaskState
from shoal.insight.jobs.columns import count_if, day_of, within
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.rollups.loads import WORKER, day_of_hour


def worker_days(attempts: DataFrame, loads: DataFrame, days: Days) -> DataFrame:
    """Return a row for each day and worker that ran something on it.

    ``loads``: ``hourly_loads`` of the same days. Counts are of attempts that ended on the day; busy
    seconds are those within the day, of attempts that ended later too. ``utilisation`` is their
    share of ``hours`` (hours of the day with an attempt in them) times ``slots`` (the most
    attempts at the same time on that day).
    """
    busy = (
        loads.where(F.col("kind") == WORKER)
        .groupBy(day_of_hour().alias("day"), F.col("name").alias("worker"))
        .agg(
            (F.sum("total_us") / F.lit(1_000_000.0)).alias("busy_s"),
            F.count(F.lit(1)).alias("hours"),
            F.max("highest").alias("slots"),
        )
    )
    ended = (
        attempts.where(within("finished_at", days) & F.col("worker").isNotNull())
        .groupBy(day_of("finished_at").alias("day"), "worker")
        .agg(
            F.count(F.lit(1)).alias("attempts"),
            count_if(F.col("state") == TaskState.FAILED).alias("failed"),
            count_if(F.col("state") == TaskState.LOST).alias("lost"),
        )
    )
    numbers = ("attempts", "failed", "lost", "busy_s", "hours", "slots")
    capacity_s = F.col("hours") * F.col("slots") * F.lit(3600.0)
    return (
        busy.join(ended, ["day", "worker"], "full")
        .select("day", "worker", *(F.coalesce(name, F.lit(0)).alias(name) for name in numbers))
        .withColumn(
            "utilisation",
            F.when(capacity_s > 0, F.col("busy_s") / capacity_s).otherwise(F.lit(0.0)),
        )
    )
