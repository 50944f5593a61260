"""A real application through spark-submit."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from shoal.client.local.java import find_java, spark_java_home
from shoal.proto import shoal_pb2 as pb
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
from tests.support.storage import put_resource

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

SCRIPT = """\
import os, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
numbers = spark.range(1000)
print("sum", numbers.groupBy().sum().collect()[0][0])
print("name", spark.sparkContext.appName)
print("conf", spark.conf.get("spark.sql.shuffle.partitions"))
print("arguments", sys.argv[1:])
print("parameter", os.environ["SHOAL_PARAM_DAY"])
if len(sys.argv) > 3:
    sys.exit(int(sys.argv[3]))
"""


@pytest.fixture
def java(spark_classes: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(spark_java_home(find_java(), tmp_path / "java home")))


async def test_application_can_be_a_resource(
    java: None, master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    params = {
        "application": "resources/jobs/report.py",
        "py_files": ["resources/jobs/lib.py"],
        "master": "local[1]",
        "driver_memory": "512m",
    }
    program = b"import lib\nfrom pyspark.sql import SparkSession\n"
    program += b"print('sum', lib.total(SparkSession.builder.getOrCreate()))\n"
    library = b"def total(spark):\n    return spark.range(5).groupBy().sum().collect()[0][0]\n"
    files = [
        put_resource(cluster, "jobs/report.py", program),
        put_resource(cluster, "jobs/lib.py", library),
    ]
    number = await master.submit("SPARK", params, resources=files)
    task = await master.table.ended(number, timeout_s=500)
    text = log_text(cluster.data, number)
    assert task.state == "SUCCEEDED", text
    assert "sum 10" in text.splitlines()


async def test_spark_application_runs_to_its_end(
    java: None, master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    params = {
        "script": SCRIPT,
        "master": "local[1]",
        "driver_memory": "512m",
        "arguments": ["--date", "a 'b' $(c)\n"],
        "conf": {"spark.sql.shuffle.partitions": "3"},
        "name": "tiny job",
    }
    number = await master.submit("SPARK", params, parameters={"day": "Friday"})
    task = await master.table.ended(number, timeout_s=500)
    text = log_text(cluster.data, number)
    assert task.state == "SUCCEEDED", text
    said = [line for line in text.splitlines() if " WARN" not in line]
    assert said[-5:] == [
        "sum 499500",
        "name tiny job",
        "conf 3",
        r"""arguments ['--date', "a 'b' $(c)\n"]""",
        "parameter Friday",
    ]
    assert " INFO " not in text


async def test_failing_application_fails_the_task_with_its_code(
    java: None, master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    params = {"script": "import sys; print('bye'); sys.exit(5)", "master": "local[1]"}
    number = await master.submit("SPARK", params)
    task = await master.table.ended(number, timeout_s=500)
    assert task.state == "FAILED"
    assert task.report is not None
    assert task.report.exit_code == 5
    assert "bye" in log_text(cluster.data, number)


async def test_worker_without_java_says_so(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("java", path=os.environ["PATH"]) is None
    number = await master.submit("SPARK", {"script": "1"})
    task = await master.table.ended(number)
    assert task.report is not None
    assert "no Java on this worker" in task.report.reason
    assert "no Java on this worker" in log_text(cluster.data, number)


SLOW = """\
import time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
def wait(rows):
    for row in rows:
        if row.id >= 40:
            time.sleep(1000)
    return []
print("begun", flush=True)
spark.range(0, 41, 1, 41).rdd.mapPartitions(wait).count()
"""


async def test_progress_is_told_and_a_kill_ends_driver_and_java(
    java: None,
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    channels: Channels,
) -> None:
    params = {"script": SLOW, "master": "local[1]", "driver_memory": "512m"}
    member = await the_worker(master.session)
    before = {each.pid for each in descendants(int(member.data["pid"]))}  # ZooKeeper is Java, too
    number = await master.submit("SPARK", params)
    service = channels.progress(str(member.data["address"]))
    request = pb.ProgressRequest(task_instance_ids=[number])
    async with asyncio.timeout(400):
        while not (found := (await service.Read(request)).tasks) or found[0].done < 30:
            assert master.table.tasks[number].report is None, log_text(cluster.data, number)
            await asyncio.sleep(0.2)
    assert found[0].done <= 40  # a few events wait in the driver for company
    assert (found[0].total, found[0].unit) == (41, "tasks")
    assert found[0].label.startswith("stage 0: ")
    assert "shoal: Spark application local-" in log_text(cluster.data, number)
    started = {each.pid for each in descendants(int(member.data["pid"]))} - before
    assert any(is_java(pid) for pid in started)
    await kill(channels, member, number)
    task = await master.table.ended(number)
    assert task.state == "KILLED"
    assert not [pid for pid in started if is_java(pid)]


def is_java(pid: int) -> bool:
    """Whether a process runs that is Java."""
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "java\n"
    except OSError:
        return False
