"""What large requests cost all others of an API process. ``python -m bench.loop.large_requests``.

A workflow of 10,000 tasks is exported, compared, checked, planned and imported by eight requests at
a time, while ``/health/live`` is asked every 20 ms. The requests come from another process. The
table has the longest step of the event loop, in processor time of its thread; the longest time that
the interpreter was taken from the loop, in processor time of the whole process between two turns of
a loop that has always something to do; and the answers of ``/health/live``.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import httpx

from bench.loop.client import PREFIX
from bench.loop.scenario import definition
from bench.loop.steps import Steps, watching_steps
from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.api.main import open_services, serve_app
from shoal.api.server import listening
from shoal.api.settings import ApiSettings
from shoal.client.local.java import find_java
from shoal.client.local.process import collect_in_pieces, shorten_thread_turns
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.proto.tls import create_identity
from shoal.runtime.settings import ClusterSettings
from shoal.sql import Database

TOKEN = "x" * 43
AT_ONCE = 8
_WORKFLOW = f"{PREFIX}/projects/default/workflows/wide"
KINDS = ("nothing else", "export", "diff", "validate", "plan", "import", "preview")
_ASK_S = 0.02
_QUIET_S = 3.0


class Turns:
    """The longest processor time of the process between two turns of the loop, by phase, in ms."""

    def __init__(self) -> None:
        self.longest_ms: defaultdict[str, float] = defaultdict(float)

    @asynccontextmanager
    async def watching(self, steps: Steps) -> AsyncIterator[None]:
        """Keep the loop awake while the block lasts."""

        async def turn() -> None:
            while True:
                began_s = time.process_time()
                await asyncio.sleep(0.001)
                took_ms = (time.process_time() - began_s) * 1e3
                self.longest_ms[steps.phase] = max(self.longest_ms[steps.phase], took_ms)

        turning = asyncio.create_task(turn())
        try:
            yield
        finally:
            turning.cancel()
            with suppress(asyncio.CancelledError):
                await turning


async def measure(folder: Path, zookeeper: str, tasks: int, kinds: Sequence[str]) -> str:
    """Return the table, as Markdown."""
    create_identity(folder / "tls")
    url = f"sqlite:///{folder}/shoal.db"
    cluster = ClusterSettings(data=folder, zookeeper=zookeeper, database_url=url, partitions=1)
    async with Database(cluster.database) as database:
        await database.migrate()
    collect_in_pieces()  # as an API does
    shorten_thread_turns()
    table = (
        "| beside | longest step ms | held ms | /health/live ms, p50 | p99 | longest | answers |\n"
    )
    table += "| --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
    turns = Turns()
    with watching_steps() as steps:
        async with AsyncExitStack() as stack:
            services = await open_services(
                stack, ApiSettings(port=0), cluster, TOKEN, asyncio.Event()
            )
            ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            with listening(services.settings) as listener:
                serving = asyncio.create_task(serve_app(services, listener, ready.set_result))
                address = await ready
                await _client(address, "publish", tasks)
                await stack.enter_async_context(turns.watching(steps))
                for kind in kinds:
                    steps.phase = kind
                    found = await _client(address, kind, tasks)
                    steps.phase = "between"
                    took = sorted(found["health_ms"])
                    table += (
                        f"| {kind} | {steps.longest_ms[kind]:.0f} | {turns.longest_ms[kind]:.0f}"
                        f" | {took[len(took) // 2]:.0f} | {took[len(took) * 99 // 100]:.0f}"
                        f" | {took[-1]:.0f} | {found['answers']} in {found['took_s']:.1f} s |\n"
                    )
                    sys.stderr.write(table.splitlines()[-1] + "\n")
                services.streams.stopping.set()
                await serving
    for one in sorted(steps.long, key=lambda step: -step.cpu_ms)[:10]:
        table += f"\n- {one.cpu_ms:.0f} ms, {one.phase}: {one.place}"
    return table + "\n"


async def _client(address: str, kind: str, tasks: int) -> dict[str, list[float]]:
    program = (sys.executable, "-m", "bench.loop.large_requests")
    process = await asyncio.create_subprocess_exec(
        *(*program, "--tasks", str(tasks), "--client", kind, "--url", address),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"{kind}: the client ended with {process.returncode}")
    found: dict[str, list[float]] = json.loads(output)
    return found


async def ask(url: str, kind: str, tasks: int) -> dict[str, object]:
    """Send the requests of a kind; return how they and ``/health/live`` were answered."""
    wide = definition(tasks, on_failure="fail_fast")
    changed = {**wide, "description": "another one"}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(
        base_url=url, headers=headers, trust_env=False, timeout=120.0
    ) as http:
        if kind == "publish":
            (await http.put(_WORKFLOW, json=wide)).raise_for_status()
            (await http.put(_WORKFLOW, json=changed)).raise_for_status()
            return {}
        text = ""
        if kind == "import":
            text = (await http.get(f"{PREFIX}/projects/default/export")).json()["text"]

        async def send() -> int:
            match kind:
                case "export":
                    answer = await http.get(f"{PREFIX}/projects/default/export")
                case "diff":
                    answer = await http.get(f"{_WORKFLOW}/versions/2/diff")
                case "validate" | "plan":
                    answer = await http.post(f"{_WORKFLOW}/{kind}", json={"definition": wide})
                case "import":
                    path = f"{PREFIX}/projects/default/import?dry_run=true"
                    answer = await http.post(path, json={"text": text})
                case "preview":
                    body = {"project": "default", "workflow": "wide"}
                    answer = await http.post(f"{PREFIX}/start-previews", json=body)
                case _:
                    await asyncio.sleep(_QUIET_S)
                    return 0
            return answer.status_code

        began_s = time.monotonic()
        sending = asyncio.gather(*(send() for _ in range(AT_ONCE)))
        health_ms = []
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=120.0) as other:
            while not sending.done():
                asked_s = time.monotonic()
                (await other.get(f"{PREFIX}/health/live")).raise_for_status()
                health_ms.append((time.monotonic() - asked_s) * 1e3)
                await asyncio.sleep(_ASK_S)
        answers = Counter(await sending)
        return {
            "health_ms": health_ms,
            "answers": ", ".join(f"{n} × {status}" for status, n in answers.items()),
            "took_s": time.monotonic() - began_s,
        }


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(
        prog="python -m bench.loop.large_requests", description=__doc__
    )
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        sys.stdout.write(json.dumps(asyncio.run(ask(given.url, given.client, given.tasks))))
        return
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = Path(name)
        with ZooKeeperServer(folder / "zookeeper", free_port(), find_java()) as server:
            server.wait_ready()
            (folder / "data").mkdir()
            table = asyncio.run(measure(folder / "data", server.address, given.tasks, given.only))
    sys.stdout.write(f"{table}\n{machine()}\n")


if __name__ == "__main__":
    main()
