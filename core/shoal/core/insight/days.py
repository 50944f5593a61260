"""What is kept of rows of days, and how several of them become one.

They are tuples, since there is one for each workflow and day: 1,000 workflows have 28,000 in four
weeks.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter
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


class CostBlock(NamedTuple):
    """What a workflow has used on a day; ``labels``: of runs that had them, by key and value."""

    total: Cost
    labels: Mapping[tuple[str, str], Cost]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "CostBlock":
        """Return what is kept of the rows of a workflow in ``costs``."""
        labels: dict[tuple[str, str], list[Cost]] = {}
        for row in rows:
            labels.setdefault((row["label"], row["value"]), []).append(Cost.of(row))
        total = costs_of(labels.pop(("", ""), ()))
        return cls(total, {label: costs_of(some) for label, some in labels.items()})


def runs_of(days: Iterable[RunDay]) -> RunDay:
    """Return several days, or workflows, as one."""
    some = list(days)
    if len(some) == 1:
        return some[0]
    if not some:
        return RunDay()
    columns = [*zip(*some, strict=True)]
    triggers = tuple(map(sum, zip(*columns[5], strict=True)))
    numbers = _numbers(_RUN_NUMBER_NAMES, columns[6:], columns[0])
    return RunDay._make((*map(sum, columns[:5]), triggers, *numbers))


def tasks_of(days: Iterable[TaskDay]) -> TaskDay:
    """Return several days, or tasks, as one."""
    some = list(days)
    if len(some) == 1:
        return some[0]
    if not some:
        return TaskDay()
    columns = [*zip(*some, strict=True)]
    numbers = _numbers(_TASK_NUMBER_NAMES, columns[7:15], columns[0])
    last = (added(columns[15]), added(columns[16]), highest(columns[17]))
    return TaskDay._make((*map(sum, columns[:7]), *numbers, *last))


def costs_of(days: Iterable[Cost]) -> Cost:
    """Return several days, tasks or workflows as one.

    There may be 28,000: so many iterators of ``zip`` would have garbage collected each time.
    """
    attempts, cpu_s, memory_gb_s, slot_s = Cost()
    for one in days:
        attempts += one[0]
        cpu_s += one[1]
        memory_gb_s += one[2]
        slot_s += one[3]
    return Cost(attempts, cpu_s, memory_gb_s, slot_s)


def mean_of(days: Sequence[RunDay] | Sequence[TaskDay], name: str) -> float | None:
    """Return a mean over several days, or workflows: weighted by the runs or attempts of each."""
    value, weight = attrgetter(name), itemgetter(0)
    return weighted(zip(map(value, days), map(weight, days), strict=True))


def _numbers(
    names: Sequence[str], columns: Sequence[Sequence[Any]], weights: Sequence[int]
) -> list[float | None]:
    return [
        highest(column) if name.endswith("_max") else weighted(zip(column, weights, strict=True))
        for name, column in zip(names, columns, strict=True)
    ]
