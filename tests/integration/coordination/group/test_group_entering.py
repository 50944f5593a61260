"""Who gives up entering a group is not waited for by the others."""

import asyncio
import struct

import pytest

from shoal.coordination import Group, GroupSettings, ZkSession, read_group, znodes
from tests.integration.coordination.conftest import eventually
from tests.support.servers.proxy import TcpProxy


async def test_cancelled_entering_leaves_no_member_behind(
    session: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy, zk_proxied: str
) -> None:
    settings = GroupSettings(initial_rebalance_delay_s=0.0)
    await session.ensure(znodes.group_members("g"))
    full = f"/{zk_proxied.partition('/')[2]}{znodes.group('g')}".encode()
    zk_proxy.swallow_from = struct.pack(">ii", 5, len(full)) + full  # a write of the group itself
    entering = asyncio.create_task(
        Group(proxied, "g", topics={"t": 4}, settings=settings).__aenter__()
    )
    await eventually(lambda: zk_proxy.swallow_replies)
    entering.cancel()  # the group knows of us, and we do not know that it does
    zk_proxy.drop()
    zk_proxy.heal()
    with pytest.raises(asyncio.CancelledError):
        await entering
    group = await read_group(session, "g")
    assert not group.members
    assert not group.pending
    assert not (await session.children(znodes.group_members("g"))).names
