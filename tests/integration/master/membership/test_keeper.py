"""What the keeper of a master's partitions owes to their next owner."""

import asyncio

import pytest

from shoal.coordination import Partition, ZkSession
from shoal.coordination.cluster import layout
from shoal.coordination.session.nodes import Create, Delete
from shoal.master.membership.partitions import TOPIC
from shoal.sql import Database
from tests.integration.master.membership.keeper_harness import Master, running, until
from tests.integration.master.membership.keeper_harness import database as database
from tests.integration.master.membership.keeper_harness import master as master
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S

ZERO = frozenset({Partition(TOPIC, 0)})


async def test_revoked_partition_is_free_when_its_revocation_returns(master: Master) -> None:
    await master.own()
    async with master.engine._lock:  # a batch is being decided
        revoking = asyncio.create_task(master.keeper.share.on_revoked(ZERO))
        for _ in range(20):
            await master.session.sync("/")
        assert not revoking.done()
        assert await master.session.exists(layout.owner(0))
    async with asyncio.timeout(DEADLINE_S):
        await revoking
    assert master.engine.epochs == {}
    assert not await master.session.exists(layout.owner(0))


async def test_partition_is_dropped_when_the_session_cannot_be_proven(
    zk_proxied: str, zk_proxy: TcpProxy, database: Database
) -> None:
    async with (
        ZkSession(zk_proxied, session_timeout_s=2.0, close_timeout_s=1.0) as session,
        running(session, database) as master,
    ):
        await master.own()
        zk_proxy.freeze()
        try:
            await until(lambda: not master.engine.epochs)
        finally:
            zk_proxy.heal()


async def test_epoch_of_a_living_successor_is_not_superseded(
    master: Master, zk_chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = await master.own()
    won = {0: (epoch, asyncio.get_running_loop().create_future())}
    # While our node stands, a higher epoch is of a tree that is gone.
    await master.raise_epoch(epoch + 100)
    assert await master.keeper._supersede({0}, won) == {0: epoch + 101}
    # Once another master's node stands there, it is theirs.
    async with ZkSession(zk_chroot, session_timeout_s=30.0) as theirs:
        # In one step: a node that is only deleted is taken again by its old owner at once.
        ours = layout.owner(0)
        await theirs.multi([Delete(ours), Create(ours, b"{}", ephemeral=True)])
        successor = (await theirs.get(ours)).stat
        await master.raise_epoch(epoch + 200)
        with monkeypatch.context() as patch:  # the ownership has not heard of it yet
            patch.setattr(master.keeper.share._ownership, "owned", lambda: {0: epoch})
            assert await master.keeper._supersede({0}, won) == {}
        # And letting go of what we have not noticed to have lost does not harm them.
        async with asyncio.timeout(DEADLINE_S):
            await master.keeper.share.on_revoked(ZERO)
        assert (await theirs.get(ours)).stat.czxid == successor.czxid
