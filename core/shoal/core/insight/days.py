"""What is kept of rows of days, and how several of them become one.

They are tuples, since there is one for each workflow and day: 1,000 workflows have 28,000 in four
weeks.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from shoal.core.insight.windows import added, highest, weighted

Row = Mapping[str, Any]
TRIGGERS = ("schedule", "backfill", "parent", "rerun", "request")


class RunDay(NamedTuple):
    """Runs that ended on a day, or in a window. Percentiles and means in seconds."""

    runs: int = 0
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    late: int = 0
    by_trigger: tuple[int, ...] = (0,) * len(TRIGGERS)
    duration_p50: float | None = None
    duration_p95: float | None = None
    duration_mean: float | None = None
    duration_max: float | None = None
    admission_p50: float | None = None
    admission_p95: float | None = None
    admission_mean: float | None = None
    critical_p50: float | None = None

    @classmethod
    def of(cls, row: Row) -> "RunDay":
        """Return what is kept of a row of ``workflow_days``."""
        return cls._make((*_RUN_COUNTS(row), _TRIGGERS(row), *_RUN_NUMBERS(row)))


_RUN_COUNT_NAMES, _RUN_NUMBER_NAMES = RunDay._fields[:5], RunDay._fields[6:]
_RUN_COUNTS, _RUN_NUMBERS = itemgetter(*_RUN_COUNT_NAMES), itemgetter(*_RUN_NUMBER_NAMES)
_TRIGGERS = itemgetter(*(f"by_{name}" for name in TRIGGERS))


class TaskDay(NamedTuple):
    """Attempts that ended on a day, or in a window. Percentiles and means in seconds."""

    attempts: int = 0
    succeeded: int = 0
    failed: int = 0
    lost: int = 0
    killed: int = 0
    skipped: int = 0
    retries: int = 0
    duration_p50: float | None = None
    duration_p95: float | None = None
    duration_mean: float | None = None
    duration_max: float | None = None
    wait_p50: float | None = None
    wait_p95: float | None = None
    wait_mean: float | None = None
    wait_max: float | None = None
    busy_s: float | None = None
    cpu_s: float | None = None
    max_rss_kb: float | None = None

    @classmethod
    def of(cls, row: Row) -> "TaskDay":
        """Return what is kept of a row of ``task_days``."""
        return cls._make(_TASK(row))


_TASK = itemgetter(*TaskDay._fields)
_TASK_COUNT_NAMES, _TASK_NUMBER_NAMES = TaskDay._fields[:7], TaskDay._fields[7:15]


class Cost(NamedTuple):
    """What attempts have used: processor time, memory in 10⁹ bytes · s, slots in s."""

    attempts: int = 0
    cpu_s: float = 0.0
    memory_gb_s: float = 0.0
    slot_s: float = 0.0

    @classmethod
    def of(cls, row: Row) -> "Cost":
        """Return what is kept of a row of ``costs``."""
        return cls(*(row[name] or 0 for name in cls._fields))


def runs_of(days: Iterable[RunDay]) -> RunDay:
    """Return several days, or workflows, as one."""
    some = list(days)
    if len(some) == 1:
        return some[0]
    counts = [sum(getattr(one, name) for one in some) for name in _RUN_COUNT_NAMES]
    triggers = zip(*(one.by_trigger for one in some), strict=True)
    numbers = _numbers(_RUN_NUMBER_NAMES, some, [one.runs for one in some])
    by_trigger = tuple(map(sum, triggers)) or RunDay().by_trigger
    return RunDay._make((*counts, by_trigger, *numbers))


def tasks_of(days: Iterable[TaskDay]) -> TaskDay:
    """Return several days, or tasks, as one."""
    some = list(days)
    if len(some) == 1:
        return some[0]
    counts = [sum(getattr(one, name) for one in some) for name in _TASK_COUNT_NAMES]
    numbers = _numbers(_TASK_NUMBER_NAMES, some, [one.attempts for one in some])
    busy_s, cpu_s = added(one.busy_s for one in some), added(one.cpu_s for one in some)
    rss = highest(one.max_rss_kb for one in some)
    return TaskDay._make((*counts, *numbers, busy_s, cpu_s, rss))


def costs_of(days: Iterable[Cost]) -> Cost:
    """Return several days, tasks or workflows as one."""
    some = list(days)
    return Cost(*(sum(column) for column in zip(*some, strict=True))) if some else Cost()


def _numbers(
    names: Sequence[str], days: Sequence[Any], weights: Sequence[int]
) -> list[float | None]:
    found = []
    for name in names:
        values = [getattr(one, name) for one in days]
        is_highest = name.endswith("_max")
        found.append(highest(values) if is_highest else weighted(zip(values, weights, strict=True)))
    return found
