"""Which tasks are on critical paths, and what shortening them would gain, by day."""

import numpy as np
import pyarrow as pa

from shoal.insight.jobs.columns import result_schema, table_of
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.arrays import groups, ints, numbers, taken
from shoal.insight.jobs.kernels.statistics import quantiles
from shoal.insight.jobs.rollups.critical_paths import critical_paths
from shoal.insight.jobs.rows.parts import RowsPart

SCHEMA = result_schema("critical_days")
_WORKFLOW = ("day", "project", "workflow")
_KEY = (*_WORKFLOW, "task")


def critical_days(part: RowsPart, days: Days) -> pa.Table:
    """Return a row for each day and task that was on the critical path of a run of that day.

    ``runs``: on whose path the task was; ``runs_of_day``: runs of the workflow that have a path;
    ``own_…``: of the task's own times, ``gain_…``: how much earlier a run would have ended had the
    task taken no time, in seconds.
    """
    links = critical_paths(part, days)
    first, task = groups(links, _KEY)
    count = len(first)
    own_s, gain_s = numbers(links, "own_s"), numbers(links, "gain_s")
    runs, (own_p50_s,) = quantiles(task, own_s, count, (0.5,))
    _, (gain_max_s,) = quantiles(task, gain_s, count, (1.0,))
    gain_sum_s = np.bincount(task, gain_s, count)
    workflow_first, workflow = groups(links, _WORKFLOW)
    # Each run has one link at place 1.
    paths = np.bincount(workflow[ints(links, "place") == 1], minlength=len(workflow_first))
    return table_of(
        SCHEMA,
        **{name: taken(links, name, first) for name in _KEY},
        runs=runs,
        runs_of_day=paths[workflow[first]],
        own_p50_s=own_p50_s,
        own_mean_s=np.bincount(task, own_s, count) / runs,
        gain_mean_s=gain_sum_s / runs,
        gain_max_s=gain_max_s,
        gain_sum_s=gain_sum_s,
    )
