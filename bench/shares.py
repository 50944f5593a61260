"""Measure how long the one run of a project waits while another project floods the cluster.

For tasks of several lengths, and with one and three masters: one project starts a hundred runs of
one task, then another project starts one. Its wait, from the request to the beginning of its task,
is given in lengths of the flood's task, and in tasks of the flood that have begun meanwhile.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bench.support.cluster import Running, Size, running
from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr

FLOOD = 100  # runs for the one of the other project
SLOTS = 2
LENGTHS_S = (0.1, 1.0, 10.0)
MASTERS = (1, 3)
PATIENCE_S = 120.0


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.shares", description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--masters", type=int, nargs="*", default=list(MASTERS))
    parser.add_argument("--lengths", type=float, nargs="*", default=list(LENGTHS_S))
    given = parser.parse_args()
    rows = [
        "| masters | task of the flood, s | wait of the other project, s | in tasks' lengths | "
        "tasks of the flood begun meanwhile | runs of the flood still waiting |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for masters in given.masters:
        for length_s in given.lengths:
            with tempfile.TemporaryDirectory() as folder:
                size = Size(masters=masters, workers=1, slots=SLOTS)
                logs = Path("bench/results/logs-shares")
                with running(Path(folder) / "cluster", given.database, size, logs) as cluster:
                    rows.append(_row(masters, length_s, *_measure(cluster, length_s)))
                    sys.stderr.write(rows[-1] + "\n")
    sys.stdout.write("\n".join([machine(), "", *rows, ""]))


def _measure(cluster: Running, length_s: float) -> tuple[float, int, int]:
    """Return the wait, the tasks of the flood begun meanwhile, and its runs that wait then."""
    rest = cluster.rest
    for project in ("flood", "other"):
        rest.make_project(project)
    rest.publish("flood", [_sleeping(length_s)], project="flood")
    rest.publish("other", [_sleeping(0.0)], project="other")
    rest.start("other", project="other")  # what is only slow the first time
    _begun(cluster, "other", 1)
    rest.start_many("flood", FLOOD, 4, project="flood")
    _begun(cluster, "flood", SLOTS + 1 if length_s < 1.0 else SLOTS)
    asked_at = time.time()
    rest.start("other", project="other")
    wait_s = max(_begun(cluster, "other", 2)) - asked_at
    begun = _moments(cluster, "flood")
    meanwhile = sum(asked_at < at < asked_at + wait_s for at in begun)
    return wait_s, meanwhile, FLOOD - sum(at < asked_at + wait_s for at in begun)


def _begun(cluster: Running, workflow: str, count: int) -> Sequence[float]:
    """Wait until the tasks of so many runs have begun; return when, in seconds since 1970."""
    deadline = time.monotonic() + PATIENCE_S
    while len(found := _moments(cluster, workflow)) < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"{workflow}: {len(found)} of {count} tasks have begun")
        time.sleep(0.02)
    return found


def _moments(cluster: Running, workflow: str) -> list[float]:
    tasks = cluster.rest.tasks(workflow, project=workflow)
    begun = (one["started_at"] for one in tasks if one["started_at"] is not None)
    return [datetime.fromisoformat(at).timestamp() for at in begun]


def _sleeping(length_s: float) -> dict[str, object]:
    return {"name": "t", "type": "SHELL", "params": {"script": f"sleep {length_s}"}}


def _row(masters: int, length_s: float, wait_s: float, meanwhile: int, waiting: int) -> str:
    cells = (masters, f"{length_s:g}", f"{wait_s:.2f}", f"{wait_s / length_s:.1f}")
    return f"| {' | '.join(map(str, (*cells, meanwhile, waiting)))} |"


if __name__ == "__main__":
    main()
