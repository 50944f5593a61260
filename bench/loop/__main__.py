"""Run workflows of many tasks through a master and an API whose event loop is watched.

Both are in one loop here, so each step of either counts. The client, and the worker, which
is driven by hand, have a loop of their own in another thread.
"""

import argparse
import asyncio
import gc
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import httpx

from bench.loop.client import PATIENCE_S, Client
from bench.loop.scenario import scenario
from bench.loop.steps import Steps, watching_steps
from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.api.main import open_services, serve_app
from shoal.api.server import listening
from shoal.api.settings import ApiSettings
from shoal.client.local.java import find_java
from shoal.client.local.process import collect_in_pieces
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.coordination import ZkSession
from shoal.master.main import serve
from shoal.master.settings import MasterSettings
from shoal.proto.channels import Channels
from shoal.proto.tls import TlsFiles, create_identity
from shoal.runtime.settings import ClusterSettings
from shoal.sql import Database
from tests.integration.master.manual_worker import HandWorker
from tests.support.database.postgresql import DURABLE, temporary_server

TOKEN = "x" * 43
_TOLD = 20  # steps, the longest first
_MASTER = MasterSettings(
    scan_interval_s=1.0, sweep_interval_s=1.0, initial_rebalance_delay_s=0.0, kill_retry_s=1.0
)


class Subject:
    """The loop that is watched: it runs the API all the time, and masters when told to."""

    def __init__(self, cluster: ClusterSettings) -> None:
        self._cluster = cluster
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._master: asyncio.Task[None] | None = None

    def start_master(self) -> None:
        """Start one. On any thread, as ``stop_master``."""
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    def stop_master(self) -> None:
        """Stop it."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()

    async def _start(self) -> None:
        self._stop = asyncio.Event()
        self._master = asyncio.create_task(serve(_MASTER, self._cluster, self._stop))
        self._master.add_done_callback(_require_no_error)

    async def _end(self) -> None:
        self._stop.set()
        if self._master is not None:
            await self._master
            self._master = None


def _require_no_error(master: asyncio.Task[None]) -> None:
    if not master.cancelled() and (error := master.exception()) is not None:
        sys.stderr.write(f"the master has ended: {error!r}\n")


async def measure(folder: Path, zookeeper: str, url: str, tasks: int) -> tuple[Steps, Client]:
    """Run everything; return what the loop has done, and how long the client has waited."""
    create_identity(folder / "tls")
    cluster = ClusterSettings(
        data=folder, zookeeper=zookeeper, database_url=url, partitions=8, session_timeout_s=20.0
    )
    async with Database(cluster.database) as database:
        await database.migrate()
    gc.collect()
    collect_in_pieces()  # as roles do
    with watching_steps() as steps:
        async with AsyncExitStack() as stack:
            services = await open_services(
                stack, ApiSettings(port=0), cluster, TOKEN, asyncio.Event()
            )
            ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            with listening(services.settings) as listener:
                serving = asyncio.create_task(serve_app(services, listener, ready.set_result))
                subject, address = Subject(cluster), await ready
                done: Future[Client] = Future()

                def drive() -> None:
                    try:
                        done.set_result(
                            asyncio.run(_drive(cluster, address, steps, subject, tasks))
                        )
                    except BaseException as error:  # noqa: BLE001 - it is raised over there
                        done.set_exception(error)

                threading.Thread(target=drive, name="client", daemon=True).start()
                try:
                    client = await asyncio.wrap_future(done)
                finally:
                    await subject._end()
                    services.streams.stopping.set()
                    await serving
    return steps, client


async def _drive(
    cluster: ClusterSettings, url: str, steps: Steps, subject: Subject, tasks: int
) -> Client:
    async with _client(cluster, url, steps) as client:
        await scenario(client, subject, tasks)
        return client


@asynccontextmanager
async def _client(cluster: ClusterSettings, url: str, steps: Steps) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        Database(cluster.database) as database,
        ZkSession(cluster.zookeeper, session_timeout_s=40.0) as session,
        Channels(TlsFiles.of(cluster)) as channels,
        httpx.AsyncClient(
            base_url=url, headers=headers, trust_env=False, timeout=PATIENCE_S
        ) as http,
    ):
        yield Client(http, database, HandWorker(session, channels, "by-hand"), steps)


def table(steps: Steps, client: Client) -> str:
    """Return the longest step of each phase, and the places of the long ones, as Markdown."""
    text = "| phase | took s | longest step ms | collection ms |\n| --- | ---: | ---: | ---: |\n"
    for phase, took_s in client.took_s.items():
        longest, collection = steps.longest_ms[phase], steps.collection_ms[phase]
        text += f"| {phase} | {took_s:.1f} | {longest:.0f} | {collection:.0f} |\n"
    text += "\n"
    for one in sorted(steps.long, key=lambda step: -step.cpu_ms)[:_TOLD]:
        collecting = f", {one.collected_ms:.0f} of them collecting garbage"
        text += f"- {one.cpu_ms:.0f} ms{collecting}, {one.phase}: {one.place}\n"
    return text


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.loop", description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-bench-")))
        server = stack.enter_context(
            ZooKeeperServer(folder / "zookeeper", free_port(), find_java())
        )
        server.wait_ready()
        data = folder / "data"
        data.mkdir()
        url = f"sqlite:///{data}/shoal.db"
        if given.database == "postgresql":
            url = stack.enter_context(temporary_server(DURABLE)).create("shoal")
        steps, client = asyncio.run(measure(data, server.address, url, given.tasks))
    sys.stdout.write(f"{table(steps, client)}\n{machine()}\n")


if __name__ == "__main__":
    main()
