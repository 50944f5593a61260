"""How the runs of each workflow ended and how long they took, by day."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.core.runs.states import WorkflowState
from shoal.insight.jobs.columns import day_of, seconds, within
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.rollups.summary import Summary

_STATES = (WorkflowState.SUCCEEDED, WorkflowState.FAILED, WorkflowState.STOPPED)
_TRIGGERS = ("schedule", "backfill", "parent", "rerun", "request")
_SUMMARY = Summary(
    keys=("day", "project", "workflow"),
    counts=(
        "runs",
        *(state.lower() for state in _STATES),
        *(f"by_{trigger}" for trigger in _TRIGGERS),
        "late",
    ),
    spreads={"duration": (50, 95, 99), "admission": (50, 95, 99), "critical": (50, 95)},
)


def workflow_days(instances: DataFrame, critical_paths: DataFrame, days: Days) -> DataFrame:
    """Return a row for each day and workflow of which a run ended on that day.

    ``critical_paths``: the result of that job for the same days. ``critical`` is the seconds that
    the tasks of a run's critical path worked: the least that the run takes, however many workers
    there are.
    """
    worked = critical_paths.groupBy("project", "workflow", "instance_id").agg(
        F.sum("own_s").alias("critical_s")
    )
    rows = (
        instances.where(within("finished_at", days))
        .select(
            day_of("finished_at").alias("day"),
            "project",
            "workflow",
            "instance_id",
            F.lit(True).alias("runs"),
            *((F.col("state") == one).alias(one.lower()) for one in _STATES),
            *((F.col("trigger") == one).alias(f"by_{one}") for one in _TRIGGERS),
            F.col("late_at").isNotNull().alias("late"),
            seconds("started_at", "finished_at").alias("duration_s"),
            seconds("created_at", "admitted_at").alias("admission_s"),
        )
        .join(worked, ["project", "workflow", "instance_id"], "left")
    )
    return _SUMMARY.of(rows)
