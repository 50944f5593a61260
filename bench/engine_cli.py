"""Run workloads on real clusters, beside what the machine can do at all; print and keep a table."""

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bench import processes, spawn_limit
from bench.cluster import Running, Size, running
from bench.engine_report import Idle, Line, markdown
from bench.quiet import log_warnings_to_stderr
from bench.report import machine
from bench.scenarios import (
    Figures,
    Workload,
    chain,
    deep,
    fan,
    many,
    summary,
    trigger,
    wide,
)

DATABASES = ("sqlite", "postgresql")
RESULTS = Path(__file__).with_name("results")
IDLE_S = 30.0
SETTLE_S = 10.0  # after the start, before the idle cluster is watched


def workloads(quick: bool) -> list[Workload]:
    """Return what is measured, in order; ``quick`` leaves out what takes minutes."""
    small = [wide(200), chain(20), trigger(10 if quick else 30), many(100)]
    if quick:
        return small
    large = [wide(10_000), chain(200), many(2_000), deep(10, 20), fan(1_000)]
    return small + large


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=DATABASES, action="append", help="default: both")
    parser.add_argument("--runs", type=int, default=3, help="of which the median counts")
    parser.add_argument("--quick", action="store_true", help="the four smallest workloads")
    parser.add_argument("--only", metavar="TEXT", help="workloads whose name begins like this")
    parser.add_argument("--masters", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--slots", type=int, default=8, help="tasks at once per worker")
    parser.add_argument("--no-idle", action="store_true", help="do not watch an idle cluster")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    given = parser.parse_args()
    size = Size(given.masters, given.workers, given.slots)
    chosen = [w for w in workloads(given.quick) if w.name.startswith(given.only or "")]
    limits = [spawn_limit.measure()]
    lines: list[Line] = []
    idle: list[Idle] = []
    for database in given.database or DATABASES:
        with (
            tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
            running(Path(folder) / "cluster", database, size) as cluster,
        ):
            if not given.no_idle:
                idle.append(watch_idle(database))
            lines += measure(cluster, database, chosen, given.runs)
        limits.append(spawn_limit.measure())
    text = markdown(limits, lines, idle, size) + f"\n{machine()}\n"
    sys.stdout.write(text)
    given.output.mkdir(parents=True, exist_ok=True)
    (given.output / "engine.md").write_text(text, encoding="utf-8")
    content = {
        "limits": [asdict(limit) for limit in limits],
        "lines": [asdict(line) for line in lines],
        "idle": [asdict(one) for one in idle],
        "size": asdict(size),
        "machine": machine(),
    }
    (given.output / "engine.json").write_text(json.dumps(content, indent=1) + "\n")


def measure(cluster: Running, database: str, chosen: Iterable[Workload], runs: int) -> list[Line]:
    """Run each workload several times."""
    lines = []
    wide(50).run(cluster)  # whatever is done once is done now
    for workload in chosen:
        found: list[Figures] = []
        before = processes.processor_s(os.getpid())
        for _ in range(runs):
            gc.collect()
            found.append(workload.run(cluster))
        after = processes.processor_s(os.getpid())
        tasks = sum(run.tasks for run in found)
        cpu_ms = {
            kind: (used - before.get(kind, 0.0)) / tasks * 1e3 for kind, used in after.items()
        }
        lines.append(Line(database, workload.name, dict(summary(found)), cpu_ms))
        sys.stderr.write(f"{lines[-1]}\n")
    return lines


def watch_idle(database: str) -> Idle:
    """Watch a cluster that has nothing to do."""
    time.sleep(SETTLE_S)
    before = processes.processor_s(os.getpid())
    began = time.monotonic()
    time.sleep(IDLE_S)
    after = processes.processor_s(os.getpid())
    spent_s = time.monotonic() - began
    percent = {kind: 100 * (used - before.get(kind, 0.0)) / spent_s for kind, used in after.items()}
    return Idle(database, dict(processes.proportional_bytes(os.getpid())), percent)
