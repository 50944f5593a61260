"""Claims whose fate is unknown, and news that nobody heard."""

import asyncio

from shoal.coordination import QueueEntry, TaskQueue, ZkSession, prepare
from tests.integration.coordination.conftest import connect
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S


def _entry(number: int) -> QueueEntry:
    return QueueEntry("default", 2, 7, 2, number, 0)


async def test_claim_that_somebody_else_made_meanwhile_is_theirs(
    zk_chroot: str, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    """The request of the first never arrived; what it finds afterwards is the second's work."""
    async with (
        connect(zk_chroot, session_timeout_s=30.0) as straight,
        connect(zk_proxied, session_timeout_s=30.0, close_timeout_s=1.0) as proxied,
    ):
        await prepare(straight, 4)
        second, first = TaskQueue(straight), TaskQueue(proxied)
        await second.put([_entry(number) for number in range(6)])
        await first.claim("default", 1, "first")
        zk_proxy.freeze()
        claiming = asyncio.create_task(
            proxied.retry(lambda: first.claim("default", 2, "first"), timeout_s=DEADLINE_S)
        )
        await asyncio.sleep(0)  # it sends its request, on the entries that it knows
        taken = {claim.entry for claim in await second.claim("default", 4, "second")}
        zk_proxy.drop()
        zk_proxy.heal()
        assert not taken & {claim.entry for claim in await claiming}
        holders = await second.claims()
        assert {holders[entry.task_instance_id] for entry in taken} == {"second"}


async def test_entry_whose_notification_was_not_heard_is_found_all_the_same(
    session: ZkSession,
) -> None:
    await prepare(session, 4)
    queue = TaskQueue(session)
    await queue.put([_entry(1)])
    assert len(await queue.claim("default", 1, "w")) == 1
    assert await queue.claim("default", 1, "w") == []  # it knows the queue to be empty
    await session.create(_entry(2).path, makepath=True)  # and nobody notifications
    async with asyncio.timeout(DEADLINE_S):
        while not (claims := await queue.claim("default", 1, "w")):
            await asyncio.sleep(0.05)
    assert [claim.entry for claim in claims] == [_entry(2)]
