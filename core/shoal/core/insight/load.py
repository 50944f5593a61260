"""How full the cluster is: by hour of the week, by worker, and what is to come."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from shoal.core.insight.windows import added, highest, rate

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """An hour of a weekday (0: Monday), UTC, over ``days`` such days.

    Means count an hour in which nothing ran or waited as 0.
    """

    weekday: int
    hour: int
    days: int
    running_mean: float
    running_max: int
    waiting_mean: float
    waiting_max: int
    needed_max: int


@dataclass(frozen=True)
class WorkerLoad:
    """A worker in a window. ``utilisation``: of its slots, in the hours in which it worked."""

    worker: str
    days: int
    attempts: int
    failed: int
    lost: int
    busy_s: float
    hours: int
    slots: int
    utilisation: float | None


def heat_map(days: Iterable[date], rows: Iterable[tuple[date, Row]]) -> dict[str, list[Cell]]:
    """Return, for each worker group, the hours of the week that have a day in the window.

    ``days``: those of the window that have results; ``rows``: of ``concurrency_hours``.
    """
    number: dict[int, int] = defaultdict(int)
    for day in set(days):
        number[day.weekday()] += 1
    groups: dict[str, dict[tuple[int, int], list[Row]]] = {}
    for day, row in rows:
        cells = groups.setdefault(row["worker_group"], {})
        cells.setdefault((day.weekday(), row["hour"]), []).append(row)
    return {
        group: [
            _cell(weekday, hour, number[weekday], cells.get((weekday, hour), ()))
            for weekday in sorted(number)
            for hour in range(24)
        ]
        for group, cells in sorted(groups.items())
    }


def _cell(weekday: int, hour: int, days: int, rows: Sequence[Row]) -> Cell:
    return Cell(
        weekday=weekday,
        hour=hour,
        days=days,
        running_mean=sum(row["running_mean"] or 0.0 for row in rows) / days,
        running_max=max((row["running_max"] or 0 for row in rows), default=0),
        waiting_mean=sum(row["waiting_mean"] or 0.0 for row in rows) / days,
        waiting_max=max((row["waiting_max"] or 0 for row in rows), default=0),
        needed_max=max((row["needed_max"] or 0 for row in rows), default=0),
    )


def worker_loads(rows: Iterable[Row]) -> list[WorkerLoad]:
    """Return the workers of rows of ``worker_days``, the busiest first."""
    by_worker: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_worker[row["worker"]].append(row)
    found = [_worker(worker, some) for worker, some in by_worker.items()]
    return sorted(found, key=lambda one: (-one.busy_s, one.worker))


def _worker(worker: str, rows: Sequence[Row]) -> WorkerLoad:
    offered = sum((row["hours"] or 0) * (row["slots"] or 0) * 3600.0 for row in rows)
    busy = added(row["busy_s"] for row in rows) or 0.0
    return WorkerLoad(
        worker=worker,
        days=len(rows),
        attempts=sum(row["attempts"] for row in rows),
        failed=sum(row["failed"] for row in rows),
        lost=sum(row["lost"] for row in rows),
        busy_s=busy,
        hours=sum(row["hours"] or 0 for row in rows),
        slots=int(highest(row["slots"] for row in rows) or 0),
        utilisation=rate(busy, offered),
    )
