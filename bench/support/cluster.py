"""A real cluster on this machine for a benchmark."""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from unittest import mock

from bench.support.rest import Rest
from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.support.database.postgresql import DURABLE, temporary_server

SETTLE_S = 0.25  # after the last task has begun: by then its end is stored


@dataclass(frozen=True)
class Size:
    """How many processes of each kind, and tasks at once per worker."""

    masters: int = 1
    workers: int = 1
    slots: int = 8


@dataclass(frozen=True)
class Running:
    """A cluster that serves."""

    rest: Rest
    folder: Path
    local: LocalCluster
    size: Size

    def require_sound(self, workflow: str = "") -> None:
        """Raises SystemExit if a process has ended or an instance has failed."""
        expected = 2 + self.size.masters + self.size.workers
        if len(self.local.pids()) < expected:
            raise SystemExit(f"a process of the cluster has ended; left are {self.local.pids()}")
        if workflow and self.rest.has(workflow, "FAILED", "STOPPED"):
            raise SystemExit(f"{workflow}: an instance has failed")

    def ended(self, workflow: str, count: int, patience_s: float) -> float:
        """Wait until ``count`` instances have succeeded; return when the last of them ended.

        Seconds since the epoch, by the masters' clock.
        """
        deadline = time.monotonic() + patience_s
        while self.rest.has(workflow, "RUNNING", "QUEUED", "STOPPING"):
            self.require_sound(workflow)
            if time.monotonic() > deadline:
                raise SystemExit(f"{workflow}: instances are still open. {self.rest.health()}")
            time.sleep(SETTLE_S)
        found = list(self.rest.instances(workflow))
        if len(found) != count or any(one["state"] != "SUCCEEDED" for one in found):
            states = sorted({one["state"] for one in found})
            raise SystemExit(f"{workflow}: {len(found)} of {count} instances, {states}")
        return max(_moment(one["finished_at"]) for one in found)


@contextmanager
def running(
    folder: Path,
    database: str,
    size: Size,
    logs: Path,
    postgresql: Sequence[str] = DURABLE,
) -> Iterator[Running]:
    """Run a cluster with ``database`` (``sqlite`` or ``postgresql``) below ``folder``.

    ``postgresql``: the server's settings.

    If the block raises, the cluster's logs are kept in ``logs``, and the error says so.
    """
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        environment = {"SHOAL_LOG_LEVEL": os.environ.get("SHOAL_LOG_LEVEL", "info")}
        if database == "postgresql":
            server = stack.enter_context(temporary_server(postgresql))
            environment["SHOAL_DATABASE_URL"] = server.create("shoal")
        stack.enter_context(mock.patch.dict(os.environ, environment))
        cluster = LocalCluster(
            folder,
            masters=size.masters,
            workers=size.workers,
            slots=size.slots,
            api_port=free_port(),
        )
        stack.enter_context(cluster)
        rest = Rest(cluster.url, cluster.token)
        stack.callback(rest.close)
        try:
            yield Running(rest, folder, cluster, size)
        except SystemExit as error:
            shutil.copytree(folder / "logs", logs, dirs_exist_ok=True)
            raise SystemExit(f"{error}\nThe cluster's logs are in {logs}") from error


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
