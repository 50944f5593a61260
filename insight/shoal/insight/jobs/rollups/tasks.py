"""How often and how long each task ran, by day."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.core.runs.states import TaskState
from shoal.insight.jobs.columns import count_if, day_of, distribution, seconds, spread, within
from shoal.insight.jobs.days import Days

_KEY = ("day", "project", "workflow", "task", "type")


def task_days(attempts: DataFrame, days: Days) -> DataFrame:
    """Return a row for each day and task of which an attempt ended on that day.

    A retry is an attempt after another one of its task in its run, unless the task looks for
    something outside: there another attempt is the rule.
    """
    state = F.col("state")
    rows = attempts.where(within("finished_at", days)).select(
        day_of("finished_at").alias("day"),
        *_KEY[1:],
        "state",
        ((F.col("attempt") > 1) & F.col("waiting_since").isNull()).alias("is_retry"),
        seconds("started_at", "finished_at").alias("duration_s"),
        seconds("queued_at", "started_at").alias("wait_s"),
        "cpu_s",
        "max_rss_kb",
    )
    ran = ~state.isin(TaskState.SKIPPED, TaskState.RESCHEDULED)
    return (
        rows.groupBy(*_KEY)
        .agg(
            count_if(ran).alias("attempts"),
            *(count_if(state == one).alias(one.lower()) for one in _COUNTED),
            count_if(ran & F.col("is_retry")).alias("retries"),
            *distribution("duration_s", "duration"),
            *distribution("wait_s", "wait"),
            F.sum("duration_s").alias("busy_s"),
            F.sum("cpu_s").alias("cpu_s"),
            F.max("max_rss_kb").alias("max_rss_kb"),
        )
        .select(
            *_KEY,
            "attempts",
            *(one.lower() for one in _COUNTED),
            "retries",
            *spread("duration"),
            *spread("wait"),
            "busy_s",
            "cpu_s",
            "max_rss_kb",
        )
    )


_COUNTED = (
    TaskState.SUCCEEDED,
    TaskState.FAILED,
    TaskState.LOST,
    TaskState.KILLED,
    TaskState.SKIPPED,
    TaskState.RESCHEDULED,
)
