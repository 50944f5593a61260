"""The Spark session of the jobs, and why it is set as it is."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.insight.jobs.errors import NoSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Rows of a partition: so few that a sort of them fits into a share of a 1 GiB heap.
ROWS_OF_PARTITION = 250_000
_ROWS_OF_QUICK_CODE = 2_000_000


def partitions_of(rows: int) -> int:
    """Return into how many partitions so many rows are best divided."""
    return max(2, -(-rows // ROWS_OF_PARTITION))


def java_options(rows: int, scratch: Path) -> str:
    """Return the options of the driver's Java for a history of so many rows.

    What runs for half a minute has nothing of code that is compiled with care, which takes as much
    processor time as the work itself.
    """
    quick = " -XX:TieredStopAtLevel=1" if rows < _ROWS_OF_QUICK_CODE else ""
    return f'"-Djava.io.tmpdir={scratch}"{quick}'  # quoted: a folder may have a space in its name


def settings(partitions: int) -> Mapping[str, str]:
    """Return the settings that do not depend on where Spark runs."""
    return {
        # Days are days in UTC, wherever the program runs.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.adaptive.enabled": "true",
        # Both sides of a join are divided by project and workflow already, and runs are in order,
        # when they come from ``running.prepared``: no shuffle, no sort.
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
        "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
        # A history is thousands of small files, which the manifests name: list none, and read many
        # of them in one partition.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
        "spark.sql.files.openCostInBytes": str(256 << 10),
        "spark.sql.files.maxPartitionBytes": str(16 << 20),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.parquet.compression.codec": "snappy",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@contextmanager
def started(
    master: str | None, scratch: Path, rows: int, memory: str = "1g"
) -> "Iterator[SparkSession]":
    """Start Spark with a driver's heap of ``memory`` that keeps its files in ``scratch``.

    ``rows``: of the largest table that it will read. ``master`` None: as ``spark-submit`` has set
    it. On ``local`` ones nothing listens beyond loopback. Raises NoSpark.
    """
    _require_spark()
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("shoal-insight")
    if master is not None:
        builder = builder.master(master)
    conf = {
        **settings(partitions_of(rows)),
        "spark.driver.memory": memory,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.driver.extraJavaOptions": java_options(rows, scratch),
    }
    if master is not None and master.startswith("local"):
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        # Where Java has gone there is nothing to stop, and the error that says so is on its way.
        with suppress(Py4JError, ConnectionError):
            spark.stop()


def _require_spark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise NoSpark("the jobs need PySpark: pip install 'shoal[insight]'")
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home, "bin", "java"), os.X_OK):
        raise NoSpark(f"JAVA_HOME={home} has no bin/java; correct it, or unset it")
    if not home and shutil.which("java") is None:
        raise NoSpark(
            "Spark needs Java 17 or newer: install it, or set JAVA_HOME (tasks of `shoal up` have "
            "its Java)"
        )
