"""A real HDFS and YARN in one process, and a program that counts words there."""

import asyncio
import getpass
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from shoal.client.local.java import find_java, spark_java_home
from shoal.runtime.settings import ClusterSettings
from shoal.worker.types.spark.command import find_spark
from tests.integration.worker.agent.kit import InProcessWorker
from tests.integration.worker.mapreduce.conftest import words as words

HERE = Path(__file__).parent
JARS = HERE / "jars"
_START_S = 300.0
_MAIN = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"
_APPLICATIONS = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
_HISTORY_PORT, _WEB_PORT = 10020, 9870


@dataclass(frozen=True)
class Hadoop:
    """A running cluster. ``conf`` is what its clients need as HADOOP_CONF_DIR.

    ``web`` is the URL of its files at the REST gateway.
    """

    conf: Path
    web: str

    def run(self, main: str, *arguments: str) -> str:
        """Run a class of the client to its good end; return what it has printed."""
        path = f"{self.conf}:{find_spark() / 'jars'}/*"
        done = subprocess.run(
            [_java(), "-cp", path, main, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def files(self, *arguments: str) -> str:
        """Run a command of HDFS's shell."""
        return self.run("org.apache.hadoop.fs.FsShell", *arguments)

    async def live(self, tag: str) -> int:
        """Return how many applications with the tag have not ended."""
        arguments = ("application", "-list", "-appTags", tag)
        # In a thread: the worker of the test goes on meanwhile.
        said = await asyncio.to_thread(self.run, _APPLICATIONS, *arguments)
        return said.count("\napplication_")


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    folder = tmp_path_factory.mktemp("hadoop")
    details = folder / "details.json"
    argv = [_java(), "-Xmx700m", "-cp", f"{HERE}:{JARS}/*", _MAIN, "-format"]
    argv += ["-jhsport", str(_HISTORY_PORT), "-nnhttpport", str(_WEB_PORT)]
    argv += ["-writeDetails", str(details)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=folder, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + _START_S
        while not (details.exists() and details.stat().st_size):
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, "Hadoop does not start"
            time.sleep(0.2)
        conf = _conf(folder, **json.loads(details.read_text()))
        yield Hadoop(conf, f"webhdfs://{getpass.getuser()}@localhost:{_WEB_PORT}")
    finally:
        process.kill()
        process.wait()


def _conf(folder: Path, namenode_port: int, resourcemanager_port: str) -> Path:
    conf = folder / "conf"
    conf.mkdir()
    sites = {
        "core": {"fs.defaultFS": f"hdfs://localhost:{namenode_port}"},
        "yarn": {
            "yarn.resourcemanager.address": f"localhost:{resourcemanager_port}",
            "yarn.resourcemanager.scheduler.address": "localhost:8030",
        },
        "mapred": {
            "mapreduce.framework.name": "yarn",
            "mapreduce.application.classpath": f"{JARS}/*",
            "mapreduce.jobhistory.address": f"localhost:{_HISTORY_PORT}",
            "yarn.app.mapreduce.am.resource.mb": "512",
            "yarn.app.mapreduce.am.staging-dir": "/staging",
        },
    }
    for name, settings in sites.items():
        properties = "".join(
            f"<property><name>{key}</name><value>{value}</value></property>"
            for key, value in settings.items()
        )
        text = f"<configuration>{properties}</configuration>\n"
        (conf / f"{name}-site.xml").write_text(text)
    return conf


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


@pytest.fixture
async def worker(
    cluster: ClusterSettings, hadoop: Hadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[InProcessWorker]:
    monkeypatch.setenv("JAVA_HOME", str(spark_java_home(find_java(), tmp_path / "java")))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hadoop.conf))
    async with InProcessWorker(cluster, kill_grace_s=2.0) as worker:
        yield worker
