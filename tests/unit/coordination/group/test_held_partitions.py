"""A listener's failures are its own."""

import asyncio

from shoal.coordination import GroupListener, Partition
from shoal.coordination.group.listener import HeldPartitions


class Stopping(GroupListener):
    """Stops its work as most people do: cancel the task and await it."""

    async def on_lost(self, partitions: frozenset[Partition]) -> None:
        work = asyncio.create_task(asyncio.Event().wait())
        await asyncio.sleep(0)
        work.cancel()
        await work


async def test_a_callback_that_awaits_a_cancelled_task_ends_no_member() -> None:
    held = HeldPartitions(Stopping(), "g", limit_s=60.0)
    await held.assign({Partition("t", 0)})
    await held.lose()
    assert not held.partitions
