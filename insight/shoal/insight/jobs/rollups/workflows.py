"""How the runs of each workflow ended and how long they took, by day."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.core.runs.states import WorkflowState
from shoal.insight.jobs.columns import count_if, day_of, distribution, seconds, spread, within
from shoal.insight.jobs.days import Days

_KEY = ("day", "project", "workflow")
_STATES = (WorkflowState.SUCCEEDED, WorkflowState.FAILED, WorkflowState.STOPPED)
TRIGGERS = ("schedule", "backfill", "parent", "rerun", "request")


def workflow_days(instances: DataFrame, critical_paths: DataFrame, days: Days) -> DataFrame:
    """Return a row for each day and workflow of which a run ended on that day.

    ``critical_paths``: the result of that job for the same days. ``critical`` is the seconds that
    the tasks of a run's critical path worked: the least that the run takes, however many workers
    there are.
    """
    worked = critical_paths.groupBy("instance_id").agg(F.sum("own_s").alias("critical_s"))
    rows = (
        instances.where(within("finished_at", days))
        .select(
            day_of("finished_at").alias("day"),
            *_KEY[1:],
            "instance_id",
            "state",
            "trigger",
            F.col("late_at").isNotNull().alias("is_late"),
            seconds("started_at", "finished_at").alias("duration_s"),
            seconds("created_at", "admitted_at").alias("admission_s"),
        )
        .join(worked, "instance_id", "left")
    )
    return (
        rows.groupBy(*_KEY)
        .agg(
            F.count(F.lit(1)).alias("runs"),
            *(count_if(F.col("state") == one).alias(one.lower()) for one in _STATES),
            *(count_if(F.col("trigger") == one).alias(f"by_{one}") for one in TRIGGERS),
            count_if(F.col("is_late")).alias("late"),
            *distribution("duration_s", "duration"),
            *distribution("admission_s", "admission"),
            *distribution("critical_s", "critical", (50, 95)),
        )
        .select(
            *_KEY,
            "runs",
            *(one.lower() for one in _STATES),
            *(f"by_{one}" for one in TRIGGERS),
            "late",
            *spread("duration"),
            *spread("admission"),
            *spread("critical", (50, 95)),
        )
    )
