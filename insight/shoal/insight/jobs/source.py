"""The files of the history, and the tables that Spark reads from them.

The only place that knows how manifests are read; the jobs get DataFrames with the columns of
``shoal.insight.history.tables``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date

import fsspec
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from shoal.insight.history.store import HistoryStore, NoHistory
from shoal.insight.history.tables import INSTANCES, HistoryTable, Kind
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.errors import MissingFile

_TASK = T.StructType(
    [
        T.StructField("name", T.StringType()),
        T.StructField("type", T.StringType()),
        T.StructField("worker_group", T.StringType()),
        T.StructField("upstream", T.ArrayType(T.StringType())),
    ]
)
_TYPES: Mapping[Kind, T.DataType] = {
    Kind.TEXT: T.StringType(),
    Kind.INTEGER: T.LongType(),
    Kind.NUMBER: T.DoubleType(),
    Kind.YES_NO: T.BooleanType(),
    Kind.TIME: T.TimestampType(),
    Kind.LABELS: T.MapType(T.StringType(), T.StringType()),
    Kind.TASKS: T.ArrayType(_TASK),
}


@dataclass(frozen=True)
class HistoryFile:
    """A file that counts. ``url`` is absolute; ``rows`` is how many it has.

    Its rows come from the exports ``since`` to ``exported``, which are numbered in their order.
    """

    url: str
    table: str
    day: date
    rows: int
    since: int
    exported: int


def history_files(root: str, table: str, days: Days | None = None) -> list[str]:
    """Return the URLs of the files of a table that the manifests name; ``days`` None: of all days.

    Raises NoHistory, DamagedHistory.
    """
    return [one.url for one in files_of(manifested(root), table, days)]


def files_of(
    files: Iterable[HistoryFile], table: str, days: Days | None = None
) -> list[HistoryFile]:
    """Return the files of a table and of some days; None: of all."""
    return [one for one in files if one.table == table and (days is None or one.day in days)]


def manifested(root: str) -> list[HistoryFile]:
    """Return all files that manifests name. Raises NoHistory, DamagedHistory, StorageError."""
    store = HistoryStore.at(root)
    contents = store.contents()
    if not contents.sequence:
        raise NoHistory(root)
    fs, path = fsspec.core.url_to_fs(store.root)
    return [
        HistoryFile(
            url=fs.unstrip_protocol(f"{path}/{one.path}"),
            table=one.table,
            day=one.day,
            rows=one.rows,
            since=one.since,
            exported=one.sequence,
        )
        for one in contents.files.values()
    ]


def first_begun(files: Iterable[HistoryFile], days: Days) -> date | None:
    """Return the day on which the first of the runs was created that ended on some days.

    None: there is none. Reads one column. Raises MissingFile.
    """
    earliest: list[date] = []
    for one in files_of(files, INSTANCES.name, days):
        try:
            with fsspec.open(one.url, "rb") as file:
                created = pc.min(pq.read_table(file, columns=["created_at"])["created_at"]).as_py()
        except FileNotFoundError as error:
            raise MissingFile(one.url.removeprefix("file://")) from error
        if created is not None:
            earliest.append(created.astimezone(UTC).date())
    return min(earliest, default=None)


def schema(table: HistoryTable) -> T.StructType:
    """Return how Spark sees a table of the history."""
    return T.StructType(
        [T.StructField(column.name, _TYPES[column.kind]) for column in table.columns]
    )


def read(spark: SparkSession, table: HistoryTable, urls: Sequence[str]) -> DataFrame:
    """Return the rows of some files of a table, those that are superseded included."""
    if not urls:
        return spark.createDataFrame([], schema(table))
    # A path is a path, whatever characters are in it.
    reader = spark.read.schema(schema(table)).option("__globPaths__", "false")
    return reader.parquet(*urls)


def current(rows: DataFrame, table: HistoryTable, beside: DataFrame | None = None) -> DataFrame:
    """Return of ``rows`` those that count: of one key that with the highest event id.

    ``beside`` are further rows of the table, which may supersede some of ``rows``. What is
    superseded is rare, so it is found by the keys alone, and the rows themselves stay where they
    are.
    """
    keys = rows.select(*table.key, "event_id")
    if beside is not None:
        keys = keys.unionByName(beside.select(*table.key, "event_id"))
    newest = (
        keys.groupBy(*table.key)
        .agg(F.max("event_id").alias("_newest"), F.min("event_id").alias("_oldest"))
        .where(F.col("_newest") > F.col("_oldest"))
        .drop("_oldest")
    )
    joined = rows.join(F.broadcast(newest), list(table.key), "left")
    counts = F.col("_newest").isNull() | (F.col("_newest") == F.col("event_id"))
    return joined.where(counts).select(*rows.columns)
