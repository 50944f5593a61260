"""What a task costs in statements, requests, bytes, processes, wake-ups …: counted, not timed."""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from bench.counts import budget, idle
from bench.counts.budget import Costs, chosen
from bench.counts.counting import (
    CALL_BYTES,
    CALLS,
    COMMITS,
    LAUNCHER_WAKE_UPS,
    PROCESSES,
    REQUEST_BYTES,
    REQUESTS,
    STATEMENTS,
    VALUE_BYTES,
    counting,
)
from bench.counts.loop import AGENT, MASTER, PYTHON_CALLS, WAKE_UPS
from bench.counts.one_process import one_process
from bench.counts.other_work import other_work
from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.core.definition.model import WorkflowSpec
from shoal.runtime.settings import ClusterSettings

SECTION = "counts"
KINDS = (
    STATEMENTS,
    COMMITS,
    REQUESTS,
    CALLS,
    PROCESSES,
    VALUE_BYTES,
    REQUEST_BYTES,
    CALL_BYTES,
    f"{WAKE_UPS}: {MASTER}",
    f"{WAKE_UPS}: {AGENT}",
    LAUNCHER_WAKE_UPS,
    f"{PYTHON_CALLS}: {MASTER}",
    f"{PYTHON_CALLS}: {AGENT}",
)
# With which a session survives a standstill: to repair what is lost is not what tasks cost.
SESSION_S = 40.0
_ROUNDS = 3  # quiet ones, and as many beside other work


def specs() -> dict[str, tuple[WorkflowSpec, int]]:
    """Return workflows and how often each is run, by the name of the workload."""
    diamond = [_task("a"), *(_task(name, "a") for name in "bcd"), _task("e", "b", "c", "d")]
    return {
        "WIDE 200": (_spec("wide", [_task(f"t{n}") for n in range(200)]), 1),
        "CHAIN 20": (
            _spec("chain", [_task(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(20)]),
            1,
        ),
        "MANY 40 x 5": (_spec("many", diamond), 40),
    }


def _task(name: str, *after: str) -> dict[str, Any]:
    params = {"script": "true"}
    return {"name": name, "type": "SHELL", "params": params, "depends_on": list(after)}


def _spec(name: str, tasks: list[dict[str, Any]]) -> WorkflowSpec:
    return WorkflowSpec.model_validate({"name": name, "tasks": tasks})


async def measure(cluster: ClusterSettings) -> AsyncGenerator[Costs, None]:
    """Yield the counts per task of each workload, round by round, without end."""
    with counting(cluster.data) as counts:
        async with one_process(cluster) as roles:
            await roles.run(_spec("warm", [_task("only")]), 1, counts)
            while True:
                yield {
                    name: await roles.run(spec, instances, counts)
                    for name, (spec, instances) in specs().items()
                }


async def measure_here(folder: Path, zookeeper: str, *, record: bool) -> Costs:
    """Return the counts of one round, or the most of several, half of them beside other work."""
    cluster = ClusterSettings(data=folder, zookeeper=zookeeper, session_timeout_s=SESSION_S)
    async with aclosing(measure(cluster)) as rounds:
        if not record:
            return await anext(rounds)
        found = [await anext(rounds) for _ in range(_ROUNDS)]
        with other_work():
            found += [await anext(rounds) for _ in range(_ROUNDS)]
    return chosen(found, max)


def table(found: Costs, kinds: Sequence[str] = KINDS, head: str = "per task") -> str:
    """Return the counts as Markdown."""
    parts = sorted({kind for costs in found.values() for kind in costs} - set(kinds))
    text = f"| {head} | {' | '.join(found)} |\n| --- |{' ---: |' * len(found)}\n"
    for kind in (*kinds, *parts):
        cells = " | ".join(_number(costs.get(kind, 0.0)) for costs in found.values())
        text += f"| {kind} | {cells} |\n"
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.counts", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the figures to budget.json")
    record = parser.parse_args().record
    with (
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
        ZooKeeperServer(Path(folder) / "zookeeper", free_port(), find_java()) as server,
    ):
        server.wait_ready()
        data, idle_data = Path(folder) / "data", Path(folder) / "idle"
        data.mkdir()
        idle_data.mkdir()
        found = asyncio.run(measure_here(data, server.address, record=record))
        quiet = ClusterSettings(data=idle_data, zookeeper=f"{server.address}/idle")
        minutes = [
            {idle.WORKLOAD: asyncio.run(idle.idle_minute(quiet))}
            for _ in range(_ROUNDS if record else 1)
        ]
        by_minute = chosen(minutes, max)
    sys.stdout.write(table(found))
    sys.stdout.write("\nA master, a worker and an alert server without work:\n\n")
    sys.stdout.write(table(by_minute, idle.KINDS, "per minute"))
    sys.stdout.write(f"\n{machine()}\n")
    if record:
        kept = {w: {kind: costs[kind] for kind in KINDS} for w, costs in found.items()}
        for workload, costs in by_minute.items():
            kept[workload] = {kind: costs[kind] for kind in idle.KINDS}
        budget.record(SECTION, kept)


if __name__ == "__main__":
    main()
