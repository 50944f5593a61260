"""What durations and waits are to be expected of each workflow and task, and how true that is."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shoal.core.runs.states import TaskState, WorkflowState
from shoal.insight.jobs.columns import DAY_US, HOUR_US, micros, seconds, within
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.batches import codes, numbers, whole
from shoal.insight.jobs.kernels.expectations import Baselines, chosen, late_after
from shoal.insight.jobs.kernels.expectations import baselines as baselines_of
from shoal.insight.jobs.kernels.grouped import Ints, Numbers, quantiles

WINDOW_DAYS = 60
TEST_DAYS = 7
_SUBJECT = ("project", "workflow", "task")
_EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday
_SCHEMA = (
    "project string, workflow string, task string, weekday int, hour int, n bigint, p50_s double, "
    "p95_s double, mad_s double, late_after_s double, wait_n bigint, wait_p50_s double, "
    "wait_p95_s double, wait_mad_s double"
)
_ERRORS_SCHEMA = (
    "project string, workflow string, runs bigint, error_p50_s double, error_share_p50 double, "
    "within_p95 double, late_share double"
)
_Kernel = Callable[[pa.Table], Iterator[pa.RecordBatch]]


def baselines(attempts: DataFrame, instances: DataFrame, days: Days) -> DataFrame:
    """Return, as of the last of the days, the baselines of each workflow (task ``''``) and task.

    They are of what SUCCEEDED in the 60 days that end with it. ``weekday`` (0: Monday) and ``hour``
    are of the start, UTC; -1: any. Rows of an hour of a weekday, of an hour and of a weekday are
    there if they have 20 values or more; that of any time always. Who looks for one takes the first
    of these four that is there. A run waits from its creation to its start, a task from its
    queueing. ``late_after_s`` is max(1.5 p95, p50 + 3 MAD): what runs for longer is late.
    """
    window = within("finished_at", days.up_to_last(WINDOW_DAYS))
    of_tasks = attempts.where(window & (F.col("state") == TaskState.SUCCEEDED)).select(
        *_SUBJECT, *_values("queued_at")
    )
    of_runs = instances.where(window & (F.col("state") == WorkflowState.SUCCEEDED)).select(
        "project", "workflow", F.lit("").alias("task"), *_values("created_at")
    )
    found = _grouped(of_tasks, _expected, _SCHEMA).unionByName(
        _grouped(of_runs, _expected, _SCHEMA)
    )
    return found.select(F.lit(days.last).alias("day"), "*")


def baseline_errors(instances: DataFrame, days: Days) -> DataFrame:
    """Return, as of the last of the days, how well baselines have predicted durations of runs.

    Each of the last 7 days is predicted from the days before it, of the same 60. ``runs``: how
    many predictions there were; ``error_p50_s``: the median of their absolute errors,
    ``error_share_p50`` of these divided by the real duration; ``within_p95``: the share of runs
    that took no longer than p95; ``late_share``: of those that took longer than ``late_after_s``.
    """
    window = within("finished_at", days.up_to_last(WINDOW_DAYS))
    rows = instances.where(window & (F.col("state") == WorkflowState.SUCCEEDED)).select(
        "project",
        "workflow",
        F.lit("").alias("task"),
        *_values("created_at"),
        F.floor(micros("finished_at") / F.lit(DAY_US)).alias("number"),
    )
    last = days.last.toordinal() - _UNIX_ORDINAL
    found = _grouped(rows, _Backtest(last), _ERRORS_SCHEMA)
    return found.select(F.lit(days.last).alias("day"), "*")


_UNIX_ORDINAL = 719_163  # of 1970-01-01


def _values(since: str) -> list[Column]:
    start = micros("started_at")
    return [
        F.floor(start / F.lit(HOUR_US)).alias("at"),
        seconds("started_at", "finished_at").alias("duration_s"),
        seconds(since, "started_at").alias("wait_s"),
    ]


def _grouped(rows: DataFrame, kernel: _Kernel, schema: str) -> DataFrame:
    """Apply a kernel to all rows of some workflows at a time."""

    def of_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = whole(batches)
        if table is not None:
            yield from kernel(table)

    placed = rows.where(F.col("at").isNotNull()).repartition("project", "workflow")
    return placed.mapInArrow(of_partition, schema)


@dataclass(frozen=True)
class _Subjects:
    """The rows of a partition by subject. ``names``: the columns of each subject."""

    code: Ints
    names: Sequence[pa.Array]
    weekday: Ints
    hour: Ints

    @classmethod
    def of(cls, table: pa.Table) -> "_Subjects":
        first, code = codes(table, _SUBJECT)
        at = table["at"].to_numpy()
        return cls(
            code=code,
            names=[table[name].combine_chunks().take(pa.array(first)) for name in _SUBJECT],
            weekday=(at // 24 + _EPOCH_WEEKDAY) % 7,
            hour=at % 24,
        )


def _expected(table: pa.Table) -> Iterator[pa.RecordBatch]:
    subjects = _Subjects.of(table)
    found = baselines_of(
        subjects.code, subjects.weekday, subjects.hour, numbers(table, "duration_s")
    )
    waits = baselines_of(subjects.code, subjects.weekday, subjects.hour, numbers(table, "wait_s"))
    # The wait of the same time, or else what counts for it; most have both.
    at = chosen(waits, found.subject, found.weekday, found.hour)
    has = at >= 0
    yield pa.RecordBatch.from_arrays(
        [
            *(names.take(pa.array(found.subject)) for names in subjects.names),
            pa.array(found.weekday.astype(np.int32)),
            pa.array(found.hour.astype(np.int32)),
            pa.array(found.number),
            pa.array(found.p50),
            pa.array(found.p95),
            pa.array(found.mad),
            pa.array(late_after(found.p50, found.p95, found.mad)),
            *(
                pa.array(values[at] if len(values) else np.zeros(len(at), values.dtype), mask=~has)
                for values in (waits.number, waits.p50, waits.p95, waits.mad)
            ),
        ],
        names=_names(_SCHEMA),
    )


@dataclass(frozen=True)
class _Backtest:
    """Predicts each of the days before and with ``last`` (days since 1970)."""

    last: int

    def __call__(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        subjects = _Subjects.of(table)
        durations, day = numbers(table, "duration_s"), table["number"].to_numpy()
        tested: list[tuple[Ints, Numbers, Numbers, Numbers, Numbers]] = []
        for number in range(self.last - TEST_DAYS + 1, self.last + 1):
            past, now = day < number, day == number
            known = baselines_of(
                subjects.code[past], subjects.weekday[past], subjects.hour[past], durations[past]
            )
            at = chosen(known, subjects.code[now], subjects.weekday[now], subjects.hour[now])
            has = at >= 0
            tested.append(_compared(known, at[has], subjects.code[now][has], durations[now][has]))
        code, error, share, within_p95, late = (
            np.concatenate(one) for one in zip(*tested, strict=True)
        )
        count = len(subjects.names[0])
        runs, (error_p50,) = quantiles(code, error, count, (0.5,))
        _, (share_p50,) = quantiles(code, share, count, (0.5,))
        seen = np.flatnonzero(runs)
        if not len(seen):
            return
        yield pa.RecordBatch.from_arrays(
            [
                *(names.take(pa.array(seen)) for names in subjects.names[:2]),
                pa.array(runs[seen]),
                pa.array(error_p50[seen]),
                pa.array(share_p50[seen], mask=np.isnan(share_p50[seen])),
                *(
                    pa.array(np.bincount(code, one, count)[seen] / runs[seen])
                    for one in (within_p95, late)
                ),
            ],
            names=_names(_ERRORS_SCHEMA),
        )


def _compared(
    known: Baselines, at: Ints, code: Ints, real: Numbers
) -> tuple[Ints, Numbers, Numbers, Numbers, Numbers]:
    """Return codes, absolute errors, these by the real value, whether within p95, whether late."""
    p50, p95, mad = known.p50[at], known.p95[at], known.mad[at]
    error = np.abs(real - p50)
    share = np.divide(error, real, out=np.full_like(error, np.nan), where=real > 0)
    is_late = real > late_after(p50, p95, mad)
    return code, error, share, (real <= p95).astype(np.float64), is_late.astype(np.float64)


def _names(schema: str) -> list[str]:
    return [field.split()[0] for field in schema.split(", ")]
