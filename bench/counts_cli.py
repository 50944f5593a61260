"""What a task costs in statements, commits, requests, calls and processes: counted, not timed."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import budget
from bench.counting import CALLS, COMMITS, PROCESSES, REQUESTS, STATEMENTS, counting
from bench.one_process import one_process
from bench.quiet import log_warnings_to_stderr
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.core.model import WorkflowSpec
from shoal.core.settings import ClusterSettings

SECTION = "counts"
KINDS = (STATEMENTS, COMMITS, REQUESTS, CALLS, PROCESSES)


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


async def measure(cluster: ClusterSettings) -> dict[str, dict[str, float]]:
    """Return the counts per task of each workload."""
    with counting(cluster.data) as counts:
        async with one_process(cluster) as roles:
            await roles.run(_spec("warm", [_task("only")]), 1, counts)
            return {
                name: await roles.run(spec, instances, counts)
                for name, (spec, instances) in specs().items()
            }


def table(found: dict[str, dict[str, float]]) -> str:
    """Return the counts as Markdown."""
    parts = sorted({kind for costs in found.values() for kind in costs} - set(KINDS))
    text = f"| per task | {' | '.join(found)} |\n| --- |{' ---: |' * len(found)}\n"
    for kind in (*KINDS, *parts):
        cells = " | ".join(f"{costs.get(kind, 0.0):.2f}" for costs in found.values())
        text += f"| {kind} | {cells} |\n"
    return text


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python bench/counts.py", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the figures to budget.json")
    record = parser.parse_args().record
    with (
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
        ZooKeeperServer(Path(folder) / "zookeeper", free_port(), find_java()) as server,
    ):
        server.wait_ready()
        data = Path(folder) / "data"
        data.mkdir()
        cluster = ClusterSettings(data=data, zookeeper=server.address)
        found = asyncio.run(measure(cluster))
    sys.stdout.write(table(found))
    if record:
        kept = {w: {kind: costs[kind] for kind in KINDS} for w, costs in found.items()}
        budget.record(SECTION, kept)
