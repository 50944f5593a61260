"""How many attempts ran and waited in each hour of a day: the heat map."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from shoal.insight.jobs.columns import DAY_US, HOUR_US, chosen, dates, result_schema, table_of
from shoal.insight.jobs.kernels.arrays import groups, ints, is_one_of, taken
from shoal.insight.jobs.kernels.statistics import Ints
from shoal.insight.jobs.rollups.loads import NEEDED, RUNNING, WAITING, DayLoads

_HOURS = DAY_US // HOUR_US
SCHEMA = result_schema("concurrency_hours")


def concurrency_hours(day: DayLoads) -> pa.Table:
    """Return a row for each hour (0 to 23, UTC) and worker group in which there was something.

    Means are over the whole hour. ``needed_max``: the most attempts that ran or waited at the same
    time; with so many slots none would have waited.
    """
    loads = day.loads()
    loads = chosen(loads, is_one_of(loads, "kind", RUNNING, WAITING, NEEDED))
    first, code = groups(loads, ("hour", "name"))
    most: Mapping[str, Ints] = {
        kind: _of(loads, kind, code, "highest", len(first)) for kind in (RUNNING, WAITING, NEEDED)
    }
    mean = {
        kind: _of(loads, kind, code, "total_us", len(first)) / HOUR_US
        for kind in (RUNNING, WAITING)
    }
    hour = ints(loads, "hour")[first]
    return table_of(
        SCHEMA,
        day=dates(hour // _HOURS),
        hour=hour % _HOURS,
        worker_group=taken(loads, "name", first),
        running_mean=mean[RUNNING],
        running_max=most[RUNNING],
        waiting_mean=mean[WAITING],
        waiting_max=most[WAITING],
        needed_max=most[NEEDED],
    )


def _of(loads: pa.Table, kind: str, code: Ints, name: str, count: int) -> Ints:
    """Return a number of one kind for each hour and group, 0 where there is none."""
    mine = is_one_of(loads, "kind", kind)
    found = np.zeros(count, dtype=np.int64)
    found[code[mine]] = ints(loads, name)[mine]
    return found
