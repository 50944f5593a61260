"""What putting an entry and claiming it costs with many that wait."""

import asyncio
import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bench.growth.table import Row
from bench.queue.workload import GROUP, entries
from bench.support import processes
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.coordination import QueueEntry, TaskQueue, ZkSession, prepare

_HEAP_MB = 2048
_PUT = 5_000
_ROUND, _SIZE = 4_000, 8  # entries put, claimed by so many at once, and released
_WARM = 2_000


def measure(folder: Path, waiting: int) -> Iterator[Row]:
    """Yield the costs with ``waiting`` entries in the queue."""
    server = ZooKeeperServer(folder / str(waiting), free_port(), find_java(), heap_mb=_HEAP_MB)
    with server:
        server.wait_ready()
        own, servers = asyncio.run(_costs(server.address, waiting))
    for figure, cost in (
        ("ms of a client's processor time per task", own),
        ("ms of ZooKeeper's processor time per task", servers),
    ):
        yield Row("entries that wait", "put, claim, release", waiting, figure, cost)


async def _costs(address: str, waiting: int) -> tuple[float, float]:
    source = entries()
    async with ZkSession(address, session_timeout_s=30, name="bench") as session:
        await prepare(session)
        queue = TaskQueue(session)
        while waiting > 0:
            await queue.put(list(islice(source, min(_PUT, waiting))))
            waiting -= _PUT
        await _round(queue, source, _WARM)
        server, began = _server_s(), time.process_time()
        await _round(queue, source, _ROUND)
        own = time.process_time() - began
        return own / _ROUND * 1e3, (_server_s() - server) / _ROUND * 1e3


async def _round(queue: TaskQueue, source: Iterator[QueueEntry], count: int) -> None:
    for _ in range(count // _SIZE):
        await queue.put(list(islice(source, _SIZE)))
        claims = await queue.claim(GROUP, _SIZE, "bench")
        await queue.release(claims, ended=True)


def _server_s() -> float:
    return processes.processor_s(os.getpid()).get("ZooKeeper", 0.0)
