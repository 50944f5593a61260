"""How often and how long each task ran, by day."""

import pyarrow as pa

from shoal.core.runs.states import TaskState
from shoal.insight.jobs.columns import DAY_US, chosen, dates, seconds, within
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.arrays import ints, is_one_of, is_there, numbers
from shoal.insight.jobs.rollups.summary import GroupSummary
from shoal.insight.jobs.rows.parts import RowsPart

_COUNTED = (
    TaskState.SUCCEEDED,
    TaskState.FAILED,
    TaskState.LOST,
    TaskState.KILLED,
    TaskState.SKIPPED,
    TaskState.RESCHEDULED,
)
_PERCENTILES = (50, 95, 99)
_TASK = ("project", "workflow", "task", "type")
_SUMMARY = GroupSummary(
    keys={"day": pa.date32()} | dict.fromkeys(_TASK, pa.string()),
    counts=("attempts", *(state.lower() for state in _COUNTED), "retries"),
    spreads={"duration": _PERCENTILES, "wait": _PERCENTILES},
    sums=("busy_s", "cpu_s"),
    highest=("max_rss_kb",),
)
COLUMNS = (
    *_TASK,
    *("state", "attempt", "waiting_since", "queued_at", "started_at", "finished_at"),
    *("cpu_s", "max_rss_kb"),
)
SCHEMA = _SUMMARY.schema


def task_days(part: RowsPart, days: Days) -> pa.Table:
    """Return a row for each day and task of which an attempt ended on that day.

    A retry is an attempt after another one of its task in its run, unless the task looks for
    something outside: there another attempt is the rule.
    """
    rows = part.attempts(*COLUMNS)
    rows = chosen(rows, within(rows, "finished_at", days))
    flags = {state.lower(): is_one_of(rows, "state", state) for state in _COUNTED}
    has_tried = ~(flags["skipped"] | flags["rescheduled"])
    is_again = (ints(rows, "attempt") > 1) & ~is_there(rows, "waiting_since")
    duration_s = seconds(rows, "started_at", "finished_at")
    return _SUMMARY.of(
        rows.append_column("day", dates(ints(rows, "finished_at") // DAY_US)),
        flags | {"attempts": has_tried, "retries": has_tried & is_again},
        {
            "duration": duration_s,
            "wait": seconds(rows, "queued_at", "started_at"),
            "busy_s": duration_s,
            "cpu_s": numbers(rows, "cpu_s"),
            "max_rss_kb": numbers(rows, "max_rss_kb"),
        },
    )
