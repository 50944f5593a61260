"""What a task costs a master with much in its database, or much that is open."""

import gc
import os
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

from bench.growth.driven_engine import DrivenEngine, diamond, driven_engine, wide
from bench.growth.past import multiply
from bench.growth.table import Row
from bench.support import processes
from shoal.sql import Database

INSTANCES = 200  # diamonds that are run for each figure
ROUNDS = 3  # of which the cheapest counts
LARGE = 10_000  # tasks of the instance whose memory is told by the task
FIGURE = "ms of processor time per task"
SERVER = "ms of the database server's per task"


async def past(url: str, where: str, sizes: Iterable[int]) -> list[Row]:
    """Return what a task costs with so many tasks in the past."""
    rows: list[Row] = []
    async with _opened(url) as hand:
        await _run(hand, 1)  # this one is copied
    there = 5
    for size in sizes:
        multiply(url, 1, max(0, size - there) // 5)
        async with _opened(url) as hand:
            rows += [
                Row("tasks in the past", where, size, figure, cost)
                for figure, cost in (await _cost(hand)).items()
            ]
        there = size + INSTANCES * 5 * ROUNDS
    return rows


async def beside(url: str, where: str, sizes: Iterable[int]) -> list[Row]:
    """Return what a task costs beside so many open instances, and the memory that these take."""
    rows: list[Row] = []
    there = 0
    async with _opened(url) as hand:
        await _run(hand, 20)  # what is kept once and for all is kept now
        for size in sizes:
            with _memory() as taken:
                await hand.start(diamond(), size - there)
            if size - there > 100:
                figure = "bytes of memory for each"
                each = taken[0] / (size - there)
                rows.append(Row("open instances of 5 tasks", where, size, figure, each))
            there = size
            rows += [
                Row("open instances of 5 tasks", where, size, figure, cost)
                for figure, cost in (await _cost(hand)).items()
            ]
        with _memory() as taken:
            await hand.start(wide(LARGE), 1)
        rows.append(
            Row("tasks of an open instance", where, LARGE, "bytes for each", taken[0] / LARGE)
        )
    began = time.process_time()
    async with _opened(url):
        figure = "ms of processor time to take one over"
        each = (time.process_time() - began) / max(1, there) * 1e3
    rows.append(Row("open instances of 5 tasks", where, there, figure, each))
    return rows


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[DrivenEngine]:
    async with Database(url) as database:
        await database.migrate()
        async with driven_engine(database) as hand:
            yield hand


async def _run(hand: DrivenEngine, instances: int) -> None:
    await hand.start(diamond(), instances)
    await hand.run(instances * 5)


async def _cost(hand: DrivenEngine) -> dict[str, float]:
    """Return what starting and running a task costs, here and at the database's server."""
    await _run(hand, 20)
    found: dict[str, float] = {}
    for _ in range(ROUNDS):
        server = processes.processor_s(os.getpid()).get("PostgreSQL", 0.0)
        began = time.process_time()
        await _run(hand, INSTANCES)
        spent = {FIGURE: time.process_time() - began}
        if server:
            spent[SERVER] = processes.processor_s(os.getpid())["PostgreSQL"] - server
        for figure, seconds in spent.items():
            cost = seconds / INSTANCES / 5 * 1e3
            found[figure] = min(cost, found.get(figure, cost))
    return found


@contextmanager
def _memory() -> Iterator[list[int]]:
    """Put the bytes that the block has taken for good into the list."""
    taken: list[int] = []
    tracemalloc.start()
    yield taken
    gc.collect()
    taken.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
