# ruff: noqa: T201  (it prints what it has measured)
"""Ask an API for each view over 1,000 workflows and 28 days, beside the 28 days before them.

In process, on SQLite, with results as the loader stores them. Processor time, which hardly depends
on what else the machine does, and on a quiet one is the time that it takes. *First*: the API has
just started, and reads all days. *Then*: the median of five more, in which it reads what is new.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

import httpx

from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from bench.views.made import LAST, Made
from shoal.api.app import create_app
from shoal.api.main import open_services
from shoal.api.settings import ApiSettings
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.proto.tls import TlsFiles, create_identity
from shoal.runtime.settings import ClusterSettings
from tests.support.insight import rollups

TOKEN = "x" * 43
VIEWS: Mapping[str, str] = {
    "summary": "insight/summary",
    "workflows, what got slower": "insight/workflows?sort=slower",
    "workflows, what costs most": "insight/workflows?sort=cost",
    "workflows of a project": "insight/workflows?project=flights",
    "tasks of a workflow": "insight/tasks?project=flights&workflow=ingest-0",
    "failures": "insight/failures",
    "costs by workflow": "insight/costs",
    "costs by label": "insight/costs?by=label",
    "costs by task, of a workflow": "insight/costs?by=task&project=flights&workflow=ingest-0",
    "load": "insight/load",
    "schedule minutes": "insight/schedule-minutes",
    "results": "insight/rollups",
    "rows of a result": "insight/rollup-rows?job=task_days",
}


async def measured(workflows: int, tasks: int, days: int, folder: Path) -> None:
    """Print what each view takes."""
    create_identity(TlsFiles.inside(folder / "tls").ca.parent)
    with ZooKeeperServer(folder / "zookeeper", free_port(), find_java()) as server:
        cluster = ClusterSettings(data=folder, zookeeper=server.address, partitions=4)
        async with AsyncExitStack() as stack:
            services = await open_services(
                stack, ApiSettings(port=0), cluster, TOKEN, asyncio.Event()
            )
            began = time.monotonic()
            made = Made(workflows, tasks, 2 * days)
            for day in made.days:
                for job, blocks in made.of_day(day):
                    await rollups.store(services.store.database, job, day, blocks)
            for job, blocks in made.snapshots():
                await rollups.store(services.store.database, job, LAST, blocks)
            _say(f"written in {time.monotonic() - began:.0f} s")
            client = await stack.enter_async_context(
                httpx.AsyncClient(
                    transport=httpx.ASGITransport(create_app(services)),
                    base_url="http://localhost",
                    headers={"Authorization": f"Bearer {TOKEN}"},
                    timeout=120,
                )
            )
            print("| view | first, s | then, s |\n| --- | ---: | ---: |")
            for name, path in VIEWS.items():
                services.day_results.forget()
                first = await _asked(client, path)
                then = median([await _asked(client, path) for _ in range(5)])
                print(f"| {name} | {first:.2f} | {then:.2f} |", flush=True)


async def _asked(client: httpx.AsyncClient, path: str) -> float:
    began = time.process_time()
    answer = await client.get(f"/api/v1/{path}")
    answer.raise_for_status()
    return time.process_time() - began


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.views", description=__doc__)
    parser.add_argument("--workflows", type=int, default=1_000)
    parser.add_argument("--tasks", type=int, default=10, help="of each workflow")
    parser.add_argument("--days", type=int, default=28, help="of the window; as many before it")
    given = parser.parse_args()
    log_warnings_to_stderr()
    _say(machine())
    folder = Path(tempfile.mkdtemp(prefix="shoal-bench-"))
    try:
        asyncio.run(measured(given.workflows, given.tasks, given.days, folder))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
