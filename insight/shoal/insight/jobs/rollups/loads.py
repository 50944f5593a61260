"""How many attempts ran and waited at the same time, in each hour: exact, by sweeps.

What ``workers``, ``concurrency`` and ``capacity`` are made from. An attempt waits in the queue of
its worker group from ``queued_at`` to ``started_at``, and runs from there to ``finished_at``; what
a master works on itself has no worker, and is left out. An attempt counts in each hour that it
touches, with the part that is in it.

Each attempt goes to the days that it touches (``Sorted``), and each day is swept by itself
(``Swept``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa

from shoal.core.runs.states import TaskState
from shoal.insight.jobs.columns import DAY_US, HOUR_US, chosen, number_of, schema_of
from shoal.insight.jobs.days import LONGEST_DAYS, Days
from shoal.insight.jobs.kernels.arrays import coded, flags, ints, is_one_of, is_there
from shoal.insight.jobs.kernels.statistics import Ints
from shoal.insight.jobs.kernels.sweeps import highest, totals
from shoal.insight.jobs.rows.transfer import read, written

WORKER, RUNNING, WAITING, NEEDED = "worker", "running", "waiting", "needed"
COLUMNS = ("worker_group", "worker", "state", "queued_at", "started_at", "finished_at")
#: ``hour``: hours since 1970, UTC. ``total_us``: the attempts' microseconds in it, together.
LOADS = schema_of("kind string, name string, hour bigint, highest bigint, total_us bigint")
#: What ended on a day, by worker.
ENDED = schema_of("worker string, attempts bigint, failed bigint, lost bigint")
_HOURS = DAY_US // HOUR_US


@dataclass(frozen=True)
class DayLoads:
    """The loads of a day (days since 1970), as they are stored."""

    folder: Path
    number: int

    def loads(self) -> pa.Table:
        """Return for each hour how many attempts there were at most, and for how long.

        ``kind``, ``name``: running attempts of a worker; running, waiting, and both (``needed``) of
        a worker group. Hours in which there was nothing have no row.
        """
        return read(self._file("loads"), LOADS, LOADS.names)

    def ended(self) -> pa.Table:
        """Return how many attempts ended, by worker."""
        return read(self._file("ended"), ENDED, ENDED.names)

    def store(self, loads: pa.Table, ended: pa.Table) -> None:
        """Store what there is of the day."""
        written(loads, self._file("loads"))
        written(ended, self._file("ended"))

    def _file(self, name: str) -> Path:
        return self.folder / name / f"{self.number}.arrow"


@dataclass(frozen=True)
class Sorted:
    """Sorts attempts by the days that they touch; place 0 is the first of the days.

    Attempts without these columns were read for something else: they touch none of the days.
    """

    days: Days

    def __call__(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Return for each day the attempts in it, with when each was queued, began, finished."""
        if not set(COLUMNS) <= set(rows.column_names):
            return
        finished = ints(rows, "finished_at")
        worker, started = is_there(rows, "worker"), is_there(rows, "started_at")
        ran = worker & started
        began = np.where(ran, ints(rows, "started_at"), finished)
        # Without a start it waited to its end. A clock that was set makes nothing negative.
        has_queued = is_there(rows, "queued_at")
        queued = np.where(has_queued, np.minimum(ints(rows, "queued_at"), began), began)
        began = np.minimum(began, finished)
        is_load = (has_queued | ran) & (finished > queued)
        first = number_of(self.days.first)
        last = number_of(self.days.last)
        ended = finished // DAY_US
        low = np.where(is_load, np.maximum(queued // DAY_US, first), ended)
        high = np.where(is_load, (finished - 1) // DAY_US, ended)
        # The day on which it ended counts it, also if it ended as the day began.
        high = np.maximum(high, ended)
        high = np.where(ended - LONGEST_DAYS > last, first - 1, np.minimum(high, last))
        table = pa.table(
            {
                "worker_group": rows["worker_group"],
                "worker": rows["worker"],
                "has_run": ran,
                "is_load": is_load,
                "has_failed": is_one_of(rows, "state", TaskState.FAILED),
                "is_lost": is_one_of(rows, "state", TaskState.LOST),
                "queued": queued,
                "began": began,
                "finished": finished,
            }
        )
        low = np.maximum(low, first)
        for number in range(int(low.min(initial=last + 1)), int(high.max(initial=first - 1)) + 1):
            touches = (low <= number) & (number <= high)
            if touches.any():
                yield number - first, chosen(table, touches)


@dataclass(frozen=True)
class Swept:
    """Sweeps the hours of a day and stores what it finds.

    ``first``: the day of place 0. ``whole``: days of which all is asked for; of others only what
    worker groups needed.
    """

    folder: Path
    first: date
    whole: Days | None

    def __call__(self, place: int, rows: pa.Table) -> None:
        """Sweep the attempts that touch a day."""
        number = number_of(self.first) + place
        is_whole = self.whole is not None and (
            number_of(self.whole.first) <= number <= number_of(self.whole.last)
        )
        loads = chosen(rows, flags(rows, "is_load"))
        DayLoads(self.folder, number).store(
            pa.concat_tables([LOADS.empty_table(), *_swept(loads, number * _HOURS, is_whole)]),
            _ended(rows, number) if is_whole else ENDED.empty_table(),
        )


def _ended(rows: pa.Table, number: int) -> pa.Table:
    on_day = (ints(rows, "finished") // DAY_US == number) & is_there(rows, "worker")
    rows = chosen(rows, on_day)
    worker, names = coded(rows, "worker")
    counts = [np.bincount(worker, minlength=len(names))]
    for name in ("has_failed", "is_lost"):
        flagged = worker[flags(rows, name)]
        counts.append(np.bincount(flagged, minlength=len(names)))
    seen = np.flatnonzero(counts[0])
    columns = [names.take(pa.array(seen)), *(pa.array(one[seen]) for one in counts)]
    return pa.Table.from_arrays(columns, schema=ENDED)


def _swept(rows: pa.Table, first_hour: int, is_whole: bool) -> Iterator[pa.Table]:
    """Yield the loads of the hours of a day, kind by kind."""
    if not rows.num_rows:
        return
    row, hour = _hours(rows, first_hour)
    start = (first_hour + hour) * HOUR_US

    def clipped(name: str) -> Ints:
        return np.asarray(np.clip(ints(rows, name)[row] - start, 0, HOUR_US))

    queued, began, finished = clipped("queued"), clipped("began"), clipped("finished")
    kinds = {"worker_group": {NEEDED: (queued, finished)}}
    if is_whole:
        kinds["worker"] = {WORKER: (began, finished)}
        kinds["worker_group"] |= {RUNNING: (began, finished), WAITING: (queued, began)}
    has_run = flags(rows, "has_run")
    for column, of in kinds.items():
        code, names = coded(rows, column)
        if column == "worker":
            code = np.where(has_run, code, -1)
        keys = code[row] * _HOURS + hour
        named = code[row] >= 0
        for kind, (starts, ends) in of.items():
            count = len(names) * _HOURS
            most = highest(keys[named], starts[named], ends[named], count)
            total = totals(keys[named], starts[named], ends[named], count)
            seen = np.flatnonzero(most)
            columns = (
                pa.array([kind] * len(seen), pa.string()),
                names.take(pa.array(seen // _HOURS)),
                pa.array(first_hour + seen % _HOURS),
                pa.array(most[seen]),
                pa.array(total[seen]),
            )
            yield pa.Table.from_arrays(columns, schema=LOADS)


def _hours(rows: pa.Table, first_hour: int) -> tuple[Ints, Ints]:
    """Return a row for each attempt and hour of the day that it touches: which, and the hour."""
    low = np.maximum(ints(rows, "queued") // HOUR_US - first_hour, 0)
    high = np.minimum((ints(rows, "finished") - 1) // HOUR_US - first_hour, _HOURS - 1)
    sizes = np.maximum(high - low + 1, 0)
    row = np.repeat(np.arange(len(sizes)), sizes)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + low[row]
