"""Measure what permissions cost a request, and what storms of other clients cost everybody else.

The first in this process, over ASGI; the storms on a cluster, from another process: wrong
passwords, connections that send nothing or half a request, and event streams.
"""

import argparse
import asyncio
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import httpx

from bench.support.cluster import Size, running
from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.api.access import authentication
from shoal.api.access.callers import Caller
from shoal.api.app import create_app
from shoal.api.endpoints import route
from shoal.api.main import open_services
from shoal.api.settings import ApiSettings
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.proto.tls import create_identity
from shoal.runtime.settings import ClusterSettings

TOKEN = "x" * 43
PREFIX = "/api/v1"
PROJECTS = 200  # the reader has a role in each second one, by a group
PASSWORDS = ("first sign-in of all", "second sign-in of all")
WRONG = 200
ASKED_EVERY_S = 0.02
QUIET_S = 5.0
_STORM = """
import asyncio, sys, httpx
async def main(url, count):
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=count)) as http:
        wrong = [
            http.post(url, json={"name": f"user-{n % 20}", "password": f"wrong password {n}"})
            for n in range(count)
        ]
        sys.stdout.write("\\n".join(str(one.status_code) for one in await asyncio.gather(*wrong)))
asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""

CROWDS = {  # connections, event streams, events per second
    "2,000 idle and half-open connections": (2_000, 0, 0),
    "500 event streams": (0, 500, 0),
    "500 event streams and 50 events per second": (0, 500, 50),
}
STREAMS_OF_USER = 100
CROWD_S = 10.0
_CROWD = """
import asyncio, sys
async def main(host, port, half, streams, tokens):
    answers, writers, tasks = {}, [], []
    async def drain(reader):
        while await reader.read(1 << 16):
            pass
    async def hold(data, is_stream):
        reader, writer = await asyncio.open_connection(host, port)
        writers.append(writer)
        writer.write(data)
        if is_stream:
            line = await reader.readline()
            status = line.split()[1].decode() if line else "closed"
            answers[status] = answers.get(status, 0) + 1
            tasks.append(asyncio.create_task(drain(reader)))
    for number in range(half):
        await hold((b"", b"GET / HTTP/1.1\\r\\nHost: lo", b"GET /a")[number % 3], False)
    for number in range(streams):
        token = tokens[number * len(tokens) // streams]
        head = "GET /api/v1/events HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer "
        await hold(f"{head}{token}\\r\\n\\r\\n".encode(), True)
    print("ready", answers, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]))
"""
_EVENTS = """
import asyncio, sys
from datetime import UTC, datetime
from shoal.sql import Database
from shoal.sql.repositories.events import NewEvent
DATA = {"workflow": "w", "version": 1, "task": "a", "attempt": 1, "state": "RUNNING"}
async def main(url, pause_s):
    async with Database(url) as database:
        while True:
            async with database.unit_of_work() as uow:
                now = datetime.now(UTC)
                await uow.events.add([NewEvent(now, "task.state", "p", DATA, 1, 1)])
                await uow.commit()
            await asyncio.sleep(pause_s)
asyncio.run(main(sys.argv[1], float(sys.argv[2])))
"""


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.access", description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ZooKeeperServer(folder / "zookeeper", free_port(), find_java()) as server:
            server.wait_ready()
            lines = asyncio.run(_authorisation(folder, server.address, given.requests))
        lines += _storm(folder / "cluster")
        for number, (name, crowd) in enumerate(CROWDS.items()):
            lines += _crowd(folder / f"crowd-{number}", name, *crowd)
    sys.stdout.write("\n".join([*lines, f"({machine()})"]) + "\n")


# -- permissions -------------------------------------------------------------------------------


class _Watch:
    """Adds up the time that a request spends in the functions that it wraps."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def around(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def timed(*args: Any) -> Any:
            began_s = time.perf_counter()
            try:
                return await work(*args)
            finally:
                self.spent_s += time.perf_counter() - began_s

        return timed


async def _authorisation(folder: Path, zookeeper: str, requests: int) -> list[str]:
    create_identity(folder / "tls")
    cluster = ClusterSettings(data=folder, zookeeper=zookeeper, session_timeout_s=20.0)
    watch = _Watch()
    async with AsyncExitStack() as stack:
        services = await open_services(stack, ApiSettings(port=0), cluster, TOKEN, asyncio.Event())
        transport = httpx.ASGITransport(create_app(services))
        client = await stack.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url=f"https://localhost{PREFIX}")
        )
        token = await _reader(client)
        headers = {"Authorization": f"Bearer {token}"}
        with (
            mock.patch.object(route, "authenticate", watch.around(authentication.authenticate)),
            mock.patch.object(Caller, "require", watch.around(Caller.require)),
        ):
            spent, whole = [], []
            for number in range(requests):
                watch.spent_s, began_s = 0.0, time.perf_counter()
                path = f"/projects/p{number % (PROJECTS // 2) * 2}/parameters"
                (await client.get(path, headers=headers)).raise_for_status()
                spent.append(watch.spent_s)
                whole.append(time.perf_counter() - began_s)
        services.streams.stopping.set()
    return [
        f"who calls and whether they may, of a request: {_figures(spent)}",
        f"the whole request: {_figures(whole)}",
    ]


async def _reader(client: httpx.AsyncClient) -> str:
    """Return a token of a user who reads half of the projects as a member of a group."""
    root = {"Authorization": f"Bearer {TOKEN}"}

    async def do(method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        answer = await client.request(method, path, json=body, headers=headers or root)
        answer.raise_for_status()
        return answer

    first, second = PASSWORDS
    await do("POST", "/users", {"name": "reader", "password": first})
    await do("POST", "/groups", {"name": "readers"})
    await do("PUT", "/groups/readers/members/reader")
    for number in range(PROJECTS):
        await do("PUT", f"/projects/p{number}", {})
        if number % 2 == 0:
            await do("PUT", f"/projects/p{number}/members/group/readers", {"role": "reader"})
    own = {"sec-fetch-site": "same-origin"}
    await do("POST", "/login", {"name": "reader", "password": first}, **own)
    await do("PUT", "/me/password", {"current": first, "new": second}, **own)
    await do("POST", "/login", {"name": "reader", "password": second}, **own)
    made = await do("POST", "/me/tokens", {"name": "bench"}, **own)
    client.cookies.clear()
    return str(made.json()["token"])


# -- wrong passwords ---------------------------------------------------------------------------


def _storm(folder: Path) -> list[str]:
    with running(folder, "sqlite", Size(), folder.parent / "logs") as cluster:
        url, token = cluster.local.url, cluster.local.token
        with httpx.Client(
            base_url=f"{url}{PREFIX}", headers={"Authorization": f"Bearer {token}"}
        ) as client:
            for number in range(20):
                client.post("/users", json={"name": f"user-{number}"}).raise_for_status()
            ends_s = time.monotonic() + QUIET_S
            quiet = _asked(client, lambda: time.monotonic() < ends_s)
            began_s = time.monotonic()
            with subprocess.Popen(
                [sys.executable, "-c", _STORM, f"{url}{PREFIX}/login", str(WRONG)],
                stdout=subprocess.PIPE,
                text=True,
            ) as storm:
                beside = _asked(client, lambda: storm.poll() is None)
                took_s = time.monotonic() - began_s
                assert storm.stdout is not None
                answers = storm.stdout.read().split()
    counts = {status: answers.count(status) for status in sorted(set(answers))}
    return [
        f"others, nobody signing in: {_figures(quiet)}",
        f"others, beside {WRONG} wrong passwords in {took_s:.1f} s: {_figures(beside)}",
        f"answers to the wrong passwords: {counts}",
    ]


def _crowd(folder: Path, name: str, half: int, streams: int, events: int) -> list[str]:
    """Measure the requests of one client alone and beside a crowd; ``events`` in both cases."""
    with (
        running(folder, "sqlite", Size(), folder.parent / "logs") as cluster,
        _happening(folder, events),
    ):
        url, token = urlsplit(cluster.local.url), cluster.local.token
        root = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=f"{cluster.local.url}{PREFIX}", headers=root) as client:
            client.put("/projects/p", json={}).raise_for_status()
            tokens = []
            for number in range(-(-streams // STREAMS_OF_USER)):
                account = "/projects/p/service-accounts"
                body = {"name": f"reader-{number}", "role": "reader"}
                client.post(account, json=body).raise_for_status()
                made = client.post(f"{account}/reader-{number}/tokens", json={"name": "bench"})
                tokens.append(str(made.raise_for_status().json()["token"]))
            alone = _for(client, CROWD_S)
            command = [sys.executable, "-c", _CROWD, str(url.hostname), str(url.port)]
            command += [str(half), str(streams), *tokens]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as crowd:
                told = crowd.stdout
                assert told is not None
                during = _asked(client, lambda: not select.select([told], [], [], 0)[0])
                answers = told.readline().strip()
                beside = _for(client, CROWD_S)
                crowd.kill()
    ratio, slow = (_quantile(beside, percent) / _quantile(alone, percent) for percent in (50, 99))
    return [
        f"others, before {name}: {_figures(alone)}",
        f"others, while {name} arrive: {_figures(during)}",
        f"others, beside {name} ({answers}): {_figures(beside)}; "
        f"{ratio:.2f} times the median, {slow:.2f} times the p99",
    ]


@contextmanager
def _happening(folder: Path, events: int) -> Iterator[None]:
    """Store so many events per second during the block."""
    if not events:
        yield
        return
    command = [sys.executable, "-c", _EVENTS, f"sqlite:///{folder}/shoal.db", str(1 / events)]
    with subprocess.Popen(command) as writer:
        try:
            yield
        finally:
            writer.kill()


def _for(client: httpx.Client, seconds: float) -> list[float]:
    ends_s = time.monotonic() + seconds
    return _asked(client, lambda: time.monotonic() < ends_s)


def _asked(client: httpx.Client, go_on: Callable[[], bool]) -> list[float]:
    took = []
    while go_on():
        began_s = time.perf_counter()
        client.get("/projects").raise_for_status()
        took.append(time.perf_counter() - began_s)
        time.sleep(ASKED_EVERY_S)
    return took


def _quantile(seconds: list[float], percent: int) -> float:
    return statistics.quantiles(seconds, n=100)[percent - 1]


def _figures(seconds: list[float]) -> str:
    found = _quantile(seconds, 50), _quantile(seconds, 99), max(seconds)
    median, slow, slowest = (part_s * 1000 for part_s in found)
    return f"median {median:.2f} ms, p99 {slow:.2f} ms, most {slowest:.1f} ms"


if __name__ == "__main__":
    main()
