"""Claims whose fate is unknown, and news that nobody heard."""

import asyncio

from shoal.coordination import Entry, TaskQueue, ZkSession, prepare
from tests.proxy import TcpProxy

DEADLINE_S = 30.0


def _entry(number: int) -> Entry:
    return Entry("default", 2, 7, 2, number, 0)


async def test_claim_that_somebody_else_made_meanwhile_is_theirs(
    session: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    """The request of the first never arrived; what it finds afterwards is the second's work."""
    await prepare(session, 4)
    ours, theirs = TaskQueue(session), TaskQueue(proxied)
    await ours.put([_entry(number) for number in range(6)])
    await theirs.claim("default", 1, "theirs")
    zk_proxy.freeze()
    claiming = asyncio.create_task(theirs.claim("default", 2, "theirs"))
    await asyncio.sleep(0)  # it sends its request, on the entries that it knows
    taken = {claim.entry for claim in await ours.claim("default", 4, "ours")}
    zk_proxy.drop()
    zk_proxy.heal()
    assert not taken & {claim.entry for claim in await claiming}
    holders = await ours.claims()
    assert {holders[entry.task_instance_id] for entry in taken} == {"ours"}


async def test_entry_whose_bell_was_not_heard_is_found_all_the_same(session: ZkSession) -> None:
    await prepare(session, 4)
    queue = TaskQueue(session)
    await queue.put([_entry(1)])
    assert len(await queue.claim("default", 1, "w")) == 1
    assert await queue.claim("default", 1, "w") == []  # it knows the queue to be empty
    await session.create(_entry(2).path, makepath=True)  # and nobody rings
    async with asyncio.timeout(DEADLINE_S):
        while not (claims := await queue.claim("default", 1, "w")):
            await asyncio.sleep(0.05)
    assert [claim.entry for claim in claims] == [_entry(2)]
