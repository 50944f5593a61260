"""Measure the export of a long history: rows a second, memory, the database's share of the time.

On both databases, each filled with so many attempts by plain SQL, then exported by the program
that masters start: for a while at the share that masters give it, beside a process that writes as
masters do, so what that waits is seen; then as a whole, as fast as it can.
"""

import argparse
import asyncio
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.lists.history import TASKS, fill
from bench.support.beside import WRITES_S, run_program, small_writes
from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.sql import Database
from tests.support.database.postgresql import DURABLE, temporary_server

LEAST = 300_000  # attempts: fewer are exported before the other process was measured


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=__doc__)
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.2, help="that masters give the export")
    arguments = parser.parse_args()
    if arguments.attempts < LEAST:
        parser.error(
            f"--attempts: at least {LEAST}, for an export beside which others are measured"
        )
    log_warnings_to_stderr()
    _say("| database | attempts/s | MiB at most | bytes an attempt | writes beside it |")
    _say("| --- | ---: | ---: | ---: | --- |")
    with (
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as name,
        temporary_server(DURABLE) as server,
    ):
        folder = Path(name)
        urls = {
            "sqlite": f"sqlite:///{folder / 'shoal.db'}",
            "postgresql": server.create("history"),
        }
        for kind, url in urls.items():
            _say(asyncio.run(_measure(kind, url, folder / kind, arguments)))
    _say(f"\n{machine()}")
    return 0


async def _measure(kind: str, url: str, folder: Path, arguments: argparse.Namespace) -> str:
    async with Database(url) as database:
        await database.migrate()
        await fill(database, arguments.attempts // TASKS)
        alone = await _writes(database)
        # As masters export: the database is theirs for the rest of the time.
        export = asyncio.create_task(_export(url, folder / "shared", arguments.share))
        beside = await _writes(database)
        export.cancel()
        await asyncio.wait({export})
    took_s, memory, size = await _export(url, folder / "whole", 1.0)
    return (
        f"| {kind} | {arguments.attempts / took_s:,.0f} | {memory:,.0f} "
        f"| {size / arguments.attempts:.0f} "
        f"| {alone[0]:.2f} ms, beside an export {beside[0]:.2f} (99 of 100 below {alone[1]:.1f} and"
        f" {beside[1]:.1f}) |"
    )


async def _writes(database: Database) -> tuple[float, float]:
    """Commit small changes for a while; return median and 99th percentile, in milliseconds."""
    took = await small_writes(database, lambda took_s: took_s > WRITES_S)
    return statistics.median(took), statistics.quantiles(took, n=100)[98]


async def _export(url: str, folder: Path, share: float) -> tuple[float, float, int]:
    """Export all; return seconds, MiB resident at most, and bytes written."""
    began = time.monotonic()
    await run_program("shoal.insight.export.program", url, folder, share)
    took_s = time.monotonic() - began
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return took_s, memory, _size(folder)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
