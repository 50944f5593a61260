"""Measure how many START commands an API process stores, and how much processor time each costs.

Over HTTP in this process, without masters: what the API and its database have to do with them.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import httpx

from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.api.app import create_app
from shoal.api.main import open_services
from shoal.api.settings import ApiSettings
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.proto.tls import create_identity
from shoal.runtime.settings import ClusterSettings
from tests.support.database.postgresql import DURABLE, temporary_server

TOKEN = "x" * 43
PREFIX = "/api/v1"
WORKFLOW = {"tasks": [{"name": "only", "type": "SHELL", "params": {"script": "true"}}]}
START = {"type": "START", "project": "default", "workflow": "w"}
WARM_UP = 200


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.commands", description=__doc__)
    parser.add_argument("--commands", type=int, default=2_000, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--callers", type=int, default=4, help="that wait for each answer")
    parser.add_argument("--postgresql", action="store_true", help="start a server for it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        server = stack.enter_context(
            ZooKeeperServer(folder / "zookeeper", free_port(), find_java())
        )
        server.wait_ready()
        url = ""
        if given.postgresql:
            url = stack.enter_context(temporary_server(settings=DURABLE)).create("commands")
        report = asyncio.run(_measure(folder, server.address, url, given))
    sys.stdout.write(report + "\n")


async def _measure(folder: Path, zookeeper: str, url: str, given: argparse.Namespace) -> str:
    create_identity(folder / "tls")
    cluster = ClusterSettings(
        data=folder, zookeeper=zookeeper, database_url=url, partitions=8, session_timeout_s=20.0
    )
    async with AsyncExitStack() as stack:
        services = await open_services(stack, ApiSettings(port=0), cluster, TOKEN, asyncio.Event())
        client = await stack.enter_async_context(
            httpx.AsyncClient(
                transport=httpx.ASGITransport(create_app(services)),
                base_url=f"http://localhost{PREFIX}",
                headers={"Authorization": f"Bearer {TOKEN}"},
                timeout=60.0,
            )
        )
        (await client.put("/projects/default/workflows/w", json=WORKFLOW)).raise_for_status()
        await _start(client, WARM_UP, given.callers)
        rates, costs = [], []
        for _ in range(given.rounds):
            began_s, used_s = time.perf_counter(), time.process_time()
            await _start(client, given.commands, given.callers)
            rates.append(given.commands / (time.perf_counter() - began_s))
            costs.append((time.process_time() - used_s) / given.commands * 1000)
        services.streams.stopping.set()
    return (
        f"{statistics.median(rates):.0f} commands a second, {statistics.median(costs):.2f} ms of "
        f"processor time each, the client's included ({machine()})"
    )


async def _start(client: httpx.AsyncClient, commands: int, callers: int) -> None:
    async def caller() -> None:
        for _ in range(commands // callers):
            (await client.post("/commands", json=START)).raise_for_status()

    await asyncio.gather(*(caller() for _ in range(callers)))


if __name__ == "__main__":
    main()
