"""However much there is to start or to take over, no partition is lost to it.

``SHOAL_LARGE_RUNS`` and ``SHOAL_LARGE_TASKS`` make it as large as you like; then give pytest
``--timeout=0`` as well.
"""

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
import structlog
from structlog.testing import capture_logs

from shoal.client.local.process import GarbageCollector
from shoal.coordination import partition_of
from shoal.core.runs.commands import CommandType, NewCommand
from shoal.core.runs.states import TaskState
from shoal.runtime.settings import ClusterSettings
from tests.integration.master.conftest import PARTITIONS, Bench
from tests.support.length import share
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S

log = structlog.get_logger()

RUNS = int(os.environ.get("SHOAL_LARGE_RUNS", share(20, 5)))
TASKS = int(os.environ.get("SHOAL_LARGE_TASKS", "1000"))
PATIENCE_S = DEADLINE_S + RUNS * TASKS / 500
LONGEST_STEP_S = 1.0  # of processor time: a session of a few seconds outlives it


class Lag:
    """The longest time for which the event loop had no turn for others, in processor time."""

    worst_s = 0.0

    async def watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.005)
            self.worst_s = max(self.worst_s, time.thread_time() - before)


@asynccontextmanager
async def lag() -> AsyncIterator[Lag]:
    found = Lag()
    watching = asyncio.create_task(found.watch())
    try:
        yield found
    finally:
        watching.cancel()


@pytest.fixture(autouse=True)
def garbage_is_collected_as_in_a_master() -> Iterator[None]:
    """Millions of attempts are looked through in pieces, as ``shoal master`` does."""
    collector = GarbageCollector()
    gc.callbacks.append(collector)
    yield
    gc.callbacks.remove(collector)


async def queued(bench: Bench) -> int:
    """Return how many attempts are queued in the database."""
    async with bench.database.unit_of_work(read_only=True) as uow:
        return (await uow.tasks.counts([TaskState.QUEUED]))[TaskState.QUEUED]


async def until_all_are_queued(bench: Bench) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (count := await queued(bench)) < RUNS * TASKS:
            log.debug("queued", tasks=count)
            await asyncio.sleep(0.2 + RUNS / 100)


async def accept_starts(bench: Bench, workflow: int) -> None:
    keys = [f"large {n}" for n in range(RUNS)]
    commands = [
        NewCommand(CommandType.START, partition_of(key, PARTITIONS), key, workflow) for key in keys
    ]
    async with bench.database.unit_of_work() as uow:
        await uow.commands.add_many(commands, datetime.now(UTC))
        await uow.commit()


async def test_many_large_runs_are_started_and_taken_over_without_losing_a_partition(
    bench: Bench,
) -> None:
    workflow = await bench.publish({f"t{n}": {} for n in range(TASKS)})
    await accept_starts(bench, workflow)
    short = bench.cluster.model_dump() | {"session_timeout_s": STEADY_SESSION_S}
    cluster = ClusterSettings(**short)
    with capture_logs() as logged:
        async with lag() as starting, bench.master(cluster) as first:
            await until_all_are_queued(bench)
            assert not first.done()
        async with lag() as taking, bench.master(cluster) as second:
            async with asyncio.timeout(PATIENCE_S):
                while sum(one["count"] for one in logged if one["event"] == "partitions taken") < (
                    2 * PARTITIONS
                ):
                    await asyncio.sleep(0.05)
            worker = await bench.worker("w")  # the runs that were taken over go on
            assert await worker.work(1) == 0
            assert not second.done()
    log.info("worst lag", start_s=starting.worst_s, takeover_s=taking.worst_s)  # see it with -s
    assert max(starting.worst_s, taking.worst_s) < LONGEST_STEP_S
    taken = sum(one["count"] for one in logged if one["event"] == "partitions taken")
    assert taken == 2 * PARTITIONS  # each once by each master: none was lost in between
