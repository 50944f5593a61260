"""What each task used, by day and by the labels of its runs."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.insight.jobs.columns import day_of, end_of, seconds, start_of, within
from shoal.insight.jobs.days import LONGEST_DAYS, Days

_RUN = ("project", "workflow", "version", "instance_id")
_KEY = ("day", "project", "workflow", "task")
_SUMS = ("attempts", "cpu_s", "memory_gb_s", "slot_s")


def costs(attempts: DataFrame, instances: DataFrame, days: Days) -> DataFrame:
    """Return a row for each day, task and label, and one with an empty label for all its attempts.

    ``slot_s``: seconds in which attempts had a slot of a worker; ``memory_gb_s``: gigabytes (10**9
    bytes) of the highest resident memory times these seconds; ``cpu_s``: seconds of processors.
    What was not measured counts 0. A run has its labels once it has ended, within 31 days of the
    attempt's end.
    """
    has_worker = F.col("worker").isNotNull()
    held_s = F.coalesce(seconds("started_at", "finished_at"), F.lit(0.0))
    rows = attempts.where(within("finished_at", days) & has_worker).select(
        day_of("finished_at").alias("day"),
        *_RUN,
        "task",
        F.coalesce("cpu_s", F.lit(0.0)).alias("cpu_s"),
        held_s.alias("slot_s"),
        (F.coalesce("max_rss_kb", F.lit(0)) * held_s * F.lit(1024 / 1e9)).alias("memory_gb_s"),
    )
    # Most runs of a workflow have the same labels: by a hash of them there is little to add up.
    entries = F.array_sort(F.map_entries("labels"))
    labelled = instances.where(
        (F.col("finished_at") >= F.lit(start_of(days.first)))
        & (F.col("finished_at") < F.lit(end_of(days.widened(after=LONGEST_DAYS).last)))
        & (F.size("labels") > 0)
    ).select(*_RUN, entries.alias("entries"), F.xxhash64(entries).alias("label_set"))
    sets = labelled.groupBy("label_set").agg(F.first("entries").alias("entries"))
    sums = (
        rows.join(labelled.drop("entries").hint("shuffle_hash"), list(_RUN), "left")
        .groupBy(*_KEY, "label_set")
        .agg(
            F.count(F.lit(1)).alias("attempts"),
            *(F.sum(name).alias(name) for name in _SUMS[1:]),
        )
    )
    every = F.array(F.struct(F.lit("").alias("key"), F.lit("").alias("value")))
    labels = F.concat(
        every, F.coalesce("entries", F.array().cast("array<struct<key:string,value:string>>"))
    )
    return (
        sums.join(F.broadcast(sets), "label_set", "left")
        .select(*_KEY, F.explode(labels).alias("label"), *_SUMS)
        .groupBy(*_KEY, F.col("label.key").alias("label"), F.col("label.value").alias("value"))
        .agg(*(F.sum(name).alias(name) for name in _SUMS))
    )
