"""Members announce themselves, and others see them come, change and go."""

import asyncio

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import Members, Membership, NoNode, ZkSession
from shoal.coordination.cluster.cluster_clock import read_clocks
from shoal.coordination.cluster.own_clock import OwnClock
from shoal.core.timing.cluster_time import ClockReading
from tests.integration.coordination.conftest import appears, connect, create_request
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually
from tests.support.zookeeper.server import expire_session


async def test_members_are_seen_while_they_are_there(session: ZkSession, zk_chroot: str) -> None:
    async with Members(session, "/workers") as members:
        assert members.current() == {}
        async with connect(zk_chroot) as other:
            async with Membership(other, "/workers", "a/1 ü", {"address": "h:1"}) as member:
                await eventually(members.current)
                info = members.current()["a/1 ü"]
                assert (info.id, info.data, info.czxid) == (
                    "a/1 ü",
                    {"address": "h:1"},
                    member.epoch,
                )
            await eventually(lambda: not members.current())  # it left: no timeout has to pass


async def test_changed_data_is_seen_at_the_next_reading(session: ZkSession) -> None:
    async with (
        Membership(session, "/workers", "a", {"load": 1}) as member,
        Members(session, "/workers", reread_s=0.05) as members,
    ):
        await member.update({"load": 2})
        await eventually(lambda: members.current()["a"].data == {"load": 2})


async def test_a_member_whose_clock_is_set_says_so_unasked(session: ZkSession) -> None:
    off_s = 0.0

    def read() -> ClockReading:
        true = read_clocks()
        return ClockReading(true.wall_s + off_s, true.since_boot_s)

    def ahead_s() -> float:
        return members.current()["a"].clock_ahead_s or 0.0

    clock = OwnClock(read)
    async with (
        Membership(session, "/workers", "a", {"load": 1}, reread_s=0.05, clock=clock),
        Members(session, "/workers", reread_s=0.05) as members,
    ):
        assert ahead_s() == 0.0
        off_s = 3600.0
        await eventually(lambda: abs(ahead_s() - 3600.0) < 60.0)
        assert members.current()["a"].data == {"load": 1}
        off_s = 0.0
        await eventually(lambda: ahead_s() == 0.0)


async def test_an_exit_that_is_cancelled_leaves_no_member_and_no_turn(session: ZkSession) -> None:
    async with Members(session, "/workers", reread_s=0.05) as members, asyncio.timeout(DEADLINE_S):
        for turns in range(1, 12):
            member = await Membership(session, "/workers", "a", {"n": turns}).__aenter__()
            await eventually(lambda: bool(members.current()))
            leaving = asyncio.create_task(member.__aexit__(None, None, None))
            for _ in range(turns):
                await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            await eventually(lambda: not members.current())


async def test_changes_yields_the_present_view_and_then_each_new_one(session: ZkSession) -> None:
    async with Members(session, "/workers") as members, asyncio.timeout(DEADLINE_S):
        changes = members.changes()
        assert await anext(changes) == {}
        async with Membership(session, "/workers", "a", {}):
            assert set(await anext(changes)) == {"a"}
        assert await anext(changes) == {}
        await changes.aclose()  # type: ignore[attr-defined]  # it is a generator


async def test_member_registers_again_after_its_session_expired(
    session: ZkSession, zk_chroot: str, zookeeper: ZooKeeperServer
) -> None:
    async with (
        connect(zk_chroot) as other,
        Membership(other, "/workers", "a", {"n": 1}) as member,
        Members(session, "/workers") as members,
    ):
        first = member.epoch
        await expire_session(other, zookeeper)
        await eventually(lambda: member.epoch > first)
        await eventually(
            lambda: "a" in members.current() and members.current()["a"].czxid == member.epoch
        )
        assert (await session.get("/workers/a")).stat.session_id == other.session_id


async def test_registration_whose_reply_was_lost_is_recognised(
    session: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy, zk_chroot: str
) -> None:
    await session.ensure("/workers")
    zk_proxy.swallow_from = create_request(zk_chroot, "/workers/a")
    entering = asyncio.create_task(_enter(proxied))
    await appears(session, "/workers/a")
    czxid = (await session.get("/workers/a")).stat.czxid
    assert zk_proxy.swallow_replies
    assert not entering.done()
    zk_proxy.drop()
    zk_proxy.heal()
    async with asyncio.timeout(DEADLINE_S):
        member = await entering
    assert member.epoch == czxid
    await member.__aexit__(None, None, None)


async def _enter(session: ZkSession) -> Membership:
    return await Membership(session, "/workers", "a", {}).__aenter__()


async def test_node_of_our_older_session_is_replaced_at_once(
    session: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    member = Membership(proxied, "/workers", "a", {})
    await session.create("/workers/a", member._encoded(), ephemeral=True, makepath=True)
    async with asyncio.timeout(DEADLINE_S), member:
        assert (await session.get("/workers/a")).stat.session_id == proxied.session_id


async def test_node_of_another_process_with_our_id_is_waited_for(
    session: ZkSession, zk_chroot: str
) -> None:
    async with connect(zk_chroot) as other:
        rival = await Membership(other, "/workers", "a", {}).__aenter__()
        entering = asyncio.create_task(_enter(session))
        for _ in range(3):
            await session.sync("/")
        assert not entering.done()
        assert (await session.get("/workers/a")).stat.session_id == other.session_id
        await rival.__aexit__(None, None, None)
    async with asyncio.timeout(DEADLINE_S):
        member = await entering
    assert member.epoch > rival.epoch
    await member.__aexit__(None, None, None)
    try:
        await session.get("/workers/a")
    except NoNode:
        return
    raise AssertionError("a member that left is still registered")
