"""Tasks that fail now and then, which says more of the task than of what it works on."""

import numpy as np
import pyarrow as pa

from shoal.core.runs.states import TaskState
from shoal.insight.jobs.columns import chosen, dates, number_of, result_schema, table_of, within
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.arrays import groups, ints, is_one_of, is_there, taken
from shoal.insight.jobs.kernels.statistics import Ints
from shoal.insight.jobs.rows.parts import RowsPart

WINDOW_DAYS = 60
RUNS = 20
SCHEMA = result_schema("flapping")
_TASK = ("project", "workflow", "task")
COLUMNS = (
    *_TASK,
    *("instance_id", "attempt", "attempt_id", "finished_at", "state", "waiting_since"),
)


def flapping(part: RowsPart, days: Days) -> pa.Table:
    """Return a row, of the last of the days, for each task whose outcome has changed.

    Looked at are the last 20 runs, of at most 60 days, in which the task SUCCEEDED or FAILED in the
    end. ``changes``: how many of them ended otherwise than the one before. ``retried_rate``: the
    share that succeeded after attempts that had failed or were lost.
    """
    rows = part.attempts(*COLUMNS)
    ended = is_one_of(rows, "state", TaskState.SUCCEEDED, TaskState.FAILED)
    rows = chosen(rows, ended & within(rows, "finished_at", days.up_to_last(WINDOW_DAYS)))
    first, task = groups(rows, _TASK)
    last = _last_runs(rows, task)
    of = task[last]
    failed = is_one_of(rows, "state", TaskState.FAILED)[last]
    is_again = (ints(rows, "attempt") > 1) & ~is_there(rows, "waiting_since")
    retried = is_again[last] & ~failed
    changed = np.append(False, (np.diff(failed) != 0) & (np.diff(of) == 0))[: len(of)]
    count = len(first)
    runs = np.bincount(of, minlength=count)
    changes = np.bincount(of[changed], minlength=count)
    seen = np.zeros(count, dtype=np.int64)
    np.maximum.at(seen, of, ints(rows, "finished_at")[last])
    kept = np.flatnonzero(changes)
    return table_of(
        SCHEMA,
        day=dates(np.full(len(kept), number_of(days.last))),
        **{name: taken(rows, name, first[kept]) for name in _TASK},
        runs=runs[kept],
        changes=changes[kept],
        failed_rate=np.bincount(of[failed], minlength=count)[kept] / runs[kept],
        retried_rate=np.bincount(of[retried], minlength=count)[kept] / runs[kept],
        last_seen=seen[kept],
    )


def _last_runs(rows: pa.Table, task: Ints) -> Ints:
    """Return the newest attempts of the last runs of each task, by task and in order of time."""
    attempt, run = ints(rows, "attempt"), ints(rows, "instance_id")
    order = np.lexsort((attempt, run, task))
    is_newest = np.append((np.diff(run[order]) != 0) | (np.diff(task[order]) != 0), True)
    newest = order[is_newest[: len(order)]]
    finished, attempt_id = ints(rows, "finished_at"), ints(rows, "attempt_id")
    by_end = np.lexsort((attempt_id[newest], finished[newest], task[newest]))
    newest = newest[by_end]
    of = task[newest]
    ends = np.cumsum(np.bincount(of))
    return np.asarray(newest[ends[of] - np.arange(len(of)) <= RUNS]) if len(of) else newest
