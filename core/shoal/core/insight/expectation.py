"""When an open run will end, as far as its past tells.

Of the whole run: its start and the median of runs that started at such a time. Of its tasks: the
longest of all ways through what is open, each task with its median wait and its median duration.
The tasks know more, since they know how far the run has come, so they count where all open ones
have a baseline.

What has been going on for a while is one of those that took at least so long, so not their median
counts, but the median of these: as if durations were log-normal with the median and the p95 of the
baseline. So nothing is expected in the past, and what is slow is not expected to end at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import exp, log
from statistics import NormalDist

from shoal.core.definition.dag import topological_order
from shoal.core.insight.baselines import RUN, Baseline, Baselines
from shoal.core.runs.records import Instance, TaskInstance
from shoal.core.runs.states import FINISHED_TASK, TaskState, WorkflowState
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.findings import Layer, RunFinding
from shoal.core.timing.durations import format_duration

_T = TaskState


class Basis(StrEnum):
    """What an expected end is made of."""

    RUN = "run"  # the runs before it
    TASKS = "tasks"  # its open tasks


@dataclass(frozen=True)
class ExpectedRun:
    """When a run will end, and from when on it takes longer than runs before it.

    None: it has not begun or is held, or nothing is known.
    """

    end_at: datetime | None = None
    late_after_at: datetime | None = None
    basis: Basis | None = None
    baseline: Baseline | None = None  # of the whole run


NOTHING = ExpectedRun()


def of_run(run: Instance, baselines: Baselines, now: datetime) -> ExpectedRun:
    """Return what is expected by the runs before it."""
    started = run.started_at
    if started is None or run.finished_at is not None:
        return NOTHING
    usual = baselines.of(RUN, started)
    if usual is None:
        return NOTHING
    late_after_at = _after(started, usual.late_after_s)
    if run.state is not WorkflowState.RUNNING:
        return ExpectedRun(None, late_after_at, None, usual)
    return ExpectedRun(_end_of(started, usual, now), late_after_at, Basis.RUN, usual)


def of_tasks(
    run: Instance,
    upstream: Mapping[str, Sequence[str]],
    newest: Mapping[str, TaskInstance],
    baselines: Baselines,
    now: datetime,
) -> ExpectedRun:
    """Return what is expected by the open tasks, else by the runs before it.

    ``newest``: the newest attempt of each task.
    """
    by_run = of_run(run, baselines, now)
    if run.started_at is None or run.state is not WorkflowState.RUNNING:
        return by_run
    ends: dict[str, datetime] = {}
    for task in topological_order(upstream):
        ready = max((ends[one] for one in upstream.get(task, ()) if one in ends), default=now)
        end = _end(newest.get(task), max(ready, now), baselines, now)
        if end is None:
            return by_run
        ends[task] = end
    end_at = max([now, *ends.values()])
    return ExpectedRun(end_at, by_run.late_after_at, Basis.TASKS, by_run.baseline)


def findings(expected: ExpectedRun, now: datetime) -> Iterator[RunFinding]:
    """Say what is expected of a run, for people who ask why it has not ended."""
    if expected.end_at is not None:
        usual = expected.baseline
        takes = "" if usual is None else f"usually takes {format_duration(usual.p50_s)}; "
        yield RunFinding(
            Layer.INSTANCE,
            f"{takes}expected to end at {expected.end_at.isoformat(timespec='seconds')}",
            waits=False,
            code=Code.RUN_EXPECTED,
            arguments={
                "usual_s": None if usual is None else usual.p50_s,
                "at": expected.end_at.isoformat(),
            },
        )
    if expected.late_after_at is not None and now > expected.late_after_at:
        by_s = (now - expected.late_after_at).total_seconds()
        since = expected.late_after_at
        yield RunFinding(
            Layer.INSTANCE,
            f"later than usual by {format_duration(by_s)}: since "
            f"{since.isoformat(timespec='seconds')} it takes longer than runs before it",
            waits=False,
            code=Code.RUN_SLOWER,
            arguments={"since": since.isoformat(), "by_s": by_s},
        )


def _end(
    attempt: TaskInstance | None, ready: datetime, baselines: Baselines, now: datetime
) -> datetime | None:
    """Return when a task has ended or will end; None: nothing is known.

    ``ready``: when all before it will have ended, no less than now.
    """
    if attempt is None:
        return ready  # no task of this run
    if attempt.state in FINISHED_TASK:
        return min(attempt.finished_at or now, now)
    if attempt.state is _T.RUNNING and attempt.started_at is not None:
        usual = baselines.of(attempt.task, attempt.started_at)
        return None if usual is None else _end_of(attempt.started_at, usual, now)
    begin = max(ready, attempt.due_at) if attempt.due_at is not None else ready
    usual = baselines.of(attempt.task, begin)
    if usual is None:
        return None
    wait_s = usual.wait_p50_s or 0.0
    queued = attempt.queued_at if attempt.state in (_T.QUEUED, _T.CLAIMED) else None
    start = max(now, _after(queued or begin, wait_s))
    return _after(start, usual.p50_s)


def lasting_s(usual: Baseline, elapsed_s: float) -> float:
    """Return how long something will take in all that has been going on for some seconds.

    The median of those durations of a log-normal distribution that are longer; no less than
    ``elapsed_s``.
    """
    if elapsed_s <= 0 or not 0 < usual.p50_s < usual.p95_s:
        return max(usual.p50_s, elapsed_s)
    spread = log(usual.p95_s / usual.p50_s) / _Z95
    place = min(log(elapsed_s / usual.p50_s) / spread, _FARTHEST)
    of_longer = _NORMAL.inv_cdf((1 + _NORMAL.cdf(place)) / 2)
    return max(elapsed_s, elapsed_s * exp(spread * (of_longer - place)))


_NORMAL = NormalDist()
_Z95 = _NORMAL.inv_cdf(0.95)
_FARTHEST = 6.0  # standard deviations; what is beyond is taken for this far


def _end_of(started: datetime, usual: Baseline, now: datetime) -> datetime:
    elapsed_s = (now - started).total_seconds()
    return max(now, _after(started, lasting_s(usual, elapsed_s)))


def _after(at: datetime, seconds: float) -> datetime:
    try:
        return at + timedelta(seconds=seconds)
    except OverflowError:
        return at  # a baseline of centuries tells nothing
