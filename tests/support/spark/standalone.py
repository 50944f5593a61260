"""A real standalone cluster of Spark's on the loopback: a master, and a worker with two cores."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from shoal.client.local.zookeeper import free_port
from shoal.worker.types.spark.command import find_spark
from tests.support.servers.listening import wait_until_listening


@dataclass(frozen=True)
class StandaloneSpark:
    """``url``: of the master; ``worker``: the process below which executors run."""

    url: str
    worker: subprocess.Popen[bytes]


@contextmanager
def standalone_spark(folder: Path) -> Iterator[StandaloneSpark]:
    """Start both, with the Java of ``JAVA_HOME``; their logs are in ``folder``."""
    env = {**os.environ, "SPARK_HOME": str(find_spark()), "SPARK_LOCAL_IP": "127.0.0.1"}
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    daemons: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        argv = [f"{find_spark()}/bin/spark-class", f"org.apache.spark.deploy.{name}"]
        argv += ["--host", "127.0.0.1", "--webui-port", "0"]
        with (folder / name).open("wb") as log:
            daemon = subprocess.Popen(
                [*argv, *arguments],
                cwd=folder,
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        daemons.append(daemon)
        return daemon

    try:
        wait_until_listening(port, start("master.Master", "--port", str(port)))
        start("worker.Worker", "--cores", "2", "--memory", "1g", url)
        yield StandaloneSpark(url, daemons[1])
    finally:
        for daemon in daemons:
            with suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
