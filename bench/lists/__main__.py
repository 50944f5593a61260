"""Measure what a page of each list of the REST API takes when the database has a long history.

A real API process, asked over HTTP, with nobody else at work.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import httpx
import psycopg

from bench.lists.history import FIRST, SPACING, fill
from bench.support.machine import machine
from bench.support.processes import metered
from bench.support.quiet import log_warnings_to_stderr
from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from shoal.sql import Database
from tests.support.database.postgresql import DURABLE, temporary_server

ROUNDS = 20
_LISTS = (
    "/instances",
    "/instances?project=p1",
    "/instances?workflow=w5",
    "/instances?project=p1&workflow=w1",
    "/instances?state=RUNNING",
    "/instances?state=STOPPED",
    "/instances?state=FAILED&state=SUCCEEDED",
    "/instances?project=p1&workflow=w1&state=FAILED",
    "/instances?project=p5&state=FAILED",
    "/instances?until={early}",
    "/instances?state=FAILED&since={early}&until={later}",
    "/instances?project=p1&workflow=w1&since={early}&until={later}",
    "/instances?sort=created_at",
    "/instances?label=team%3Da",
    "/instances?label=team%3Db&state=FAILED",
    "/instances?label=only%3Done",
    "/instances?label=team%3Da&project=p3",
    "/instances?schedule_id=1",
    "/instances?schedule_id=1&state=FAILED&workflow=w5",
    "/instances?project=p1&workflow=w1&sort=-logical_time",
    "/instances?text=nowhere",
    "/instances?shortest=3600&priority=HIGH",
    "/instances?project=p5&state=FAILED&since={early}&until={early_end}&sort=-duration",
    "/instance-counts",
    "/instance-counts?project=p5",
    "/instance-counts?label=team%3Da",
    "/instances/5000",
    "/task-instances",
    "/task-instances?state=RUNNING",
    "/task-instances?state=FAILED&state=SUCCEEDED",
    "/task-instances?worker=worker-3",
    "/task-instances?worker=worker-3&state=FAILED",
    "/task-instances?project=p5",
    "/task-instances?project=p1&workflow=w1&state=FAILED",
    "/task-instances?project=p2&workflow=w2",
    "/task-instances?text=nowhere",
    "/task-instances?type=SHELL&state=FAILED&longest=1",
    "/task-instances?label=only%3Done",
    "/task-instance-counts?state=FAILED",
    "/commands/5000",
    "/workflows",
    "/schedules",
    "/backfills",
    "/instances/5000/why",
    "/cluster",
    "/health",
)


@dataclass(frozen=True)
class _Page:
    path: str
    items: int
    median_ms: float
    worst_ms: float
    processor_ms: float  # of API and PostgreSQL


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.lists", description=__doc__)
    parser.add_argument("--instances", type=int, default=1_000_000, help="of five tasks each")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pages = measure(Path(folder), given.database, given.instances)
    sys.stdout.write(
        f"{given.instances:,} instances, {given.database}\n\n"
        "| request | items | median ms | slowest ms | processor ms |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
    )
    for page in pages:
        sys.stdout.write(
            f"| `{page.path}` | {page.items} | {page.median_ms:.1f} | {page.worst_ms:.1f} "
            f"| {page.processor_ms:.1f} |\n"
        )
    sys.stdout.write(f"\n{machine()}\n")


def measure(folder: Path, database: str, instances: int) -> list[_Page]:
    """Fill a database below ``folder``, start an API, and ask it for each list."""
    with ExitStack() as stack:
        url = f"sqlite:///{folder}/shoal.db"
        if database == "postgresql":
            url = stack.enter_context(temporary_server(DURABLE)).create("shoal")
        asyncio.run(_fill(url, instances))
        if database == "postgresql":
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")  # by itself it does so some minutes later
        stack.enter_context(mock.patch.dict(os.environ, {"SHOAL_DATABASE_URL": url}))
        cluster = stack.enter_context(
            LocalCluster(folder / "data", masters=0, workers=0, api_port=free_port())
        )
        client = stack.enter_context(
            httpx.Client(
                base_url=f"{cluster.url}/api/v1",
                headers={"Authorization": f"Bearer {cluster.token}"},
                trust_env=False,
                timeout=60.0,
            )
        )
        early = FIRST + SPACING * (instances // 4)
        moments = {"early": early, "later": early + SPACING * (instances // 4)}
        moments["early_end"] = early + SPACING * 4_000
        texts = {name: f"{moment:%Y-%m-%dT%H:%M:%SZ}" for name, moment in moments.items()}
        return [_asked(client, path.format(**texts)) for path in _LISTS]


async def _fill(url: str, instances: int) -> None:
    async with Database(url) as database:
        await database.migrate()
        await fill(database, instances)


def _asked(client: httpx.Client, path: str) -> _Page:
    took_ms = []
    with metered() as used:
        for _ in range(ROUNDS):
            began_s = time.perf_counter()
            answer = client.get(path)
            took_ms.append((time.perf_counter() - began_s) * 1000)
            answer.raise_for_status()
    processor_ms = (used.get("api", 0.0) + used.get("PostgreSQL", 0.0)) * 1000 / ROUNDS
    content = answer.json()
    items = len(content["items"]) if isinstance(content, dict) and "items" in content else 1
    return _Page(path, items, statistics.median(took_ms), max(took_ms), processor_ms)


if __name__ == "__main__":
    main()
