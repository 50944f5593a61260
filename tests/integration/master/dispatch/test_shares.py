"""One project floods the cluster; the one run of another project hardly waits: counted in tasks."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest

from shoal.coordination import QueueEntry, notify, partition_of
from shoal.coordination.queue import lane_of
from shoal.core.runs.commands import CommandType, NewCommand
from shoal.core.runs.states import TaskState
from shoal.proto import shoal_pb2 as pb
from tests.integration.master.conftest import PARTITIONS, Bench
from tests.support.waiting import DEADLINE_S

FLOOD = 100  # runs beside the one


async def flood(bench: Bench, workflow_id: int) -> None:
    """Send the starts of all runs at once."""
    keys = [f"flood-{n}" for n in range(FLOOD)]
    new = [
        NewCommand(CommandType.START, partition_of(key, PARTITIONS), key, workflow_id)
        for key in keys
    ]
    async with bench.database.unit_of_work() as uow:
        await uow.commands.add_many(new, datetime.now(UTC))
        await uow.commit()
    await notify(bench.session, range(PARTITIONS))


@pytest.mark.parametrize("masters", [1, 3])
@pytest.mark.parametrize("is_wide", [False, True], ids=["many runs", "one wide run"])
@pytest.mark.parametrize("bench", ["sqlite"], indirect=True)
async def test_run_of_another_project_waits_for_one_task_at_most(
    bench: Bench, masters: int, is_wide: bool
) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(masters):
            await stack.enter_async_context(bench.master())
        tasks: dict[str, dict[str, object]] = {f"t{n}": {} for n in range(FLOOD if is_wide else 1)}
        many = await bench.publish(tasks, project="flood")
        one = await bench.publish({"t": {}}, project="other")
        worker = await bench.worker("w")
        if is_wide:
            await bench.start(many)
        else:
            await flood(bench, many)
        running = await worker.claim(1)  # by the only slot
        run = await bench.start(one, "one")
        mine = (await bench.tasks(run.id))[0]
        entry = QueueEntry(
            "default", run.priority, run.id, 2, mine.id, run.partition, lane_of("other")
        )
        async with asyncio.timeout(DEADLINE_S):
            while await worker.queue.ahead(entry) is None:
                await asyncio.sleep(0.01)
        before = 0
        while running[0].entry.task_instance_id != mine.id:
            await worker.fetch(running)
            await worker.report(running[0], pb.SUCCEEDED)
            await worker.queue.release(running)
            before += 1
            running = await worker.claim(1)
        assert before == 1  # the one that ran
        async with bench.database.unit_of_work(read_only=True) as uow:
            waiting = await uow.tasks.counts({TaskState.QUEUED})
        assert sum(waiting.values()) > FLOOD / 2
