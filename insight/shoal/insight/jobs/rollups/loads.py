"""How many attempts ran and waited at the same time, in each hour: exact, by sweeps.

What ``workers``, ``concurrency`` and ``capacity`` are made from. An attempt waits in the queue of
its worker group from ``queued_at`` to ``started_at``, and runs from there to ``finished_at``; what
a master works on itself has no worker, and is left out. An attempt counts in each hour that it
touches, with the part that is in it.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shoal.insight.jobs.columns import DAY_US, HOUR_US, end_of, micros, start_of
from shoal.insight.jobs.days import LONGEST_DAYS, Days
from shoal.insight.jobs.kernels.batches import whole
from shoal.insight.jobs.kernels.sweeps import Ints, highest, totals

WORKER, RUNNING, WAITING, NEEDED = "worker", "running", "waiting", "needed"
_SCHEMA = "kind string, name string, hour bigint, highest bigint, total_us bigint"
_RESULT = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("hour", pa.int64()),
        ("highest", pa.int64()),
        ("total_us", pa.int64()),
    ]
)


def hourly_loads(attempts: DataFrame, days: Days) -> DataFrame:
    """Return for each hour of the days how many attempts there were at most, and for how long.

    ``kind``, ``name``: running attempts of a worker; running, waiting, and both (``needed``) of a
    worker group. ``hour``: hours since 1970, UTC. ``total_us``: the attempts' microseconds in the
    hour, together. Hours in which there was nothing have no row.
    """
    around = days.widened(after=LONGEST_DAYS)
    first, last = start_of(days.first), end_of(days.last)
    ran = F.col("worker").isNotNull() & F.col("started_at").isNotNull()
    finished = micros("finished_at")
    began = F.when(ran, micros("started_at"))
    # Without a start it waited to its end. A clock that was set makes nothing negative.
    queued = F.least(micros("queued_at"), F.coalesce(began, finished))
    rows = (
        attempts.where(
            (F.col("finished_at") > F.lit(first))
            & (F.col("finished_at") < F.lit(end_of(around.last)))
            & (F.coalesce("queued_at", "started_at") < F.lit(last))
        )
        .select(
            "worker_group",
            F.when(ran, F.col("worker")).alias("worker"),
            F.coalesce(queued, began).alias("queued"),
            F.coalesce(F.least(began, finished), finished).alias("began"),
            finished.alias("finished"),
        )
        .where(F.col("queued").isNotNull() & (F.col("finished") > F.col("queued")))
    )
    first_hour, last_hour = _hour(F.col("queued")), _hour(F.col("finished") - F.lit(1))
    lowest = F.lit(int(first.timestamp()) // 3600)
    highest_hour = F.lit(int(last.timestamp()) // 3600 - 1)
    hours = F.sequence(F.greatest(first_hour, lowest), F.least(last_hour, highest_hour))
    reaches = (first_hour <= highest_hour) & (last_hour >= lowest)
    parts = rows.where(reaches).select("*", F.explode(hours).alias("hour"))
    return parts.repartition("hour").mapInArrow(_swept, _SCHEMA)


def _hour(at: Column) -> Column:
    return F.floor(at / F.lit(HOUR_US)).cast("bigint")


def _swept(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sweep the hours of a partition, which has all rows of each of its hours."""
    table = whole(batches)
    if table is None:
        return
    hours, hour = np.unique(table["hour"].to_numpy(), return_inverse=True)
    start = hours[hour] * HOUR_US

    def clipped(name: str) -> Ints:
        return np.asarray(np.clip(table[name].to_numpy() - start, 0, HOUR_US))

    queued, began, finished = clipped("queued"), clipped("began"), clipped("finished")
    for column, kinds in {
        "worker": {WORKER: (began, finished)},
        "worker_group": {
            RUNNING: (began, finished),
            WAITING: (queued, began),
            NEEDED: (queued, finished),
        },
    }.items():
        coded = table[column].combine_chunks().dictionary_encode()
        names = coded.dictionary
        if not len(names):
            continue
        named = pc.is_valid(coded).to_numpy(zero_copy_only=False)
        code = pc.fill_null(coded.indices, 0).to_numpy().astype(np.int64)[named]
        keys, which = np.unique(code * len(hours) + hour[named], return_inverse=True)
        for kind, (starts, ends) in kinds.items():
            most = highest(which, starts[named], ends[named], len(keys))
            total = totals(which, starts[named], ends[named], len(keys))
            seen = most > 0
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([kind] * int(seen.sum())),
                    names.take(pa.array(keys[seen] // len(hours))),
                    pa.array(hours[keys[seen] % len(hours)]),
                    pa.array(most[seen]),
                    pa.array(total[seen]),
                ],
                schema=_RESULT,
            )


def day_of_hour() -> Column:
    """Return the day of an ``hour``, UTC."""
    return F.date_from_unix_date(F.floor(F.col("hour") / F.lit(DAY_US // HOUR_US)).cast("int"))


def loads_of(loads: DataFrame, days: Days) -> DataFrame:
    """Return the hours of some days of ``hourly_loads`` of more."""
    first = int(start_of(days.first).timestamp()) // 3600
    return loads.where(F.col("hour").between(first, int(end_of(days.last).timestamp()) // 3600 - 1))
