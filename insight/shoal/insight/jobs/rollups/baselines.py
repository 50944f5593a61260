"""What durations and waits are to be expected of each workflow and task, and how true that is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from shoal.core.runs.states import TaskState, WorkflowState
from shoal.insight.jobs.columns import (
    DAY_US,
    EPOCH_WEEKDAY,
    HOUR_US,
    chosen,
    dates,
    number_of,
    optional,
    result_schema,
    seconds,
    table_of,
    within,
)
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.arrays import groups, ints, is_one_of, is_there, taken
from shoal.insight.jobs.kernels.expectations import BaselineArrays, late_after
from shoal.insight.jobs.kernels.expectations import baselines as baselines_of
from shoal.insight.jobs.kernels.expectations import chosen as counting
from shoal.insight.jobs.kernels.statistics import Ints, Numbers, quantiles
from shoal.insight.jobs.rows.parts import RowsPart

WINDOW_DAYS = 60
TEST_DAYS = 7
SCHEMA = result_schema("baselines")
ERRORS_SCHEMA = result_schema("baseline_errors")
_WORKFLOW = ("project", "workflow")
_TASK = (*_WORKFLOW, "task")
COLUMNS = (*_TASK, "state", "queued_at", "started_at", "finished_at")
_OF_RUNS = (*_WORKFLOW, "state", "created_at", "started_at", "finished_at")


def baselines(part: RowsPart, days: Days) -> pa.Table:
    """Return, as of the last of the days, the baselines of each workflow (task ``''``) and task.

    They are of what SUCCEEDED in the 60 days that end with it. ``weekday`` (0: Monday) and ``hour``
    are of the start, UTC; -1: any. Rows of an hour of a weekday, of an hour and of a weekday are
    there if they have 20 values or more; that of any time always. Who looks for one takes the first
    of these four that is there. A run waits from its creation to its start, a task from its
    queueing. ``late_after_s`` is max(1.5 p95, p50 + 3 MAD): what runs for longer is late.
    """
    tasks = _succeeded(part.attempts(*COLUMNS), TaskState.SUCCEEDED, days)
    return pa.concat_tables(
        [
            _expected(tasks, _Subjects.of(tasks, _TASK), "queued_at", days),
            _expected(runs := _runs(part, days), _Subjects.of(runs, _WORKFLOW), "created_at", days),
        ]
    )


def baseline_errors(part: RowsPart, days: Days) -> pa.Table:
    """Return, as of the last of the days, how well baselines have predicted durations of runs.

    Each of the last 7 days is predicted from the days before it, of the same 60. ``runs``: how
    many predictions there were; ``error_p50_s``: the median of their absolute errors,
    ``error_share_p50`` of these divided by the real duration; ``within_p95``: the share of runs
    that took no longer than p95; ``late_share``: of those that took longer than ``late_after_s``.
    """
    rows = _runs(part, days)
    subjects = _Subjects.of(rows, _WORKFLOW)
    durations = seconds(rows, "started_at", "finished_at")
    day = ints(rows, "finished_at") // DAY_US
    last = number_of(days.last)
    tested: list[tuple[Ints, Numbers, Numbers, Numbers, Numbers]] = []
    for number in range(last - TEST_DAYS + 1, last + 1):
        past, now = day < number, day == number
        known = baselines_of(
            subjects.code[past], subjects.weekday[past], subjects.hour[past], durations[past]
        )
        at = counting(known, subjects.code[now], subjects.weekday[now], subjects.hour[now])
        has = at >= 0
        tested.append(_compared(known, at[has], subjects.code[now][has], durations[now][has]))
    columns = (np.concatenate(one) for one in zip(*tested, strict=True))
    code, error, share, within_p95, late = columns
    count = len(subjects.first)
    runs, (error_p50,) = quantiles(code, error, count, (0.5,))
    _, (share_p50,) = quantiles(code, share, count, (0.5,))
    seen = np.flatnonzero(runs)
    return table_of(
        ERRORS_SCHEMA,
        day=dates(np.full(len(seen), last)),
        **{name: taken(rows, name, subjects.first[seen]) for name in _WORKFLOW},
        runs=runs[seen],
        error_p50_s=error_p50[seen],
        error_share_p50=optional(share_p50[seen]),
        within_p95=np.bincount(code, within_p95, count)[seen] / runs[seen],
        late_share=np.bincount(code, late, count)[seen] / runs[seen],
    )


def _runs(part: RowsPart, days: Days) -> pa.Table:
    return _succeeded(part.instances(*_OF_RUNS), WorkflowState.SUCCEEDED, days)


def _succeeded(rows: pa.Table, state: str, days: Days) -> pa.Table:
    """Return what has started and SUCCEEDED in the 60 days."""
    is_near = within(rows, "finished_at", days.up_to_last(WINDOW_DAYS))
    return chosen(rows, is_near & is_one_of(rows, "state", state) & is_there(rows, "started_at"))


@dataclass(frozen=True)
class _Subjects:
    """Which subject each row is of, and when it started. ``first``: a row of each subject."""

    first: Ints
    code: Ints
    weekday: Ints
    hour: Ints

    @classmethod
    def of(cls, rows: pa.Table, names: Sequence[str]) -> "_Subjects":
        first, code = groups(rows, names)
        at = ints(rows, "started_at") // HOUR_US
        return cls(first, code, (at // 24 + EPOCH_WEEKDAY) % 7, at % 24)


def _expected(rows: pa.Table, subjects: _Subjects, since: str, days: Days) -> pa.Table:
    of = subjects.code, subjects.weekday, subjects.hour
    found = baselines_of(*of, seconds(rows, "started_at", "finished_at"))
    waits = baselines_of(*of, seconds(rows, since, "started_at"))
    # The wait of the same time, or else what counts for it; most have both.
    at = counting(waits, found.subject, found.weekday, found.hour)
    has = at >= 0
    first = subjects.first[found.subject]
    names = {name: taken(rows, name, first) for name in _TASK if name in rows.column_names}
    of_workflow = {"task": pa.array([""] * len(first), pa.string())}
    wait = {
        f"wait_{name}": pa.array(
            values[at] if len(values) else np.zeros(len(at), values.dtype), mask=~has
        )
        for name, values in {
            "n": waits.number,
            "p50_s": waits.p50,
            "p95_s": waits.p95,
            "mad_s": waits.mad,
        }.items()
    }
    return table_of(
        SCHEMA,
        day=dates(np.full(len(first), number_of(days.last))),
        **(of_workflow | names),
        weekday=found.weekday,
        hour=found.hour,
        n=found.number,
        p50_s=found.p50,
        p95_s=found.p95,
        mad_s=found.mad,
        late_after_s=late_after(found.p50, found.p95, found.mad),
        **wait,
    )


def _compared(
    known: BaselineArrays, at: Ints, code: Ints, real: Numbers
) -> tuple[Ints, Numbers, Numbers, Numbers, Numbers]:
    """Return codes, absolute errors, these by the real value, whether within p95, whether late."""
    p50, p95, mad = known.p50[at], known.p95[at], known.mad[at]
    error = np.abs(real - p50)
    share = np.divide(error, real, out=np.full_like(error, np.nan), where=real > 0)
    is_late = real > late_after(p50, p95, mad)
    return code, error, share, (real <= p95).astype(np.float64), is_late.astype(np.float64)
