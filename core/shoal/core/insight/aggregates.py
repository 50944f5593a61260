"""Aggregates: of each workflow and day, what views need, without its tasks.

The loader computes them from the rows of a result and stores them beside these. Views over weeks
read only them: a row in place of one for each task. Both ways give the same numbers, so a result
that has no aggregates is read by its rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from shoal.core.insight.days import TRIGGERS, Cost, CostBlock, RunDay, TaskDay, tasks_of

T = TypeVar("T")
Name = tuple[str, str]  # project and workflow
Rows = Sequence[Mapping[str, Any]]
Values = Sequence[Any]


@dataclass(frozen=True)
class Aggregation(Generic[T]):
    """How the rows of a job's result become one value for each workflow, stored or not.

    ``of``: from the rows of one workflow. ``written``: as rows to be stored; ``read``: from these
    rows of all workflows, which follow each other. So many columns are ``texts``, the next ones are
    ``counts``, which are never NULL, and then come numbers.
    """

    job: str
    columns: tuple[str, ...]
    texts: int
    counts: int
    of: Callable[[Rows], T]
    written: Callable[[Name, T], Iterable[Values]]
    read: Callable[[Sequence[Values]], dict[Name, T]]

    def values(self, parts: Iterable[Sequence[Values]]) -> dict[Name, T] | None:
        """Return what was stored; None: not the columns that are needed.

        Each part is the names of its columns, and rows. Raises TypeError, ValueError: it is
        damaged.
        """
        rows: list[Values] = []
        for part in parts:
            if not part or tuple(part[0]) != self.columns:
                return None
            rows += part[1:]
        for number, column in enumerate(zip(*rows, strict=True)):
            if number < self.texts:
                "".join(column)
            else:
                sum(column if number < self.texts + self.counts else filter(None, column))
        return self.read(rows)


def _run_day(rows: Rows) -> RunDay:
    [row] = rows
    day = RunDay.of(row)
    _check((*day[:_RUNS], *day.by_trigger), day[_RUNS + 1 :])
    return day


def _task_day(rows: Rows) -> TaskDay:
    """Return all tasks as one."""
    day = tasks_of(TaskDay.of(row) for row in rows)
    _check(day[:_ATTEMPTS], day[_ATTEMPTS:])
    return day


def _check(counts: Values, numbers: Values) -> None:
    """Check that there are numbers alone, and counts are not NULL. Raises TypeError."""
    sum(counts)
    sum(filter(None, numbers))


_RUNS, _TRIGGERS = RunDay._fields.index("by_trigger"), len(TRIGGERS)
_ATTEMPTS = TaskDay._fields.index("duration_p50")


def _written_runs(name: Name, day: RunDay) -> Iterator[Values]:
    yield *name, *day[:_RUNS], *day.by_trigger, *day[_RUNS + 1 :]


def _read_runs(rows: Sequence[Values]) -> dict[Name, RunDay]:
    first, last = 2 + _RUNS, 2 + _RUNS + _TRIGGERS
    return {
        (row[0], row[1]): RunDay._make((*row[2:first], tuple(row[first:last]), *row[last:]))
        for row in rows
    }


def _written_tasks(name: Name, day: TaskDay) -> Iterator[Values]:
    yield *name, *day


def _read_tasks(rows: Sequence[Values]) -> dict[Name, TaskDay]:
    return {(row[0], row[1]): TaskDay._make(row[2:]) for row in rows}


def _written_costs(name: Name, block: CostBlock) -> Iterator[Values]:
    """Yield a row for all attempts, and then one for each label: there may be thousands."""
    yield *name, "", "", *block.total
    for label, cost in block.labels.items():
        yield *name, *label, *cost


def _read_costs(rows: Sequence[Values]) -> dict[Name, CostBlock]:
    found: dict[Name, CostBlock] = {}
    labels: dict[Name, Cost] = {}
    for project, workflow, label, value, *used in rows:
        cost = Cost._make(used)
        if label or value:
            labels[label, value] = cost
        else:
            labels = {}
            found[project, workflow] = CostBlock(cost, labels)
    return found


_NAMES = ("project", "workflow")
RUN_DAYS = Aggregation(
    job="workflow_days",
    columns=(
        *_NAMES,
        *RunDay._fields[:_RUNS],
        *(f"by_{name}" for name in TRIGGERS),
        *RunDay._fields[_RUNS + 1 :],
    ),
    texts=2,
    counts=_RUNS + _TRIGGERS,
    of=_run_day,
    written=_written_runs,
    read=_read_runs,
)
TASK_DAYS = Aggregation(
    job="task_days",
    columns=(*_NAMES, *TaskDay._fields),
    texts=2,
    counts=_ATTEMPTS,
    of=_task_day,
    written=_written_tasks,
    read=_read_tasks,
)
COSTS = Aggregation(
    job="costs",
    columns=(*_NAMES, "label", "value", *Cost._fields),
    texts=4,
    counts=len(Cost._fields),
    of=CostBlock.of,
    written=_written_costs,
    read=_read_costs,
)
