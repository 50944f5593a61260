"""The masters of a cluster: their partitions, their processes, their restarts."""

import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from shoal.client.local.cluster import LocalCluster
from tests.acceptance.rest import Rest
from tests.support.waiting import DEADLINE_S


@contextmanager
def watched(cluster: LocalCluster) -> Iterator[None]:
    """Let the supervisor restart what dies, as ``shoal up`` does."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            cluster.watch()

    # What this thread starts again ends with it: PR_SET_PDEATHSIG speaks of threads.
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def written(file: Path) -> list[str]:
    """The lines that tasks have appended to a file so far."""
    return file.read_text().splitlines() if file.exists() else []


def pid_of(master: Any) -> int:
    """A master's id is host-pid-random."""
    return int(master["id"].split("-")[-2])


def shares(cluster: Any) -> dict[int, int]:
    """How many partitions each master owns, by its process id."""
    return {pid_of(master): len(master["partitions"]) for master in cluster["masters"]}


def shared_out(rest: Rest, sizes: list[int], without: int | None = None) -> Any:
    """Return the cluster once its masters own so many partitions, and ``without`` has gone."""
    return rest.until(
        lambda: rest.get("/cluster"),
        lambda seen: sorted(shares(seen).values()) == sizes and without not in shares(seen),
        timeout_s=2 * DEADLINE_S,
    )


def partition_of_instance(cluster: LocalCluster, instance_id: int) -> int:
    """Look it up in the database: the API keeps that to itself."""
    with closing(sqlite3.connect(cluster.data / "shoal.db")) as database:
        query = "SELECT partition FROM workflow_instance WHERE id = ?"
        return int(database.execute(query, [instance_id]).fetchone()[0])


def kill_owner(cluster: LocalCluster, rest: Rest, instance_id: int) -> None:
    """Kill the master that holds this instance, among others."""
    partition = partition_of_instance(cluster, instance_id)
    masters = shared_out(rest, [64, 64])["masters"]
    os.kill(next(pid_of(m) for m in masters if partition in m["partitions"]), signal.SIGKILL)
