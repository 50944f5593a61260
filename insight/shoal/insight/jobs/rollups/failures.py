"""Which failures are the same one, since when there is each, and how often."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from shoal.core.runs.states import TaskState
from shoal.core.runs.why.fingerprints import fingerprint
from shoal.insight.jobs.columns import day_of, within
from shoal.insight.jobs.days import Days

WINDOW_DAYS = 60
_KEY = ("fingerprint", "project", "workflow", "task")
_SAMPLE_CHARS = 500


def failures(attempts: DataFrame, days: Days) -> DataFrame:
    """Return a row for each day, fingerprint and task of which an attempt FAILED so on that day.

    ``count_day`` is of the day; ``count``, ``first_seen`` and ``last_seen`` are of the 60 days that
    end with it, so of two groups with the same fingerprint the sum is over all workflows.
    ``sample`` is the error line of the newest of the day. An attempt whose output had no error line
    goes by its reason.
    """
    failed = attempts.where(
        within("finished_at", days.widened(before=WINDOW_DAYS - 1))
        & (F.col("state") == TaskState.FAILED)
    ).select(
        *_KEY,
        F.coalesce("error_line", "reason", F.lit("")).alias("line"),
        F.coalesce("reason", "error_line", F.lit("")).alias("reason"),
        "finished_at",
        "attempt_id",
    )
    daily = (
        fingerprinted(failed)
        .groupBy(day_of("finished_at").alias("day"), *_KEY)
        .agg(
            F.count(F.lit(1)).alias("count_day"),
            F.min("finished_at").alias("first"),
            F.max("finished_at").alias("last"),
            F.max_by("line", F.struct("finished_at", "attempt_id")).alias("sample"),
        )
    )
    number = F.unix_date("day")
    window = Window.partitionBy(*_KEY).orderBy(number).rangeBetween(1 - WINDOW_DAYS, 0)
    return daily.select(
        "day",
        *_KEY,
        F.substring("sample", 1, _SAMPLE_CHARS).alias("sample"),
        F.min("first").over(window).alias("first_seen"),
        F.col("last").alias("last_seen"),
        F.sum("count_day").over(window).alias("count"),
        "count_day",
    ).where((F.col("day") >= F.lit(days.first)) & (F.col("day") <= F.lit(days.last)))


def fingerprinted(failed: DataFrame) -> DataFrame:
    """Fill in ``fingerprint`` where there is none, from ``reason``.

    Reasons are few, however many have failed, so each is looked at once.
    """
    missing = failed.where(F.col("fingerprint").isNull())
    named = missing.select("reason").distinct().mapInArrow(_named, "reason string, _named string")
    return (
        failed.join(named, "reason", "left")
        .withColumn("fingerprint", F.coalesce("fingerprint", "_named"))
        .drop("_named")
    )


def _named(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        reasons = batch.column(0)
        texts = [fingerprint(reason) for reason in reasons.to_pylist()]
        yield pa.RecordBatch.from_arrays(
            [reasons, pa.array(texts, pa.string())], ["reason", "_named"]
        )
