"""Tasks that fail now and then, which says more of the task than of what it works on."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.core.runs.states import TaskState
from shoal.insight.jobs.columns import micros, within
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.batches import codes, whole

WINDOW_DAYS = 60
RUNS = 20
_TASK = ("project", "workflow", "task")
_SCHEMA = (
    "project string, workflow string, task string, runs bigint, changes bigint, "
    "failed_rate double, retried_rate double, last_seen timestamp"
)


def flapping(attempts: DataFrame, days: Days) -> DataFrame:
    """Return a row, of the last of the days, for each task whose outcome has changed.

    Looked at are the last 20 runs, of at most 60 days, in which the task SUCCEEDED or FAILED in the
    end. ``changes``: how many of them ended otherwise than the one before. ``retried_rate``: the
    share that succeeded after attempts that had failed or were lost.
    """
    ended = F.col("state").isin(TaskState.SUCCEEDED, TaskState.FAILED)
    rows = attempts.where(within("finished_at", days.up_to_last(WINDOW_DAYS)) & ended).select(
        *_TASK,
        "instance_id",
        "attempt",
        "attempt_id",
        micros("finished_at").alias("finished"),
        (F.col("state") == TaskState.FAILED).alias("has_failed"),
        ((F.col("attempt") > 1) & F.col("waiting_since").isNull()).alias("is_retry"),
    )
    found = rows.repartition("project", "workflow").mapInArrow(_judged, _SCHEMA)
    return found.select(F.lit(days.last).alias("day"), "*")


def _judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Judge the tasks of a partition, which has all rows of each of them."""
    table = whole(batches)
    if table is None:
        return
    first, task = codes(table, _TASK)
    names = [table[name].combine_chunks().take(pa.array(first)) for name in _TASK]
    columns = {name: table[name].to_numpy() for name in table.column_names[len(_TASK) :]}
    # The newest attempt of a task in each run, and of these the last runs of each task.
    order = np.lexsort((columns["attempt"], columns["instance_id"], task))
    run = columns["instance_id"][order]
    is_newest = np.append((np.diff(run) != 0) | (np.diff(task[order]) != 0), True)
    newest = order[is_newest]
    by_end = np.lexsort((columns["attempt_id"][newest], columns["finished"][newest], task[newest]))
    newest = newest[by_end]
    of = task[newest]
    count = len(first)
    ends = np.cumsum(np.bincount(of, minlength=count))
    last = newest[ends[of] - np.arange(len(of)) <= RUNS]
    of = task[last]
    failed, retry = columns["has_failed"][last], columns["is_retry"][last]
    changed = np.append(False, (np.diff(failed) != 0) & (np.diff(of) == 0))
    runs = np.bincount(of, minlength=count)
    changes = np.bincount(of[changed], minlength=count)
    seen = np.zeros(count, dtype=np.int64)
    np.maximum.at(seen, of, columns["finished"][last])
    kept = np.flatnonzero(changes)
    yield pa.RecordBatch.from_arrays(
        [
            *(one.take(pa.array(kept)) for one in names),
            pa.array(runs[kept]),
            pa.array(changes[kept]),
            pa.array(np.bincount(of[failed], minlength=count)[kept] / runs[kept]),
            pa.array(np.bincount(of[retry & ~failed], minlength=count)[kept] / runs[kept]),
            pa.array(seen[kept]).cast(pa.timestamp("us", tz="UTC")),
        ],
        names=[field.split()[0] for field in _SCHEMA.split(", ")],
    )
