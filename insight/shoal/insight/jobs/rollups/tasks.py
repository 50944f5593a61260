"""How often and how long each task ran, by day."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.core.runs.states import TaskState
from shoal.insight.jobs.columns import day_of, seconds, within
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.rollups.summary import Summary

_COUNTED = (
    TaskState.SUCCEEDED,
    TaskState.FAILED,
    TaskState.LOST,
    TaskState.KILLED,
    TaskState.SKIPPED,
    TaskState.RESCHEDULED,
)
_PERCENTILES = (50, 95, 99)
_SUMMARY = Summary(
    keys=("day", "project", "workflow", "task", "type"),
    counts=("attempts", *(state.lower() for state in _COUNTED), "retries"),
    spreads={"duration": _PERCENTILES, "wait": _PERCENTILES},
    sums=("busy_s", "cpu_s"),
    highest=("max_rss_kb",),
)


def task_days(attempts: DataFrame, days: Days) -> DataFrame:
    """Return a row for each day and task of which an attempt ended on that day.

    A retry is an attempt after another one of its task in its run, unless the task looks for
    something outside: there another attempt is the rule.
    """
    state = F.col("state")
    has_tried = ~state.isin(TaskState.SKIPPED, TaskState.RESCHEDULED)
    duration_s = seconds("started_at", "finished_at")
    rows = attempts.where(within("finished_at", days)).select(
        day_of("finished_at").alias("day"),
        *_SUMMARY.keys[1:],
        has_tried.alias("attempts"),
        *((state == one).alias(one.lower()) for one in _COUNTED),
        (has_tried & (F.col("attempt") > 1) & F.col("waiting_since").isNull()).alias("retries"),
        duration_s.alias("duration_s"),
        seconds("queued_at", "started_at").alias("wait_s"),
        duration_s.alias("busy_s"),
        "cpu_s",
        "max_rss_kb",
    )
    return _SUMMARY.of(rows)
