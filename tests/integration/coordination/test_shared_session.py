"""Actors that share a session are as separate as those of different sessions."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import (
    BalancedJobs,
    Election,
    ElectionListener,
    FairShare,
    GroupSettings,
    Membership,
    OwnerNodes,
    OwnershipListener,
    Partition,
    SessionState,
    TaskQueue,
    ZkSession,
    leader_of,
    prepare,
    znodes,
)
from tests.integration.coordination.conftest import claim_request, connect, create_request
from tests.integration.coordination.given import entry
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually
from tests.support.zookeeper.server import expire_session

ROUND_TRIPS = 20  # far more than it takes to take a leader's node away
LEADER = f"{znodes.election('e')}/leader"
SETTINGS = GroupSettings(initial_rebalance_delay_s=0.0, reread_s=1.0)


class Seat:
    """Who leads, and which epochs there were; fails when two lead at once."""

    def __init__(self) -> None:
        self.leaders: list[str] = []
        self.most = 0
        self.epochs: list[int] = []

    def take(self, name: str, epoch: int) -> None:
        self.leaders.append(name)
        self.most = max(self.most, len(self.leaders))
        self.epochs.append(epoch)

    def check(self) -> None:
        assert self.most == 1
        assert self.epochs == sorted(set(self.epochs))  # each greater than all before


class Candidate(ElectionListener):
    """A candidate that takes a seat, and keeps it while it steps back."""

    def __init__(self, session: ZkSession, seat: Seat, name: str, number: int = 0) -> None:
        self.seat, self.name = seat, f"{name}{number}"
        self.fail = 0
        self.may_leave = asyncio.Event()
        self.may_leave.set()
        self.election = Election(session, "e", name, self)

    async def on_elected(self, epoch: int) -> None:
        if self.fail:
            self.fail -= 1
            raise RuntimeError("no desk")
        self.seat.take(self.name, epoch)

    async def on_deposed(self) -> None:
        await self.may_leave.wait()
        self.seat.leaders.remove(self.name)

    async def on_lost(self) -> None:
        await self.may_leave.wait()
        self.seat.leaders.remove(self.name)


@contextmanager
def slow(candidate: Candidate) -> Iterator[None]:
    """Let the candidate take as long as the block to step back."""
    candidate.may_leave.clear()
    try:
        yield
    finally:
        candidate.may_leave.set()


async def round_trips(session: ZkSession) -> None:
    for _ in range(ROUND_TRIPS):
        await session.sync("/")


@pytest.mark.parametrize("names", ["ab", "aa"], ids=["two names", "one name"])
async def test_second_candidate_of_a_session_waits_until_the_first_has_left(
    session: ZkSession, names: str
) -> None:
    seat = Seat()
    first, second = (Candidate(session, seat, name, i) for i, name in enumerate(names))
    async with first.election:
        await eventually(lambda: seat.leaders)
        async with second.election:
            await round_trips(session)
            node = await session.get(LEADER)
            assert (node.stat.czxid, node.stat.version) == (seat.epochs[0], 0)  # no write at all
            assert (first.election.epoch, second.election.epoch) == (seat.epochs[0], None)
            with slow(first):
                leaving = asyncio.create_task(first.election.__aexit__())
                await round_trips(session)
                assert seat.leaders == [first.name]
            await leaving
            await eventually(lambda: seat.leaders == [second.name])
    seat.check()
    assert await leader_of(session, "e") is None


async def test_candidate_that_cannot_begin_is_followed_by_another_of_its_session(
    session: ZkSession,
) -> None:
    seat = Seat()
    first, second = Candidate(session, seat, "a"), Candidate(session, seat, "b")
    first.fail = 1
    async with first.election, second.election:
        await eventually(lambda: seat.leaders == [second.name])
    seat.check()


@pytest.mark.parametrize("names", ["ab", "aa"], ids=["two names", "one name"])
async def test_candidates_of_a_session_that_expires_lead_one_after_the_other(
    session: ZkSession, zookeeper: ZooKeeperServer, names: str
) -> None:
    seat = Seat()
    candidates = [Candidate(session, seat, name, i) for i, name in enumerate(names)]
    async with candidates[0].election, candidates[1].election:
        await eventually(lambda: seat.leaders)
        with slow(candidates[0]):
            await expire_session(session, zookeeper)
            await eventually(lambda: session.generation == 2)
            await session.proven()
            await round_trips(session)
            assert len(seat.epochs) == 1  # the first one has not stopped yet
        await eventually(lambda: len(seat.epochs) == 2)
    seat.check()


@pytest.mark.parametrize("names", ["ab", "aa"], ids=["two names", "one name"])
async def test_lost_answer_makes_one_candidate_of_the_session_the_leader(
    zk_proxied: str, proxied: ZkSession, zk_proxy: TcpProxy, names: str
) -> None:
    await proxied.ensure("/elections/e")
    seat = Seat()
    first, second = (Candidate(proxied, seat, name, i) for i, name in enumerate(names))
    zk_proxy.swallow_from = create_request(zk_proxied, LEADER)
    async with second.election:
        async with first.election:
            await eventually(lambda: zk_proxy.swallow_replies)
            zk_proxy.drop()
            zk_proxy.heal()
            await eventually(lambda: seat.leaders)
            await round_trips(proxied)
            assert len(seat.leaders) == 1
        await eventually(lambda: seat.leaders == [second.name])
    seat.check()


@pytest.mark.parametrize("names", ["ab", "aa"], ids=["two names", "one name"])
async def test_candidates_of_a_session_in_doubt_have_epochs_of_their_own(
    session: ZkSession, zk_proxied: str, zk_proxy: TcpProxy, names: str
) -> None:
    seat = Seat()
    async with connect(zk_proxied, session_timeout_s=6.0) as doubted:
        first, second = (Candidate(doubted, seat, name, i) for i, name in enumerate(names))
        async with second.election:
            async with first.election:
                await eventually(lambda: seat.leaders)
                zk_proxy.swallow_replies = True  # the server hears it, so the session goes on
                await eventually(lambda: not seat.leaders)
            zk_proxy.drop()
            zk_proxy.heal()
            await eventually(lambda: seat.leaders == [second.name])
            assert doubted.generation == 1
            leader = await leader_of(session, "e")
            assert leader is not None
            assert leader.epoch == seat.epochs[-1]
    seat.check()


async def test_candidate_that_leaves_a_session_in_doubt_leaves_no_node_behind(
    session: ZkSession, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    seat = Seat()
    async with connect(zk_proxied, session_timeout_s=6.0) as doubted:
        first, second = Candidate(doubted, seat, "a"), Candidate(session, seat, "b")
        async with first.election:
            await eventually(lambda: seat.leaders)
            zk_proxy.swallow_replies = True
            await eventually(lambda: not seat.leaders)
        zk_proxy.drop()
        zk_proxy.heal()
        async with second.election:
            await eventually(lambda: seat.leaders == [second.name])
            assert doubted.generation == 1  # its node would stand
    seat.check()


class Member:
    """A member of a group that takes its time to release what it owns."""

    def __init__(self, session: ZkSession, name: str, owners: dict[Partition, list[str]]) -> None:
        self.name, self.owners = name, owners
        self.may_release = asyncio.Event()
        self.share = FairShare(
            session,
            "rooms",
            {"rooms": 6},
            OwnerNodes(lambda partition: f"/rooms/{partition.index}/owner", name),
            OwnershipListener(self._acquired, self._released, self._lost),
            settings=replace(SETTINGS, rebalance_timeout_s=1.0),
        )

    def count(self) -> int:
        return sum(self.name in names for names in self.owners.values())

    async def _acquired(self, partition: Partition, epoch: int) -> None:
        self.owners.setdefault(partition, []).append(self.name)
        assert self.owners[partition] == [self.name]

    async def _released(self, partition: Partition) -> None:
        await self.may_release.wait()
        self.owners[partition].remove(self.name)

    async def _lost(self, partitions: frozenset[Partition]) -> None:
        for partition in partitions:
            self.owners[partition].remove(self.name)


@asynccontextmanager
async def members(
    session: ZkSession, *names: str
) -> AsyncIterator[tuple[dict[Partition, list[str]], list[Member]]]:
    owners: dict[Partition, list[str]] = {}
    found = [Member(session, name, owners) for name in names]
    async with AsyncExitStack() as blocks:
        for member in found:
            await blocks.enter_async_context(member.share)
            await eventually(lambda: len(owners) == 6)
        yield owners, found


async def test_members_of_one_session_own_a_partition_one_after_the_other(
    session: ZkSession,
) -> None:
    async with members(session, "one", "two") as (owners, (one, two)):
        try:
            # The group evicts the slow one, and then assigns what that one still owns.
            await eventually(lambda: two.share.group.owned)
            await round_trips(session)
            assert one.count() == 6  # it has not released anything
            assert two.count() == 0
        finally:
            one.may_release.set()
            two.may_release.set()
        await eventually(lambda: one.count() == two.count() == 3)
        assert all(len(names) == 1 for names in owners.values())


async def test_a_hundred_jobs_of_ten_processes_in_one_session_run_once(session: ZkSession) -> None:
    running: dict[str, int] = {}
    most: dict[str, int] = {}

    async def run(job: str, epoch: int) -> None:
        running[job] = running.get(job, 0) + 1
        most[job] = max(most.get(job, 0), running[job])
        try:
            await asyncio.Event().wait()
        finally:
            running[job] -= 1

    jobs = [f"job {number}" for number in range(100)]
    async with AsyncExitStack() as blocks:
        async with asyncio.timeout(DEADLINE_S):
            parts = [
                await blocks.enter_async_context(
                    BalancedJobs(session, "j", f"p{n}", jobs, run, settings=SETTINGS)
                )
                for n in range(10)
            ]
        await eventually(lambda: all(len(part.running) == 10 for part in parts))
    assert set(most.values()) == {1}
    assert not any(running.values())


async def test_second_member_of_a_session_with_the_same_id_waits_for_the_first(
    session: ZkSession,
) -> None:
    first, second = (Membership(session, "/members", "m", {"n": n}) for n in (1, 2))
    async with asyncio.timeout(DEADLINE_S), first:
        registered = await session.get("/members/m")
        entering = asyncio.create_task(second.__aenter__())
        await round_trips(session)
        await second.update({"n": 3})
        assert await session.get("/members/m") == registered
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)
        assert await session.get("/members/m") == registered
        entering = asyncio.create_task(second.__aenter__())
        await round_trips(session)
        assert not entering.done()
    async with asyncio.timeout(DEADLINE_S):
        await entering
        assert second.epoch > first.epoch
        assert (await session.get("/members/m")).stat.czxid == second.epoch
        await second.__aexit__()
    assert await session.exists("/members/m") is None


async def test_member_replaces_a_node_that_another_of_its_session_left_behind(
    session: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    first, second = (Membership(proxied, "/members", "m", {"n": n}) for n in (1, 2))
    async with asyncio.timeout(DEADLINE_S):
        async with first:
            zk_proxy.cut()
            await eventually(lambda: proxied.state is SessionState.SUSPENDED)
        zk_proxy.heal()
        async with second:
            assert proxied.generation == 1
            assert second.epoch > first.epoch
            assert (await session.get("/members/m")).stat.czxid == second.epoch


async def test_member_that_waits_for_its_id_does_not_write_into_the_node_of_the_other(
    session: ZkSession, zk_chroot: str
) -> None:
    async with connect(zk_chroot) as other, Membership(session, "/members", "m", {"n": 1}):
        registered = await session.get("/members/m")
        waiting = Membership(other, "/members", "m", {"n": 2})
        entering = asyncio.create_task(waiting.__aenter__())
        await round_trips(other)
        await waiting.update({"n": 3})
        assert await session.get("/members/m") == registered
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)


async def test_claim_whose_answer_was_lost_belongs_to_one_queue_of_the_session(
    session: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    await prepare(session, 4)
    masters = TaskQueue(session)
    await masters.put([entry(number) for number in range(5)])
    queues = [TaskQueue(proxied) for _ in range(3)]
    first = [await queue.claim("default", 1, "w") for queue in queues]
    zk_proxy.swallow_from = claim_request()
    claiming = [asyncio.create_task(queue.claim("default", 1, "w")) for queue in queues]
    await eventually(lambda: zk_proxy.swallow_replies)
    async with asyncio.timeout(DEADLINE_S):
        while len(await masters.claims()) < 4:
            assert zk_proxy.swallow_replies
        zk_proxy.drop()
        zk_proxy.heal()
        claims = [claim for found in [*first, *await asyncio.gather(*claiming)] for claim in found]
    assert sorted(claim.task_instance_id for claim in claims) == [0, 1, 2, 3, 4]
