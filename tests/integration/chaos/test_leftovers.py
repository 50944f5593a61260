"""What nobody has cleaned up in ZooKeeper is found, in the tree as Shoal really lays it out."""

import asyncio

from shoal.coordination import QueueEntry, TaskQueue, ZkSession, prepare
from tests.chaos.judging import leaks
from tests.chaos.judging.verdict import Kind, Offence

GROUP = "default"


async def left(zk_chroot: str) -> list[Offence]:
    return await asyncio.to_thread(leaks.entries, zk_chroot, 0.0)


async def test_entries_and_claims_that_are_left_are_found(zk_chroot: str) -> None:
    async with ZkSession(zk_chroot) as session:
        await prepare(session, 4)
        assert await left(zk_chroot) == []
        queue = TaskQueue(session)
        await queue.put([QueueEntry(GROUP, 2, 1, 2, number, 0) for number in (7, 8)])
        assert [offence.rule for offence in await left(zk_chroot)] == ["queue entry"] * 2
        claims = await queue.claim(GROUP, 1, "worker-1")
        assert [offence.rule for offence in await left(zk_chroot)] == ["queue entry", "claim"]
        claims += await queue.claim(GROUP, 1, "worker-1")
        assert {offence.kind for offence in await left(zk_chroot)} == {Kind.LEAKED}
        await queue.release(claims)
        assert await left(zk_chroot) == []
