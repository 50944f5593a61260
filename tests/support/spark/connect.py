"""Real servers of Spark's on the loopback: Spark Connect, and Thrift."""

import importlib.util
import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from shoal.client.local.zookeeper import free_port
from shoal.core.data_sources import DataSource
from tests.support.servers.listening import wait_until_listening

TOKEN = "token of the tests; a=b"


@dataclass(frozen=True)
class Served:
    """A server. ``source`` signs in with its token."""

    source: DataSource
    process: subprocess.Popen[bytes]
    pages: str  # URL of its own pages

    def jobs(self) -> int:
        """Return how many jobs it is at work on."""
        with urllib.request.urlopen(f"{self.pages}/api/v1/applications", timeout=30) as answer:
            [application] = json.load(answer)
        url = f"{self.pages}/api/v1/applications/{application['id']}/jobs?status=running"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return len(json.load(answer))


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Run a server whose files are in ``folder``."""
    port, pages = free_port(), free_port()
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    env = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": TOKEN}
    with started(folder, server, conf, pages, env) as process:
        wait_until_listening(port, process)
        source = DataSource("lake", "spark", host="127.0.0.1", port=port, password=TOKEN)
        yield Served(source, process, f"http://127.0.0.1:{pages}")


@contextmanager
def thrift_served(folder: Path) -> Iterator[Served]:
    """Run a Thrift server, which speaks Hive's protocol, whose files are in ``folder``."""
    port, pages = free_port(), free_port()
    conf = {
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.server2.thrift.port": str(port),
        # A metastore of Hive's takes a minute to be made, and is nothing to tasks.
        "spark.sql.catalogImplementation": "in-memory",
    }
    server = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    with started(folder, server, conf, pages, {}) as process:
        wait_until_listening(port, process)
        source = DataSource("lake", "hive", host="127.0.0.1", port=port, user="etl")
        yield Served(source, process, f"http://127.0.0.1:{pages}")


@contextmanager
def started(
    folder: Path, server: str, conf: Mapping[str, str], pages: int, env: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server of Spark's by the name of its class; ``pages``: the port of its pages."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    common = {
        "spark.ui.port": str(pages),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.sql.shuffle.partitions": "2",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--driver-memory", "700m"]
    settings = {**common, **conf}.items()
    command += [text for key, value in settings for text in ("--conf", f"{key}={value}")]
    command += ["--class", server]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        **env,
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "spark-internal"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
