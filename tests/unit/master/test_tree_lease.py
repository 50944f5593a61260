"""The sign of life of a tree: a refusal makes the next look due at once."""

import asyncio
from unittest.mock import AsyncMock

from shoal.coordination.cluster.binding import BindingStore
from shoal.core.runs.records import StoredBinding
from shoal.master.membership.tree_lease import TreeLease
from tests.support.waiting import DEADLINE_S

NEVER_S = 1e6  # between two beats, in a test that waits for none


async def test_refusal_during_a_look_makes_another_one_due() -> None:
    looks = asyncio.Semaphore(0)
    store = AsyncMock(BindingStore)
    store.read.return_value = StoredBinding(
        cluster="c", tree="t", address="here:2181/", beats=1, database="d"
    )

    async def compare() -> None:
        looks.release()
        if store.read.await_count == 1:
            lease.look()  # as a fence does that refuses a write meanwhile

    lease = TreeLease(store, lambda: "t", compare, NEVER_S)
    running = asyncio.create_task(lease.run())
    async with asyncio.timeout(DEADLINE_S):
        await looks.acquire()
        await looks.acquire()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
