"""The command line of the queue's benchmark: fill queues of several lengths, claim, tell."""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.queue.crowd import crowd
from bench.queue.measure import Figures, Trial, fill
from bench.queue.report import markdown
from bench.queue.workload import entries
from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.coordination import TaskQueue, ZkSession, prepare

HEAP_MB = 2048  # a million entries need most of a gigabyte
SESSION_TIMEOUT_S = 30


class Waiting:
    """One queue with a server of its own, so that a long queue slows no other measurement."""

    def __init__(self, folder: Path, count: int) -> None:
        self.count = count
        self.server = ZooKeeperServer(folder, free_port(), find_java(), heap_mb=HEAP_MB)
        self.entries = entries()
        self.queue: TaskQueue

    async def fill(self, stack: AsyncExitStack, progress: Callable[[int], None]) -> float:
        """Start the server and put all entries; return how many were put per second."""
        stack.enter_context(self.server)
        session = ZkSession(self.server.address, session_timeout_s=SESSION_TIMEOUT_S, name="filler")
        await stack.enter_async_context(session)
        await prepare(session)
        self.queue = TaskQueue(session)
        return await fill(self.queue, islice(self.entries, self.count), progress)


async def run(
    options: argparse.Namespace, folder: Path, bars: Progress
) -> tuple[dict[int, float], list[Figures]]:
    """Return how fast each number of entries was put, and the figures of all combinations."""
    async with AsyncExitStack() as stack:
        enqueued: dict[int, float] = {}
        queues = [Waiting(folder / str(count), count) for count in sorted(options.entries)]
        for waiting in queues:
            bar = bars.add_task(f"put {waiting.count:,} entries", total=waiting.count)
            progress = partial(bars.advance, bar)
            enqueued[waiting.count] = await waiting.fill(stack, progress)
        figures: list[Figures] = []
        for claimers in options.claimers:
            figures += await claim(queues, claimers, options, bars)
    return enqueued, figures


async def claim(
    queues: list[Waiting], claimers: int, options: argparse.Namespace, bars: Progress
) -> list[Figures]:
    """Measure claims from all ``queues``, a round of each in turn: all meet the same noise."""
    figures: list[Figures] = []
    async with AsyncExitStack() as stack:
        crowds = [
            await stack.enter_async_context(
                crowd(waiting.server.address, claimers, options.processes)
            )
            for waiting in queues
        ]
        for size in options.sizes:
            trials = [
                Trial(waiting.queue, waiting.count, waiting.entries, some, size)
                for waiting, some in zip(queues, crowds, strict=True)
            ]
            what = f"{claimers} claimers, {size} entries at once"
            for _ in bars.track(range(options.rounds), description=what):
                for trial in trials:
                    await trial.round()
            figures += [trial.figures() for trial in trials]
    return figures


def options_of(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.queue",
        description="Measure how fast tasks are put into the queue and claimed from it, "
        "on ZooKeeper servers of its own in a temporary folder.",
    )
    add = parser.add_argument
    add("--entries", type=int, nargs="+", default=[1_000, 100_000, 1_000_000], metavar="N",
        help="how many wait (default: 1000 100000 1000000)")  # fmt: skip
    add("--claimers", type=int, nargs="+", default=[1, 8], metavar="N",
        help="how many claim at once, each in its own session (default: 1 8)")  # fmt: skip
    add("--sizes", type=int, nargs="+", default=[1, 8], metavar="N",
        help="entries asked for by one claim (default: 1 8)")  # fmt: skip
    add("--rounds", type=int, default=20, metavar="N",
        help="rounds of 512 claimed entries for each figure (default: 20)")  # fmt: skip
    add("--processes", type=int, default=4, metavar="N",
        help="processes that claimers are spread over (default: 4)")  # fmt: skip
    add("--json", action="store_true", help="print JSON instead of Markdown")
    add("--output", type=Path, metavar="FILE", help="write the result to FILE, too")
    options = parser.parse_args(arguments)
    if min(options.entries) < 2 * max(options.claimers) * max(options.sizes):
        parser.error("there must be twice as many entries as all claimers claim at once")
    return options


def main() -> None:
    """Measure and print."""
    options = options_of(sys.argv[1:])
    log_warnings_to_stderr()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bars,
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
    ):
        enqueued, figures = asyncio.run(run(options, Path(folder), bars))
    if options.json:
        found = {"machine": machine(), "enqueued_per_s": enqueued}
        text = json.dumps({**found, "claims": [asdict(f) for f in figures]}, indent=2) + "\n"
    else:
        text = markdown(enqueued, figures)
    sys.stdout.write(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
