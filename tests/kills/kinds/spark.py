"""SPARK tasks on the worker itself and on a standalone cluster, and SQL on Spark Connect."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.client.local.java import find_java, spark_java_home
from shoal.client.local.zookeeper import free_port
from shoal.core.data_sources import DataSource
from shoal.worker.types.spark.command import find_spark
from tests.kills.kinds.kind import Kind, Ledgered
from tests.kills.plan import Case
from tests.kills.sides.side import Side
from tests.kills.sides.spark import ConnectSide, StandaloneSide
from tests.support.servers.listening import wait_until_listening
from tests.support.spark import connect as spark_connect

_PROGRAM = """import os, time
from pyspark.sql import SparkSession
def say(word):
    with open({ledger!r}, "a") as file:
        file.write(word + " " + os.environ["SHOAL_TASK_INSTANCE_ID"] + "\\n")
spark = SparkSession.builder.getOrCreate()
say("begin")
spark.range(100, numPartitions=2).count()
time.sleep({seconds})
say("end")
"""


class Spark(Ledgered):
    """A SPARK task whose driver is all of it."""

    name, label = "SPARK", "SPARK, local"
    launch_s, patience_s = 10.0, 900.0
    master = "local[1]"

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        script = _PROGRAM.format(ledger=str(self.ledger(case)), seconds=case.seconds)
        params = {
            "script": script,
            "name": case.marker,
            "master": self.master,
            "driver_memory": "512m",
            "conf": {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"},
        }
        return {"type": "SPARK", "params": params}


class SparkStandalone(Spark):
    """A SPARK task with its driver on the worker and executors in a standalone cluster."""

    name, label = "SPARKSTANDALONE", "SPARK, standalone"

    async def serve(self, stack: AsyncExitStack) -> Side:
        """See Kind."""
        cluster = stack.enter_context(standalone(self.folder))
        self.master = cluster.url
        return StandaloneSide(cluster.pages, cluster.worker)

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        task = super().task(case)
        params = {**task["params"], "executor_memory": "512m"}
        params["conf"] = {**params["conf"], "spark.cores.max": "1"}
        return {**task, "params": params}


class SparkConnect(Kind):
    """A SQL task on a Spark Connect server: its query sleeps, and changes nothing."""

    name, label = "SPARKCONNECT", "SQL, Spark Connect"
    launch_s, patience_s = 3.0, 300.0
    counts = False

    async def serve(self, stack: AsyncExitStack) -> Side:
        """See Kind."""
        self._served = stack.enter_context(spark_connect.served(self.folder))
        return ConnectSide(self._served.pages)

    def sources(self) -> Sequence[DataSource]:
        """See Kind."""
        return [self._served.source]

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        nap = f"reflect('java.lang.Thread', 'sleep', {int(case.seconds * 1000)}L)"
        value = f"concat_ws('', {nap}, '{case.marker}')"
        # Not count: Spark would see that the value is never null, and not ask for it.
        sql = f"SELECT max(x) AS x FROM (SELECT {value} AS x FROM range(0, 1, 1, 1))"
        return {"type": "SQL", "params": {"data_source": "lake", "sql": sql, "idempotent": True}}

    def effects(self, case: Case) -> int:
        """See Kind."""
        return -1


@dataclass(frozen=True)
class Standalone:
    """A cluster of one worker."""

    url: str
    pages: str  # URL of the master's
    worker: int  # process of the cluster's worker


@contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """Run a master and a worker of Spark on the loopback, whose logs are in ``folder``."""
    java = spark_java_home(find_java(), folder / "java")
    env = {**os.environ, "SPARK_HOME": str(find_spark()), "SPARK_LOCAL_IP": "127.0.0.1"}
    env["JAVA_HOME"] = str(java)
    daemons: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        argv = [f"{find_spark()}/bin/spark-class", f"org.apache.spark.deploy.{name}"]
        with (folder / name).open("wb") as log:
            daemon = subprocess.Popen(
                [*argv, "--host", "127.0.0.1", *arguments],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        daemons.append(daemon)
        return daemon

    port, pages, own = free_port(), free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    try:
        master = start("master.Master", "--port", str(port), "--webui-port", str(pages))
        wait_until_listening(pages, master)
        size = ("--cores", "8", "--memory", "8g", "--webui-port", str(own))
        wait_until_listening(own, start("worker.Worker", *size, url))
        yield Standalone(url, f"http://127.0.0.1:{pages}", daemons[1].pid)
    finally:
        for daemon in daemons:
            with suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
