"""Run tasks on a real cluster and sample its Python processes: processor time by function."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench.engine.scenarios import many, wide
from bench.profile.sampling import Sampler, Samples
from bench.support import processes
from bench.support.cluster import Size, running
from bench.support.machine import DATABASES, RESULTS, machine
from bench.support.quiet import log_warnings_to_stderr

SAMPLED = ("master", "worker agent", processes.LAUNCHER, "api")
LAUNCHER_NAME = "shoal-launcher"  # what its process calls itself


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--database", choices=DATABASES, default="sqlite")
    parser.add_argument("--tasks", type=int, default=3_000)
    parser.add_argument("--many", action="store_true", help="instances of 5 instead of one")
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--top", type=int, default=25, help="functions of each process")
    given = parser.parse_args()
    workload = many(given.tasks // 5) if given.many else wide(given.tasks)
    with (
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
        running(
            Path(folder) / "cluster", given.database, Size(slots=given.slots), RESULTS / "logs"
        ) as cluster,
    ):
        wide(50).run(cluster)
        samplers = {
            process.kind: Sampler(
                process.pid,
                Path(folder) / f"{process.pid}.raw",
                family=process.kind == processes.LAUNCHER,
            )
            for process in _sampled(processes.below(os.getpid()))
        }
        figures = workload.run(cluster)
        found = {kind: sampler.stop() for kind, sampler in samplers.items()}
    cpu_ms = {kind: used / figures.tasks * 1e3 for kind, used in figures.cpu_s.items()}
    rate = figures.named()["tasks_per_s"]
    sys.stdout.write(f"{workload.name} on {given.database}: {rate:,.0f} tasks/s with samplers\n")
    for kind, spent_ms in sorted(cpu_ms.items(), key=lambda item: -item[1]):
        sys.stdout.write(f"\n{kind}: {spent_ms:.2f} ms of processor time per task\n\n")
        if kind in found:
            sys.stdout.write(table(found[kind], spent_ms, given.top))
    sys.stdout.write(f"\n{machine()}\n")


def _sampled(found: list[processes.Process]) -> list[processes.Process]:
    """Return one process of each kind that is Python: of launchers the one that has the shims."""
    others = [p for p in found if p.kind != processes.LAUNCHER or p.name == LAUNCHER_NAME]
    kinds = {process.kind: process for process in others}
    return [kinds[kind] for kind in SAMPLED if kind in kinds]


def table(samples: Samples, spent_ms: float, top: int) -> str:
    """Return the functions that use most, in microseconds per task."""
    each_us = spent_ms * 1e3 / max(1, samples.total)
    text = "| µs per task, with what it calls | own | function |\n| ---: | ---: | --- |\n"
    for name, count in samples.inclusive.most_common(top * 2):
        own = samples.own[name]
        text += f"| {count * each_us:.0f} | {own * each_us:.0f} | {name} |\n"
    text += "\n| µs per task, own | function |\n| ---: | --- |\n"
    for name, count in samples.own.most_common(top):
        text += f"| {count * each_us:.0f} | {name} |\n"
    return text


if __name__ == "__main__":
    main()
