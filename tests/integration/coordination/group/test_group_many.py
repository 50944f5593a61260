"""Many members agree, evenly, move no more than they must, and restart without a rebalance."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import Group, Partition, ZkSession, quarantine, read_group, znodes
from shoal.coordination.group import GroupMetadata, GroupState, Join, Sync, Tick, decide, store
from shoal.coordination.group.codec import decode, encode
from tests.integration.coordination.conftest import connect
from tests.integration.coordination.group.group_bench import QUICK, Bench
from tests.integration.coordination.group.traffic import Traffic
from tests.support.waiting import STEADY_SESSION_S, eventually
from tests.support.zookeeper.server import expire_session

COUNT, TOPICS = 128, {"jobs": 128}
# Nobody is evicted because thirty members in one process are slow: that would move more.
PATIENT = replace(QUICK, rebalance_timeout_s=600.0)


@pytest.fixture
async def bench(zk_chroot: str) -> AsyncIterator[Bench]:
    bench = Bench(zk_chroot)
    bench.patience_s = 180.0  # thirty processes' work in one
    try:
        yield bench
    finally:
        await asyncio.gather(*(peer.leave() for peer in bench.peers.values()))
    bench.ledger.check()


@pytest.mark.timeout(400)
async def test_thirty_members_converge_and_one_more_or_less_moves_little(bench: Bench) -> None:
    peers = await asyncio.gather(
        *(bench.join(f"m{n:02d}", topics=TOPICS, settings=PATIENT) for n in range(30))
    )
    await bench.shared_out(*peers, count=COUNT)

    since = len(bench.ledger.told)
    newcomer = await bench.join("newcomer", topics=TOPICS, settings=PATIENT)
    await bench.shared_out(*peers, newcomer, count=COUNT)
    assert bench.ledger.moved(since) == len(newcomer.owned) == 4

    since, gone = len(bench.ledger.told), peers.pop(7)
    had = len(gone.owned)
    await gone.leave()
    await bench.shared_out(*peers, newcomer, count=COUNT)
    assert bench.ledger.moved(since) == had


# ------------------------------------------------------------------ static members

# No grace ends because many members in one process are slow.
# A slow machine reads no more often than a quick one.
STATIC = replace(PATIENT, static_grace_s=36_000.0, reread_s=600.0)
SESSIONS = 4


def stable(count: int) -> GroupMetadata:
    """Return a stable group of ``count`` static members that own a partition each."""
    group = GroupMetadata("g", initial_rebalance_delay_s=0.0)
    for number in range(count):
        join = Join(
            None, f"old-{number}", ("cooperative-sticky",), {"jobs": count}, 600.0, f"i-{number}"
        )
        group = decide(group, join, 0.0).group
    while group.state is GroupState.PREPARING_REBALANCE:
        assert group.deadline_s is not None
        group = decide(group, Tick(), group.deadline_s).group
    assignment = {f"old-{number}": [Partition("jobs", number)] for number in range(count)}
    for member_id in assignment:
        sync = Sync(member_id, group.generation, assignment=assignment)
        group = decide(group, sync, 0.0).group
    assert (group.state, group.deadline_s) == (GroupState.STABLE, None)
    return group


async def stored(session: ZkSession, count: int) -> GroupMetadata:
    """Store a group of ``count`` static members that have all ended just now, and return it."""
    group = stable(count)
    await session.ensure(znodes.group_members("g"))
    await session.set(znodes.group("g"), encode(group))
    return group


def returning(session: ZkSession, number: int, count: int) -> Group:
    settings = replace(STATIC, instance_id=f"i-{number}")
    return Group(session, "g", topics={"jobs": count}, settings=settings)


def has_its_share(group: Group, number: int) -> bool:
    return group.owned == frozenset({Partition("jobs", number)})


@pytest.mark.parametrize("count", [1, 30, 110, 500])
async def test_all_static_members_but_one_may_be_away(session: ZkSession, count: int) -> None:
    """The first one that returns finds all others gone: they are restarting, it is no damage."""
    before = await stored(session, count)
    async with returning(session, 0, count) as first:
        await eventually(lambda: has_its_share(first, 0))
        now = await read_group(session, "g")
        assert (now.state, now.generation) == (GroupState.STABLE, before.generation)
        assert len(now.members) == count
    assert not await quarantine.records(session)


@pytest.mark.timeout(600)
async def test_static_members_that_return_one_after_the_other_keep_their_shares(
    session: ZkSession,
) -> None:
    count = 110
    before = await stored(session, count)
    for number in range(count):
        async with returning(session, number, count) as group:
            await eventually(partial(has_its_share, group, number))
    now = await read_group(session, "g")
    assert (now.state, now.generation) == (GroupState.STABLE, before.generation)
    assert not {f"old-{number}" for number in range(count)} & now.members.keys()
    assert not await quarantine.records(session)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [30, 110])
async def test_static_members_that_all_return_at_once_keep_their_shares(
    zk_chroot: str, session: ZkSession, count: int
) -> None:
    before = await stored(session, count)
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(connect(zk_chroot, session_timeout_s=STEADY_SESSION_S))
            for _ in range(SESSIONS)
        ]
        groups = [returning(sessions[n % SESSIONS], n, count) for n in range(count)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        try:
            await eventually(partial(_all_own, groups), 300.0)
            now = await read_group(session, "g")
            assert (now.state, now.generation) == (GroupState.STABLE, before.generation)
            assert now.members.keys() == {group.member_id for group in groups}
        finally:
            await asyncio.gather(*(group.__aexit__(None, None, None) for group in groups))
    assert not await quarantine.records(session)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [1, 30, 110, 500])
@pytest.mark.parametrize("early", [0, 1])
async def test_static_members_of_one_session_return_in_few_writes(
    zk_chroot: str, session: ZkSession, count: int, early: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them read the group together, and what they want of it is written together."""
    decoded = 0

    def count_decoding(*args: Any) -> GroupMetadata:
        nonlocal decoded
        decoded += 1
        return decode(*args)

    monkeypatch.setattr(store, "decode", count_decoding)
    before = await stored(session, count)
    async with connect(zk_chroot) as shared:
        groups = [returning(shared, number, count) for number in range(count)]
        traffic = Traffic(shared)
        for group in groups[:early]:
            await group.__aenter__()
        await asyncio.gather(*(group.__aenter__() for group in groups[early:]))
        try:
            await eventually(partial(_all_own, groups), 300.0)
            entered = traffic.requests.copy()
            now = await read_group(session, "g")
            assert (now.state, now.generation) == (GroupState.STABLE, before.generation)
            assert now.members.keys() == {group.member_id for group in groups}
        finally:
            await asyncio.gather(*(group.__aexit__(None, None, None) for group in groups))
    assert not await quarantine.records(session)
    # Members register as they are answered, so there are some rounds; never one for each member.
    rounds = 10 + count // 3
    assert entered["Exists"] <= count + rounds  # the registrations: looked at once, not by each
    assert entered["SetData"] - count <= rounds  # each registration is written once more
    assert entered["GetData"] <= 2 * rounds
    assert decoded <= entered["GetData"] + 1


@pytest.mark.timeout(600)
async def test_static_members_that_lose_one_session_together_keep_their_shares(
    session: ZkSession, zk_chroot: str, zookeeper: ZooKeeperServer
) -> None:
    count = 30
    before = await stored(session, count)
    async with connect(zk_chroot) as shared:
        groups = [returning(shared, number, count) for number in range(count)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        try:
            all_own = partial(_all_own, groups)
            await eventually(all_own, 300.0)
            were = {group.member_id for group in groups}
            await expire_session(shared, zookeeper)
            await eventually(lambda: were.isdisjoint(group.member_id for group in groups), 300.0)
            await eventually(all_own, 300.0)
            now = await read_group(session, "g")
            assert (now.state, now.generation) == (GroupState.STABLE, before.generation)
        finally:
            await asyncio.gather(*(group.__aexit__(None, None, None) for group in groups))


def _all_own(groups: Sequence[Group]) -> bool:
    return all(has_its_share(group, number) for number, group in enumerate(groups))
