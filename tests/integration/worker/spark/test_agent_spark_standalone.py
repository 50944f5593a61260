"""SPARK tasks on a real standalone cluster: a master and a worker of Spark, on the loopback."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.client.local.java import find_java, spark_java_home
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    descendants,
    kill,
    log_text,
    the_worker,
)
from tests.support.fake_master import FakeMaster
from tests.support.spark.standalone import standalone_spark
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]
PATIENCE_S = 300.0
SUM = """\
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("sum", spark.range(1000).groupBy().sum().collect()[0][0])
"""
ENDLESS = """\
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate().sql("select count(*) from range(100000000000000)").collect()
"""


class Standalone:
    """A cluster of one worker with two cores."""

    def __init__(self, url: str, worker: subprocess.Popen[bytes]) -> None:
        self.url, self._worker = url, worker

    def executors(self) -> int:
        """Return how many executors run."""
        return sum("ExecutorBackend" in one.args for one in descendants(self._worker.pid))

    def params(self, script: str) -> dict[str, object]:
        return {
            "script": script,
            "master": self.url,
            "driver_memory": "512m",
            "executor_memory": "512m",
            "conf": {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"},
        }


@pytest.fixture
def standalone(
    spark_classes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Standalone]:
    monkeypatch.setenv("JAVA_HOME", str(spark_java_home(find_java(), tmp_path / "java")))
    with standalone_spark(tmp_path) as spark:
        yield Standalone(spark.url, spark.worker)


async def test_application_runs_on_a_standalone_cluster_and_a_kill_ends_it_there(
    standalone: Standalone,
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    channels: Channels,
) -> None:
    number = await master.submit("SPARK", standalone.params(SUM))
    task = await master.table.ended(number, timeout_s=PATIENCE_S)
    text = log_text(cluster.data, number)
    assert task.state == "SUCCEEDED", text
    assert "sum 499500" in text
    assert "shoal: Spark application app-" in text
    await eventually(lambda: standalone.executors() == 0)

    number = await master.submit("SPARK", standalone.params(ENDLESS))
    await eventually(lambda: standalone.executors() == 1, PATIENCE_S)
    await kill(channels, await the_worker(master.session), number)
    task = await master.table.ended(number, timeout_s=PATIENCE_S)
    assert task.state == "KILLED", task.report
    await eventually(lambda: standalone.executors() == 0)
