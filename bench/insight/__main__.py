"""Make a history of run attempts, run all jobs over it, and tell what they cost.

A program of its own for each size, with a JVM that starts cold. Memory is the sum over its
processes of what is theirs (PSS), the highest of a sample every two seconds; processor time is that
of all of them. Other work on the machine makes the seconds longer, the processor time hardly.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bench.insight.history import ATTEMPTS_OF_DAY, FIRST, Writer
from bench.support.machine import RESULTS, machine
from bench.support.processes import below, proportional_bytes
from shoal.insight.jobs.source import files_of, manifested

_MIB = 1 << 20
_OF_DAY = "task_days,critical_paths,critical_days,workflow_days,worker_days,concurrency_hours,costs"
_SAMPLE_S = 2.0  # to look at the pages of a gigabyte takes some milliseconds


@dataclass(frozen=True)
class Cost:
    """What a run of the jobs took; ``jobs``: seconds of each step."""

    name: str
    attempts: int
    wall_s: float
    cpu_s: float
    resident_mib: float
    jobs: dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.insight", description=__doc__)
    parser.add_argument("--attempts", type=int, default=10_000_000, help="of the whole history")
    parser.add_argument("--sizes", type=int, nargs="*", help="attempts of each run of the jobs")
    parser.add_argument("--only", help="names of jobs, separated by commas")
    parser.add_argument("--folder", type=Path, help="keep the history here, or use it again")
    parser.add_argument("--no-day", action="store_true", help="leave out the ordinary day")
    parser.add_argument("--output", type=Path, default=RESULTS / "insight.md")
    given = parser.parse_args()
    sizes = given.sizes or [size for size in (1_000_000, 4_000_000) if size < given.attempts]
    if given.sizes is None:
        sizes.append(given.attempts)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        root: Path = (given.folder or Path(folder, "history")) / ("0" * 32)
        if not root.exists():
            began = time.monotonic()
            written = Writer(root).write(given.attempts)
            spent = time.monotonic() - began
            _say(
                f"{written:,} attempts written in {spent:.0f} s, "
                f"{_bytes(root) / written:.0f} bytes each"
            )
        files = files_of(manifested(str(root)), "attempts")
        costs = []
        if not given.no_day:
            last = files[-1].day
            # What is of the day alone, and all: what looks back does so over the 60 days before.
            for name, only in ((f"{last}", _OF_DAY), (f"{last}, all jobs", given.only)):
                costs.append(_cost(name, root, Path(folder), 1, len(files), only))
        for size in sizes:
            days = max(1, round(size / ATTEMPTS_OF_DAY))
            costs.append(_cost("", root, Path(folder), days, days, given.only))
    text = _markdown(costs)
    given.output.write_text(f"{machine()}\n\n{text}", encoding="utf-8")
    _say(text)


def _cost(name: str, root: Path, folder: Path, days: int, until: int, only: str | None) -> Cost:
    """Run the jobs over the last ``days`` of the first ``until`` days."""
    first, last = FIRST + timedelta(days=until - days), FIRST + timedelta(days=until - 1)
    argv = [sys.executable, "-m", "shoal.insight.jobs", "--history", str(root)]
    argv += ["--days", f"{first}:{last}", "--out", str(folder / "out")]
    argv += ["--only", only] if only else []
    began = time.monotonic()
    cpu: dict[int, float] = {}
    most = 0
    with (folder / "told").open("w+b") as told:
        process = subprocess.Popen(argv, stdout=told)
        while process.poll() is None:
            # All below this process: the program itself, its Java and their Python.
            for one in below(os.getpid()):
                cpu[one.pid] = max(cpu.get(one.pid, 0.0), one.cpu_s)
            most = max(most, sum(proportional_bytes(os.getpid()).values()))
            time.sleep(_SAMPLE_S)
        if process.returncode:
            raise SystemExit(process.returncode)
        told.seek(0)
        steps = [json.loads(line) for line in told]
    attempts = sum(
        one.rows for one in files_of(manifested(str(root)), "attempts") if first <= one.day <= last
    )
    cost = Cost(
        name or f"{days} days",
        attempts,
        time.monotonic() - began,
        sum(cpu.values()),
        most / _MIB,
        {step["job"]: step["seconds"] for step in steps},
    )
    _say(json.dumps(cost.__dict__))
    return cost


def _markdown(costs: list[Cost]) -> str:
    lines = ["| days | attempts | seconds | processor seconds | resident MiB |"]
    lines += ["| --- | ---: | ---: | ---: | ---: |"]
    lines += [
        f"| {one.name} | {one.attempts:,} | {one.wall_s:.0f} | {one.cpu_s:.0f} | "
        f"{one.resident_mib:,.0f} |"
        for one in costs
    ]
    lines += ["", "Seconds of each step, in the order in which they follow:", ""]
    lines += ["| step |" + "".join(f" {one.name} |" for one in costs)]
    lines += ["| --- |" + " ---: |" * len(costs)]
    for job in costs[-1].jobs:
        lines.append(
            f"| {job} |"
            + "".join(f" {one.jobs[job]:.1f} |" if job in one.jobs else " |" for one in costs)
        )
    return "\n".join(lines) + "\n"


def _bytes(root: Path) -> int:
    return sum(file.stat().st_size for file in root.rglob("*.parquet"))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
