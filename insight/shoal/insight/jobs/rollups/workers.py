"""How much each worker had to do, by day."""

import numpy as np
import pyarrow as pa

from shoal.insight.jobs.columns import chosen, dates, result_schema, table_of
from shoal.insight.jobs.kernels.arrays import coded, ints, is_one_of
from shoal.insight.jobs.kernels.statistics import Ints
from shoal.insight.jobs.rollups.loads import WORKER, DayLoads

SCHEMA = result_schema("worker_days")
_SECOND = 1_000_000.0
_HOUR_S = 3600.0


def worker_days(day: DayLoads) -> pa.Table:
    """Return a row for each worker that ran something on the day.

    Counts are of attempts that ended on the day; busy seconds are those within the day, of attempts
    that ended later too. ``utilisation`` is their share of ``hours`` (hours of the day with an
    attempt in them) times ``slots`` (the most attempts at the same time on that day).
    """
    loads, ended = day.loads(), day.ended()
    loads = chosen(loads, is_one_of(loads, "kind", WORKER))
    names = sorted({*loads["name"].to_pylist(), *ended["worker"].to_pylist()})
    places = {name: place for place, name in enumerate(names)}
    of_load, of_ended = _places(loads, "name", places), _places(ended, "worker", places)
    busy_s = np.bincount(of_load, ints(loads, "total_us"), len(names)) / _SECOND
    hours = np.bincount(of_load, minlength=len(names))
    slots = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(slots, of_load, ints(loads, "highest"))
    counts = {}
    for name in ("attempts", "failed", "lost"):
        count = np.zeros(len(names), dtype=np.int64)
        count[of_ended] = ints(ended, name)
        counts[name] = count
    capacity_s = hours * slots * _HOUR_S
    share = np.divide(busy_s, capacity_s, out=np.zeros(len(names)), where=capacity_s > 0)
    return table_of(
        SCHEMA,
        day=dates(np.full(len(names), day.number)),
        worker=pa.array(names, pa.string()),
        **counts,
        busy_s=busy_s,
        hours=hours,
        slots=slots,
        utilisation=share,
    )


def _places(rows: pa.Table, name: str, places: dict[str, int]) -> Ints:
    codes, names = coded(rows, name)
    return np.array([places[one] for one in names.to_pylist()], dtype=np.int64)[codes]
