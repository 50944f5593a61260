"""One candidate leads at a time, and former leaders are refused."""

import asyncio

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import (
    Election,
    ElectionListener,
    NotLeader,
    SetData,
    StaleEpoch,
    TransactionFailed,
    ZkSession,
    leader_of,
    raise_fence,
)
from shoal.coordination.errors import BadVersion
from tests.integration.coordination.conftest import connect, create_request
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import eventually
from tests.support.zookeeper.server import expire_session


class Recorder(ElectionListener):
    """A candidate that notes what it is told."""

    def __init__(self, session: ZkSession, candidate_id: str, name: str = "e") -> None:
        self.told: list[str] = []
        self.epochs: list[int] = []
        self.fail = 0
        self.election = Election(session, name, candidate_id, self, data={"at": "desk 4"})

    async def on_elected(self, epoch: int) -> None:
        self.told.append("elected")
        if self.fail:
            self.fail -= 1
            raise RuntimeError("no desk")
        self.epochs.append(epoch)
        assert self.election.epoch == epoch

    async def on_deposed(self) -> None:
        self.told.append("deposed")
        assert self.election.epoch == self.epochs[-1]  # still the leader

    async def on_lost(self) -> None:
        self.told.append("lost")
        assert self.election.epoch is None


async def test_first_candidate_leads_and_everybody_can_see_it(
    session: ZkSession, zk_chroot: str
) -> None:
    async with connect(zk_chroot) as onlooker:
        assert await leader_of(onlooker, "e") is None
        first, second = Recorder(session, "a"), Recorder(onlooker, "b")
        async with first.election:
            await eventually(lambda: first.epochs)
            async with second.election:
                await onlooker.sync("/")
                leader = await leader_of(onlooker, "e")
                assert leader is not None
                assert (leader.candidate_id, leader.epoch) == ("a", first.epochs[0])
                assert leader.data == {"at": "desk 4"}
                assert second.election.epoch is None
                with pytest.raises(NotLeader, match="b does not lead 'e'"):
                    second.election.fence  # noqa: B018  (reading it is what raises)
        assert first.told == ["elected", "deposed"]
        assert second.told == []
        assert await leader_of(session, "e") is None


async def test_who_steps_back_is_followed_by_the_next_with_a_higher_epoch(
    session: ZkSession, zk_chroot: str
) -> None:
    async with connect(zk_chroot) as other:
        first, second = Recorder(session, "a"), Recorder(other, "b")
        async with first.election:
            await eventually(lambda: first.epochs)
            await second.election.__aenter__()
        try:
            await eventually(lambda: second.epochs)
            assert second.epochs[0] > first.epochs[0]
        finally:
            await second.election.__aexit__(None, None, None)


async def test_expired_leader_is_told_and_stands_again(
    session: ZkSession, zookeeper: ZooKeeperServer
) -> None:
    candidate = Recorder(session, "a")
    async with candidate.election:
        await eventually(lambda: candidate.epochs)
        await expire_session(session, zookeeper)
        await eventually(lambda: len(candidate.epochs) == 2)
        assert candidate.told == ["elected", "lost", "elected"]
        assert candidate.epochs[1] > candidate.epochs[0]


async def test_cut_off_leader_stops_before_the_next_one_is_elected(
    session: ZkSession, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    first_led_meanwhile: list[bool] = []

    class Successor(Recorder):
        async def on_elected(self, epoch: int) -> None:
            # By the clock, whether or not this loop has come to its callbacks since.
            first_led_meanwhile.append(first.election.epoch is not None)
            await super().on_elected(epoch)

    async with connect(zk_proxied, session_timeout_s=6.0, close_timeout_s=1.0) as frail:
        first, second = Recorder(frail, "a"), Successor(session, "b")
        async with first.election:
            await eventually(lambda: first.epochs)
            async with second.election:
                zk_proxy.freeze()
                await eventually(lambda: second.epochs)
                assert first_led_meanwhile == [False]
                await eventually(lambda: first.told == ["elected", "lost"])
                zk_proxy.heal()


async def test_writes_of_an_old_leader_are_refused(session: ZkSession, zk_chroot: str) -> None:
    await session.create("/report", b"")
    async with connect(zk_chroot) as other:
        first, second = Recorder(session, "a"), Recorder(other, "b")
        async with first.election:
            await eventually(lambda: first.epochs)
            old = first.election.fence
            await session.multi([old, SetData("/report", b"a")])
        async with second.election:
            await eventually(lambda: second.epochs)
            # The session of "a" is alive and well: the fence alone refuses it.
            with pytest.raises(TransactionFailed) as refused:
                await session.multi([old, SetData("/report", b"a again")])
            assert refused.value.failed_at == 0
            assert isinstance(refused.value.cause, BadVersion)
            await other.multi([second.election.fence, SetData("/report", b"b")])
        assert (await session.get("/report")).data == b"b"


async def test_old_epoch_cannot_raise_the_fence_again(session: ZkSession) -> None:
    newest = await raise_fence(session, "/f/fence", 7)
    with pytest.raises(StaleEpoch, match="epoch 7 has followed our 6"):
        await raise_fence(session, "/f/fence", 6)
    assert await raise_fence(session, "/f/fence", 7) == newest  # our own is recognised
    await session.multi([newest])
    newer = await raise_fence(session, "/f/fence", 8)
    with pytest.raises(TransactionFailed):
        await session.multi([newest])
    await session.multi([newer])


async def test_failing_listener_steps_back_and_stands_again(session: ZkSession) -> None:
    candidate = Recorder(session, "a")
    candidate.fail = 1
    async with candidate.election:
        await eventually(lambda: candidate.epochs)
        assert candidate.told == ["elected", "elected"]


async def test_lost_answer_to_the_candidacy_is_recognised(
    zk_proxied: str, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    await proxied.ensure("/elections/e")
    zk_proxy.swallow_from = create_request(zk_proxied, "/elections/e/leader")
    candidate = Recorder(proxied, "a")
    async with candidate.election:
        await eventually(lambda: zk_proxy.swallow_replies)
        zk_proxy.drop()
        zk_proxy.heal()
        await eventually(lambda: candidate.epochs)
        leader = await leader_of(proxied, "e")
        assert leader is not None
        assert leader.epoch == candidate.epochs[-1]


async def test_two_elections_have_nothing_to_do_with_each_other(session: ZkSession) -> None:
    one, two = Recorder(session, "a", "one"), Recorder(session, "b", "with a/slash")
    async with one.election, two.election:
        await eventually(lambda: one.epochs and two.epochs)
        leaders = await asyncio.gather(
            leader_of(session, "one"), leader_of(session, "with a/slash")
        )
        assert [leader and leader.candidate_id for leader in leaders] == ["a", "b"]
