"""SPARK tasks in YARN, whose driver is on the worker or in the cluster."""

import asyncio
import os
import random
import sys
from pathlib import Path

import pytest

from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from shoal.worker.types.spark.command import find_spark
from tests.hadoop.conftest import Hadoop
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    Process,
    descendants,
    kill,
    log_text,
    the_worker,
)
from tests.support.fake_master import FakeMaster
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

PATIENCE_S = 500.0
PROGRAM = """\
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
if sys.argv[1] == "endless":
    spark.sql("select count(*) from range(100000000000000)").collect()
total = spark.range(1000).groupBy().sum().collect()[0][0]
spark.createDataFrame([(total,)], ["n"]).coalesce(1).write.mode("overwrite").csv(sys.argv[2])
print("sum", total)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def program(
    hadoop: Hadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker: InProcessWorker
) -> str:
    """A program that both the worker and the cluster can read."""
    conf = tmp_path / "spark-conf"
    conf.mkdir()
    settings = {
        "spark.yarn.jars": f"local:{find_spark()}/jars/*",  # else 400 MB are copied each time
        "spark.driver.host": "localhost",
        "spark.ui.enabled": "false",
        "spark.executor.instances": "1",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": sys.executable,
        "spark.executorEnv.PYSPARK_PYTHON": sys.executable,
    }
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    (conf / "spark-defaults.conf").write_text("".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file.as_uri()


def clients() -> list[Process]:
    """Return spark-submit's processes below this one."""
    return [one for one in descendants(os.getpid()) if "deploy.SparkSubmit" in one.args]


async def submit(
    master: FakeMaster, program: str, mode: str, what: str, tag: str, attempt: int = 1
) -> int:
    params = {
        "application": program,
        "arguments": [what, f"/{tag}"],
        "master": "yarn",
        "deploy_mode": mode,
        "driver_memory": "512m",
        "executor_memory": "512m",
    }
    return await master.submit("SPARK", params, tag=tag, attempt=attempt)


async def runs(hadoop: Hadoop, tag: str) -> None:
    """Return when the cluster has an application with the tag."""
    async with asyncio.timeout(PATIENCE_S):
        while await hadoop.live(tag) != 1:
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("mode", ["client", "cluster"])
async def test_application_runs_and_its_failure_is_the_task_s(
    mode: str,
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    hadoop: Hadoop,
    program: str,
) -> None:
    tag = f"shoal-{mode}"
    number = await submit(master, program, mode, "0", tag)
    task = await master.table.ended(number, timeout_s=PATIENCE_S)
    text = log_text(cluster.data, number)
    assert task.state == "SUCCEEDED", text
    assert "application_1" in text
    assert hadoop.files("-cat", f"/{tag}/part-*") == "499500\n"
    number = await submit(master, program, mode, "3", tag)
    task = await master.table.ended(number, timeout_s=PATIENCE_S)
    assert task.state == "FAILED"
    assert task.report is not None
    assert "may still run" not in task.report.reason
    if mode == "client":
        assert task.report.exit_code == 3
    assert await hadoop.live(tag) == 0


@pytest.mark.parametrize("mode", ["client", "cluster"])
async def test_killed_application_is_ended_in_the_cluster(
    mode: str,
    master: FakeMaster,
    worker: InProcessWorker,
    channels: Channels,
    hadoop: Hadoop,
    program: str,
) -> None:
    tag = f"shoal-kill-{mode}"
    number = await submit(master, program, mode, "endless", tag)
    await runs(hadoop, tag)
    await kill(channels, await the_worker(master.session), number)
    task = await master.table.ended(number, timeout_s=PATIENCE_S)
    assert task.state == "KILLED", task.report
    assert await hadoop.live(tag) == 0


@pytest.mark.parametrize("seed", range(4))
async def test_client_killed_around_the_submission_leaves_nothing(
    seed: int, master: FakeMaster, worker: InProcessWorker, hadoop: Hadoop, program: str
) -> None:
    tag, mode = f"shoal-spark-{seed}", ("client", "cluster")[seed % 2]
    number = await submit(master, program, mode, "endless", tag)
    await eventually(clients, PATIENCE_S)
    await asyncio.sleep(random.Random(seed).uniform(1.0, 15.0))
    for client in clients():
        client.kill()
    task = await master.table.ended(number, timeout_s=PATIENCE_S)
    assert task.state == "FAILED"
    assert task.report is not None
    assert "may still run" not in task.report.reason
    assert await hadoop.live(tag) == 0
