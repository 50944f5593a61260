"""Claims whose fate is unknown."""

import asyncio

from shoal.coordination import Entry, TaskQueue, ZkSession, prepare
from tests.proxy import TcpProxy


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
