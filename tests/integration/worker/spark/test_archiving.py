"""A worker makes an archive of Spark's classes, and drivers start from it."""

from pathlib import Path

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.runtime.settings import ClusterSettings
from shoal.worker.spark import class_archiver
from tests.integration.worker.agent.kit import InProcessWorker, log_text
from tests.integration.worker.spark.kit import ask, ended, servers
from tests.support.fake_master import FakeMaster
from tests.support.spark import classes as spark_classes
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]
pytestmark = pytest.mark.usefixtures("java")

# The driver's own memory says which archive it was started from.
SCRIPT = """\
import os
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
maps = open(f"/proc/{java}/maps").read()
print("from an archive:", "/spark-classes/" in maps)
"""


@pytest.fixture(autouse=True)
def no_other_archive(java: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own archive would go before the worker's, and cannot be a part of it."""
    monkeypatch.setenv(spark_classes.VARIABLE, spark_classes.QUICK)


def archives(cluster: ClusterSettings) -> list[Path]:
    root = cluster.data / "workers" / "w" / "1" / "spark-classes"
    return [file for file in root.iterdir() if file.suffix in (".jsa", ".aot")]


def maps(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


async def run(master: FakeMaster, cluster: ClusterSettings) -> str:
    """Run a driver to its good end; return its log."""
    params = {"script": SCRIPT, "master": "local[1]", "driver_memory": "512m"}
    number = await master.submit("SPARK", params)
    report = await ended(master, number)
    text = log_text(cluster.data, number)
    assert report.kind == pb.SUCCEEDED, text
    return text


async def test_second_driver_and_server_start_from_the_archive_that_the_first_has_missed(
    master: FakeMaster, cluster: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archiver, "LOOK_S", 0.2)
    async with InProcessWorker(cluster, spark_class_archive=True):
        assert "from an archive: False" in await run(master, cluster)
        await eventually(lambda: archives(cluster), 4 * DEADLINE_S)
        [archive] = archives(cluster)
        text = await run(master, cluster)
        assert "from an archive: True" in text
        assert "[warning]" not in text
        report = await ended(master, await ask(master, "select 1"))
        assert report.kind == pb.SUCCEEDED
        [server] = servers()
        assert str(archive) in maps(server.pid)
        assert list(archive.parent.iterdir()) == [archive]

    # One that Java cannot use does no harm.
    archive.write_bytes(b"rubbish")
    async with InProcessWorker(cluster, spark_class_archive=True):
        text = await run(master, cluster)
        assert "from an archive: False" in text
        assert "[warning]" not in text
        assert "rror" not in text


async def test_archive_that_cannot_be_made_is_tried_once(
    master: FakeMaster,
    cluster: ClusterSettings,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(class_archiver, "LOOK_S", 0.2)
    monkeypatch.setattr(class_archiver, "_PROGRAM", "raise SystemExit('no classes today')")
    async with InProcessWorker(cluster, spark_class_archive=True):
        root = cluster.data / "workers" / "w" / "1" / "spark-classes"
        for _ in range(2):
            await run(master, cluster)
            await eventually(lambda: list(root.glob("*.failed")), DEADLINE_S)
        assert archives(cluster) == []
    said = capfd.readouterr().out
    assert said.count("no archive of Spark's classes") == 1
    assert "no classes today" in said
