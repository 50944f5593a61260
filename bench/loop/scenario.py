"""What happens to runs of many tasks while the loop of their master is watched."""

import asyncio
from typing import Any, Protocol

from bench.loop.client import BATCH, PREFIX, Client
from shoal.core.runs.states import TaskState
from shoal.proto import shoal_pb2 as pb


class Masters(Protocol):
    """Starts and stops masters; each call returns when that is done. Not in the watched loop."""

    def start_master(self) -> None:
        """Start one."""

    def stop_master(self) -> None:
        """Stop the one that runs."""


def definition(tasks: int, *, fan: bool = False, **fields: Any) -> dict[str, Any]:
    """Return a definition: all tasks independent, or all behind the first one."""
    params = {"script": "echo ${system.biz.date}; sleep 1"}
    names = [f"task_{n:05}" for n in range(tasks)]
    before = [names[0]] if fan else []
    made = [{"name": n, "type": "SHELL", "params": params, "depends_on": before} for n in names]
    made[0]["depends_on"] = []
    return {"tasks": made, **fields}


async def scenario(client: Client, masters: Masters, tasks: int) -> None:
    """Let everything happen to runs of so many tasks."""
    wide, fan = definition(tasks, on_failure="fail_fast"), definition(tasks, fan=True)
    with client.phase("publish"):
        await client.put("wide", wide)
    with client.phase("publish again"):
        await client.put("wide", wide)
    with client.phase("publish a change"):
        await client.put("wide", {**wide, "description": "another one"})
        await client.put("fan", fan)
    await _start_and_go_on(client, masters, tasks)
    await _read(client, 1, tasks)
    await _requests(client, tasks, 1)
    with client.phase("fan: start"):
        run = await client.command(type="START", workflow="fan")
        await client.until(run, TaskState.QUEUED, 1)
    with client.phase("fan: the end of one task starts all others"):
        await client.end(1)
        await client.until(run, TaskState.QUEUED, tasks - 1)
        await client.until_in_queue(tasks - 1)
    with client.phase("fan: stop"):
        await client.command(type="STOP", instance_id=run)
        await client.until_queue_is_empty()
    with client.phase("purge"):
        await client.purge()


async def _start_and_go_on(client: Client, masters: Masters, tasks: int) -> None:
    masters.start_master()
    with client.phase("start"):
        run = await client.command(type="START", workflow="wide")
        await client.until(run, TaskState.QUEUED, tasks)
    with client.phase("put into the queue"):
        await client.until_in_queue(tasks)
    with client.phase("tasks run"):
        await client.end(5 * BATCH)
    with client.phase("sweeps"):
        await asyncio.sleep(6.0)
    with client.phase("master leaves"):
        await asyncio.to_thread(masters.stop_master)
    with client.phase("takeover"):
        masters.start_master()
        await client.end(BATCH)
    with client.phase("sweeps after it"):
        await asyncio.sleep(6.0)


async def _read(client: Client, run: int, tasks: int) -> None:
    for path in (
        "/instances",
        f"/instances/{run}",
        f"/instances/{run}?attempts=all",
        f"/instances/{run}/why",
        "/task-instances?limit=200",
        "/workflows",
        "/projects/default/workflows/wide",
        "/projects/default/workflows/wide/versions/1",
        "/health",
        "/cluster",
    ):
        with client.phase(f"GET {path}"):
            await client.get(path)
    with client.phase("GET /events from the first one"):
        headers = {"Last-Event-ID": "0"}
        async with client.http.stream("GET", f"{PREFIX}/events", headers=headers) as answer:
            read = 0
            async for part in answer.aiter_bytes():
                read += part.count(b"\n\n")
                if read >= tasks:
                    break


async def _requests(client: Client, tasks: int, run: int) -> None:
    with client.phase("pause"):
        await client.command(type="PAUSE", instance_id=run)
        await client.until_queue_is_empty()
    with client.phase("resume"):
        await client.command(type="RESUME", instance_id=run)
        await client.until_in_queue(tasks - 6 * BATCH)
    with client.phase("stop"):
        await client.command(type="STOP", instance_id=run)
        await client.until_queue_is_empty()
    with client.phase("resume what was stopped"):
        await client.command(type="RESUME", instance_id=run)
        await client.until_in_queue(tasks - 6 * BATCH)
    with client.phase("one failure ends all others"):
        await client.end(1, pb.FAILED)
        await client.until_queue_is_empty()
    with client.phase("recover"):
        await client.command(type="RECOVER", instance_id=run)
        await client.until_in_queue(tasks - 6 * BATCH)
    with client.phase("stop again"):
        await client.command(type="STOP", instance_id=run)
        await client.until_queue_is_empty()
    with client.phase("rerun"):
        again = await client.command(type="RERUN", instance_id=run)
        await client.until_in_queue(tasks)
    with client.phase("stop the rerun"):
        await client.command(type="STOP", instance_id=again)
        await client.until_queue_is_empty()
    with client.phase(f"GET /instances/{run}?attempts=all, several attempts"):
        await client.get(f"/instances/{run}?attempts=all")
