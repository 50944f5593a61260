"""Tasks that fail now and then, which says more of the task than of what it works on."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from shoal.core.runs.states import TaskState
from shoal.insight.jobs.columns import count_if, within
from shoal.insight.jobs.days import Days

WINDOW_DAYS = 60
RUNS = 20
_TASK = ("project", "workflow", "task")


def flapping(attempts: DataFrame, days: Days) -> DataFrame:
    """Return a row, of the last of the days, for each task whose outcome has changed.

    Looked at are the last 20 runs, of at most 60 days, in which the task SUCCEEDED or FAILED in the
    end. ``changes``: how many of them ended otherwise than the one before. ``retried_rate``: the
    share that succeeded after attempts that had failed or were lost.
    """
    ended = F.col("state").isin(TaskState.SUCCEEDED, TaskState.FAILED)
    newest = (
        attempts.where(within("finished_at", days.up_to_last(WINDOW_DAYS)) & ended)
        .select(
            *_TASK, "instance_id", "attempt", "attempt_id", "finished_at", "state", "waiting_since"
        )
        .groupBy(*_TASK, "instance_id")
        .agg(
            F.max(F.struct("attempt", "finished_at", "attempt_id", "state", "waiting_since")).alias(
                "end"
            )
        )
        .select(
            *_TASK,
            "end.finished_at",
            "end.attempt_id",
            (F.col("end.state") == TaskState.FAILED).alias("has_failed"),
            ((F.col("end.attempt") > 1) & F.col("end.waiting_since").isNull()).alias("was_retried"),
        )
    )
    latest_first = Window.partitionBy(*_TASK).orderBy(F.desc("finished_at"), F.desc("attempt_id"))
    last = newest.withColumn("_rank", F.row_number().over(latest_first)).where(
        F.col("_rank") <= RUNS
    )
    before = F.lead("has_failed").over(latest_first)
    return (
        last.withColumn("_changed", before.isNotNull() & (before != F.col("has_failed")))
        .groupBy(*_TASK)
        .agg(
            F.count(F.lit(1)).alias("runs"),
            count_if(F.col("_changed")).alias("changes"),
            (count_if(F.col("has_failed")) / F.count(F.lit(1))).alias("failed_rate"),
            (count_if(F.col("was_retried") & ~F.col("has_failed")) / F.count(F.lit(1))).alias(
                "retried_rate"
            ),
            F.max("finished_at").alias("last_seen"),
        )
        .where(F.col("changes") > 0)
        .select(F.lit(days.last).alias("day"), "*")
    )
