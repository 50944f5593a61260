"""Run workloads on real clusters, beside what the machine can do at all; print and keep a table."""

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from os import getpid
from pathlib import Path

from bench.engine.report import Idle, Line, markdown, without_tasks
from bench.engine.scenarios import Figures, Workload, chain, deep, fan, many, trigger, wide
from bench.support import processes, yardsticks
from bench.support.cluster import Running, Size, running
from bench.support.machine import DATABASES, RESULTS, machine, revision
from bench.support.quiet import log_warnings_to_stderr
from bench.support.yardsticks import Yardsticks

IDLE_S = 30.0
SETTLE_S = 10.0  # after the start, before the idle cluster is watched


def workloads(quick: bool) -> list[Workload]:
    """Return what is measured, in order; ``quick`` leaves out what takes minutes."""
    small = [wide(200), chain(20), trigger(10 if quick else 30), many(100)]
    if quick:
        return small
    large = [wide(10_000), chain(200), many(2_000), deep(10, 20), fan(1_000)]
    return small + large


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__)
    parser.add_argument("--database", choices=DATABASES, action="append", help="default: both")
    parser.add_argument("--runs", type=int, default=3, help="of which the median counts")
    parser.add_argument("--quick", action="store_true", help="the four smallest workloads")
    parser.add_argument("--only", metavar="TEXT", help="workloads whose name begins like this")
    parser.add_argument("--masters", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--slots", type=int, default=8, help="tasks at once per worker")
    parser.add_argument("--no-idle", action="store_true", help="do not watch an idle cluster")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--name", default="engine", help="of the files there")
    return parser.parse_args(arguments)


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    sys.stderr.write(f"measuring {revision()}\n")  # now: HEAD may move meanwhile
    given = options_of(sys.argv[1:])
    size = Size(given.masters, given.workers, given.slots)
    chosen = [w for w in workloads(given.quick) if w.name.startswith(given.only or "")]
    found = [yardsticks.measure()]
    lines: list[Line] = []
    idle: list[Idle] = []
    for database in given.database or DATABASES:
        logs = given.output / f"{given.name}-logs"
        with (
            tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
            running(Path(folder) / "cluster", database, size, logs) as cluster,
        ):
            if not given.no_idle:
                idle.append(watch_idle(database))
            lines += measure(cluster, database, chosen, given.runs, found)
    by = Yardsticks.median(found)
    text = markdown(by, lines, idle, size) + f"\n{machine()}\n"
    sys.stdout.write(text)
    given.output.mkdir(parents=True, exist_ok=True)
    (given.output / f"{given.name}.md").write_text(text, encoding="utf-8")
    content = {
        "machine": machine(),
        "revision": revision(),
        "size": asdict(size),
        "yardsticks": asdict(by),
        "each": [asdict(one) for one in found],
        "lines": [asdict(line) for line in lines],
        "idle": [asdict(one) for one in idle],
    }
    result = given.output / f"{given.name}.json"
    result.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def measure(
    cluster: Running,
    database: str,
    chosen: Iterable[Workload],
    runs: int,
    by: list[Yardsticks],
) -> list[Line]:
    """Run each workload several times; after each the yardsticks are measured again."""
    lines = []
    wide(50).run(cluster)  # whatever is done once is done now
    for workload in chosen:
        found: list[Figures] = []
        for _ in range(runs):
            gc.collect()
            found.append(workload.run(cluster))
        tasks = sum(run.tasks for run in found)
        kinds = {kind for run in found for kind in run.cpu_s}
        cpu_ms = {k: sum(run.cpu_s.get(k, 0.0) for run in found) / tasks * 1e3 for k in kinds}
        each = [run.named() for run in found]
        medians = {name: statistics.median(one[name] for one in each) for name in each[0]}
        by.append(yardsticks.measure())
        task_ms = by[-1].spawn.clock_ms if workload.clocks else by[-1].spawn.count_ms
        lines.append(Line(database, workload.name, medians, each, without_tasks(cpu_ms, task_ms)))
        told = ", ".join(f"{name} {value:.1f}" for name, value in medians.items())
        sys.stderr.write(f"{workload.name} on {database}: {told}\n")
    return lines


def watch_idle(database: str) -> Idle:
    """Watch a cluster that has nothing to do."""
    time.sleep(SETTLE_S)
    began = time.monotonic()
    with processes.metered() as cpu_s:
        time.sleep(IDLE_S)
    spent_s = time.monotonic() - began
    percent = {k: 100 * s / spent_s for k, s in cpu_s.items() if k != processes.BENCH}
    return Idle(database, dict(processes.proportional_bytes(getpid())), percent)


if __name__ == "__main__":
    main()
