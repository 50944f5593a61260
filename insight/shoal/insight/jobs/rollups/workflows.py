"""How the runs of each workflow ended and how long they took, by day."""

import numpy as np
import pyarrow as pa

from shoal.core.runs.states import WorkflowState
from shoal.insight.jobs.columns import DAY_US, chosen, dates, seconds, within
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.arrays import ints, is_one_of, is_there, numbers
from shoal.insight.jobs.rollups.critical_paths import critical_paths
from shoal.insight.jobs.rollups.summary import GroupSummary
from shoal.insight.jobs.rows.parts import RowsPart

_STATES = (WorkflowState.SUCCEEDED, WorkflowState.FAILED, WorkflowState.STOPPED)
_TRIGGERS = ("schedule", "backfill", "parent", "rerun", "request")
_SUMMARY = GroupSummary(
    keys={"day": pa.date32(), "project": pa.string(), "workflow": pa.string()},
    counts=(
        "runs",
        *(state.lower() for state in _STATES),
        *(f"by_{trigger}" for trigger in _TRIGGERS),
        "late",
    ),
    spreads={"duration": (50, 95, 99), "admission": (50, 95, 99), "critical": (50, 95)},
)
_COLUMNS = (
    *("project", "workflow", "instance_id", "state", "trigger", "late_at"),
    *("created_at", "admitted_at", "started_at", "finished_at"),
)
SCHEMA = _SUMMARY.schema


def workflow_days(part: RowsPart, days: Days) -> pa.Table:
    """Return a row for each day and workflow of which a run ended on that day.

    ``critical`` is the seconds that the tasks of a run's critical path worked: the least that the
    run takes, however many workers there are.
    """
    rows = part.instances(*_COLUMNS)
    rows = chosen(rows, within(rows, "finished_at", days))
    return _SUMMARY.of(
        rows.append_column("day", dates(ints(rows, "finished_at") // DAY_US)),
        {
            "runs": np.ones(rows.num_rows, dtype=bool),
            **{state.lower(): is_one_of(rows, "state", state) for state in _STATES},
            **{f"by_{one}": is_one_of(rows, "trigger", one) for one in _TRIGGERS},
            "late": is_there(rows, "late_at"),
        },
        {
            "duration": seconds(rows, "started_at", "finished_at"),
            "admission": seconds(rows, "created_at", "admitted_at"),
            "critical": _worked(rows, critical_paths(part, days)),
        },
    )


def _worked(runs: pa.Table, links: pa.Table) -> np.ndarray:
    """Return for each run the seconds that the tasks of its path worked; NaN: it has no path."""
    worked = np.full(runs.num_rows, np.nan)
    if links.num_rows:
        known, of = np.unique(ints(links, "instance_id"), return_inverse=True)
        sums = np.bincount(of, numbers(links, "own_s"))
        run = ints(runs, "instance_id")
        at = np.minimum(np.searchsorted(known, run), len(known) - 1)
        worked = np.where(known[at] == run, sums[at], np.nan)
    return worked
