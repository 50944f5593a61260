"""How many attempts ran and waited in each hour of a day: the heat map."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shoal.insight.jobs.columns import HOUR_US
from shoal.insight.jobs.rollups.loads import NEEDED, RUNNING, WAITING, day_of_hour


def concurrency_hours(loads: DataFrame) -> DataFrame:
    """Return a row for each hour (0 to 23, UTC) and worker group in which there was something.

    ``loads``: ``hourly_loads``. Means are over the whole hour. ``needed_max``: the most attempts
    that ran or waited at the same time; with so many slots none would have waited.
    """

    def of(kind: str, value: str) -> Column:
        return F.coalesce(F.max(F.when(F.col("kind") == kind, F.col(value))), F.lit(0))

    def mean(kind: str) -> Column:
        return of(kind, "total_us") / F.lit(float(HOUR_US))

    return (
        loads.where(F.col("kind").isin(RUNNING, WAITING, NEEDED))
        .groupBy("hour", F.col("name").alias("worker_group"))
        .agg(
            mean(RUNNING).alias("running_mean"),
            of(RUNNING, "highest").alias("running_max"),
            mean(WAITING).alias("waiting_mean"),
            of(WAITING, "highest").alias("waiting_max"),
            of(NEEDED, "highest").alias("needed_max"),
        )
        .select(
            day_of_hour().alias("day"),
            (F.col("hour") % F.lit(24)).cast("int").alias("hour"),
            "worker_group",
            "running_mean",
            "running_max",
            "waiting_mean",
            "waiting_max",
            "needed_max",
        )
    )
