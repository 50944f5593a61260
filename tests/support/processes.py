"""Processes of a cluster: the ``shoal`` program, and whatever belongs to a data folder."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from shoal.client.local.cluster import LocalCluster
from tests.support.waiting import DEADLINE_S


def family(data: Path) -> set[int]:
    """Every process whose command line or environment names the data folder."""
    found = set()
    for process in psutil.process_iter():
        try:
            text = [*process.cmdline(), process.cwd(), *process.environ().values()]
        except (psutil.Error, OSError):
            continue
        if process.pid != os.getpid() and any(str(data) in part for part in text):
            found.add(process.pid)
    return found


def nothing_left(data: Path) -> bool:
    """Wait a moment for the last processes to go."""
    deadline = time.monotonic() + DEADLINE_S
    while family(data):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def shoal(cluster: LocalCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the cluster's machine, without other settings of this environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
    return subprocess.run(
        [sys.executable, "-m", "shoal.client.cli", *arguments],
        env={**kept, "SHOAL_DATA": str(cluster.data), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=20 * DEADLINE_S,
    )


def export_history(cluster: LocalCluster) -> None:
    """Export all that has ended. If a master is exporting as well, the next one goes on."""
    for _ in range(5):
        done = shoal(cluster, "insight", "export")
        if "another exporter" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
