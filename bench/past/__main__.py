"""Measure past runs out of a year of history: pages, with and without filters, and single runs.

Each question goes the way that the API takes: to a process of its own, started at the first one.
"""

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.insight.history import FIRST, Writer
from bench.support.machine import machine
from shoal.insight.past.client import PastRuns
from shoal.insight.past.questions import PageWanted

DAYS = 365
_ATTEMPTS = 9.33  # of an instance that the writer makes
_UID = "bench"


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.past", description=__doc__)
    parser.add_argument("--instances", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=20, help="how often each question is asked")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        asyncio.run(_measure(Path(name), arguments))
    _say(f"\n{machine()}")
    return 0


async def _measure(folder: Path, arguments: argparse.Namespace) -> None:
    from shoal.insight.history.store import HistoryStore

    root = Path(HistoryStore(str(folder), _UID).root)
    os.mkdir(root)
    of_day = int(arguments.instances * _ATTEMPTS / DAYS)
    writer = Writer(root, attempts_of_day=of_day)
    attempts = writer.write(of_day * DAYS)
    found = HistoryStore(str(folder), _UID).contents()
    runs = sum(file.rows for file in found.of("instances"))
    size = sum(file.size for file in found.files.values())
    _say(f"{runs:,} runs, {attempts:,} attempts, {len(found.files):,} files, {size >> 20} MiB\n")
    _say("| question | rows | median | slowest |")
    _say("| --- | ---: | ---: | ---: |")
    past, chance = PastRuns(str(folder), _UID), random.Random(1)
    last = max(file.day for file in found.of("instances"))

    def page(**fields: Any) -> Callable[[], Awaitable[Any]]:
        return lambda: past.page(PageWanted(limit=50, **fields))

    def some_day() -> Any:
        return FIRST + timedelta(days=chance.randrange(DAYS))

    async def filtered() -> Any:
        return await past.page(PageWanted(limit=50, workflow="workflow-900", last=some_day()))

    async def single() -> Any:
        return await past.run(chance.randint(1, runs))

    questions: tuple[tuple[str, Callable[[], Awaitable[Any]], int], ...] = (
        ("the first page of all, with the start of the process", page(), 1),
        ("the first page of all", page(), arguments.times),
        ("a page behind a day", lambda: page(last=some_day())(), arguments.times),
        ("500 rows", lambda: past.page(PageWanted(limit=500, last=some_day())), arguments.times),
        ("of a rare workflow, behind a day", filtered, arguments.times),
        ("of a state that there is not", page(states=("KILLED",)), 5),
        ("a run by its id", single, 2 * arguments.times),
        ("an id that there is not", lambda: past.run(runs * 2), 5),
        ("the last day, one project", page(first=last, projects=("project-3",)), arguments.times),
    )
    for what, ask, times in questions:
        took, rows = [], 0
        for _ in range(times):
            began = time.monotonic()
            answer = await ask()
            took.append(time.monotonic() - began)
            rows = len(answer.rows) if hasattr(answer, "rows") else int(answer is not None)
        middle, most = statistics.median(took) * 1000, max(took) * 1000
        _say(f"| {what} | {rows} | {middle:,.0f} ms | {most:,.0f} ms |")
    assert past._process is not None
    _say(f"\nThe process had {_peak_kib(past._process.pid) >> 10} MiB at most.")
    await past.aclose()


def _peak_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    raise SystemExit(main())
