"""Measure the loading of results: rows a second, the longest write, what other writes wait.

On both databases, of a day of so many workflows: the results of that day, and the baselines as of
it. First it is loaded with all of the time, and once more with other numbers, which also removes
the rows that no longer count. Then it is loaded a third time by the program that masters
start, at the share that they give it, while this process writes as masters do.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from bench.support.beside import WRITES_S, run_program, small_writes
from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from bench.views.made import LAST, Made
from shoal.insight.history.store import HistoryStore
from shoal.insight.serving.loader import Loader
from shoal.insight.serving.results import RESULTS, ValueKind
from shoal.insight.serving.store import ResultStore
from shoal.sql import Database, UnitOfWork
from tests.integration.insight.made import Row, mark, parquet, put
from tests.support.database.postgresql import DURABLE, temporary_server

T = TypeVar("T")
_PROGRAM = "shoal.insight.serving.program"


class _Timed(Loader):
    """Knows how long each of its writing transactions took."""

    def __init__(self, database: Database, store: ResultStore) -> None:
        super().__init__(database, store)
        self.writes_ms: list[float] = []

    async def _in_turn(
        self, work: Callable[[UnitOfWork], Awaitable[T]], *, is_reading: bool = False
    ) -> T:
        began = time.monotonic()
        found = await super()._in_turn(work, is_reading=is_reading)
        if not is_reading:
            self.writes_ms.append((time.monotonic() - began) * 1000)
        return found


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.loading", description=__doc__)
    parser.add_argument("--workflows", type=int, default=1_000)
    parser.add_argument("--tasks", type=int, default=10, help="of each workflow")
    parser.add_argument("--share", type=float, default=0.2, help="that masters give the loader")
    arguments = parser.parse_args()
    log_warnings_to_stderr()
    _say(
        "| database | rows | rows/s, new and again | its writes: 99 of 100 below, all "
        "| a small write alone, and beside a load | 99 of 100 below |"
    )
    _say("| --- | ---: | --- | --- | --- | --- |")
    with (
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as name,
        temporary_server(DURABLE) as server,
    ):
        folder = Path(name)
        urls = {
            "sqlite": f"sqlite:///{folder / 'shoal.db'}",
            "postgresql": server.create("loading"),
        }
        for kind, url in urls.items():
            asyncio.run(_measure(kind, url, folder / kind, arguments))
    _say(f"\n{machine()}")
    return 0


async def _measure(kind: str, url: str, folder: Path, arguments: argparse.Namespace) -> None:
    async with Database(url) as database:
        await database.migrate()
        async with database.unit_of_work() as uow:
            uid = await uow.cluster.uid()
            await uow.commit()
        store = HistoryStore(str(folder / "history"), uid)
        alone = await small_writes(database, lambda took_s: took_s > WRITES_S)
        rates, writes = [], []
        for seed in range(2):
            await asyncio.to_thread(_leave, Path(store.results), arguments, seed)
            loader = _Timed(database, ResultStore(store))
            began = time.monotonic()
            done = await loader.run()
            rates.append(f"{done.rows / (time.monotonic() - began):,.0f}")
            writes += loader.writes_ms
            if done.refused:
                raise SystemExit(f"the loader refused results: {done.refused}")
        await asyncio.to_thread(_leave, Path(store.results), arguments, 2)
        load = asyncio.create_task(run_program(_PROGRAM, url, folder, arguments.share))
        beside = await small_writes(database, lambda _: load.done())
        await load
    median, most = statistics.median, _highest_of_99
    _say(
        f"| {kind} | {done.rows:,} | {' and '.join(rates)} "
        f"| {most(writes):.0f} and {max(writes):.0f} ms, of {len(writes):,} "
        f"| {median(alone):.2f} and {median(beside):.2f} ms "
        f"| {most(alone):.1f} and {most(beside):.1f} ms |"
    )


def _highest_of_99(took: list[float]) -> float:
    return statistics.quantiles(took, n=100)[98]


def _leave(root: Path, arguments: argparse.Namespace, seed: int) -> None:
    """Store results as the jobs leave them, with their mark."""
    made = Made(arguments.workflows, arguments.tasks, 1, seed)
    stored = []
    baselines = (one for one in made.snapshots() if one[0] == "baselines")
    for job, blocks in (*made.of_day(LAST), *baselines):
        rows = [
            {"project": project, "workflow": workflow, **row} if project else {**row}
            for (project, workflow), some in blocks.items()
            for row in some
        ]
        stored.append(put(root, job, LAST, parquet(job, [*_typed(job, rows)])))
    mark(root, *stored)


def _typed(job: str, rows: list[Row]) -> Iterator[dict[str, Any]]:
    """Yield rows with times where the made ones have texts."""
    times = [name for name, kind in RESULTS[job].columns.items() if kind is ValueKind.TIME]
    for row in rows:
        yield row | {name: datetime.fromisoformat(row[name]) for name in times}


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
