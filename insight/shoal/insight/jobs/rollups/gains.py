"""Which tasks are on critical paths, and what shortening them would gain, by day."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.insight.jobs.rollups.summary import Summary

_WORKFLOW = ("day", "project", "workflow")


def critical_days(links: DataFrame) -> DataFrame:
    """Return a row for each day and task that was on the critical path of a run of that day.

    ``links``: the result of ``critical_paths``. ``runs``: on whose path the task was;
    ``runs_of_day``: runs of the workflow that have a path; ``own_…``: of the task's own times,
    ``gain_…``: how much earlier a run would have ended had the task taken no time, in seconds.
    """
    summary = Summary(
        keys=(*_WORKFLOW, "task"),
        counts=("is_link",),
        spreads={"own": (50,), "gain": ()},
        sums=("gain_sum_s",),
    )
    of_tasks = summary.of(
        links.withColumn("is_link", F.lit(True)).withColumn("gain_sum_s", F.col("gain_s"))
    )
    of_workflows = links.groupBy(*_WORKFLOW).agg(
        F.count_distinct("instance_id").alias("runs_of_day")
    )
    return of_tasks.join(of_workflows, list(_WORKFLOW)).select(
        *_WORKFLOW,
        "task",
        F.col("is_link").alias("runs"),
        "runs_of_day",
        F.col("own_p50").alias("own_p50_s"),
        F.col("own_mean").alias("own_mean_s"),
        F.col("gain_mean").alias("gain_mean_s"),
        F.col("gain_max").alias("gain_max_s"),
        "gain_sum_s",
    )
