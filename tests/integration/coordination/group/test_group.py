"""Groups on a real server: members come, go and hand over, one owner for each partition."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from shoal.coordination import Partition, ZkSession, read_group
from shoal.coordination.assignors import (
    Assignor,
    GroupMember,
    cooperative_sticky,
    modulo,
    range_,
    round_robin,
    sticky,
)
from shoal.coordination.errors import AssignorFailed, InconsistentGroupProtocol, Mismatch
from shoal.coordination.group import GroupState
from tests.integration.coordination.group.group_bench import PATIENCE_S, Bench, jobs
from tests.support.waiting import eventually


@pytest.fixture
async def bench(zk_chroot: str) -> AsyncIterator[Bench]:
    bench = Bench(zk_chroot)
    try:
        yield bench
    finally:
        await bench.close()
    bench.ledger.check()


# ------------------------------------------------------------------ coming and going


async def test_a_lone_member_gets_everything_and_gives_it_back(
    bench: Bench, session: ZkSession
) -> None:
    peer = await bench.join("a")
    await bench.shared_out(peer)
    assert peer.owned == jobs(*range(6))
    assert peer.group.is_leader
    assert peer.group.metadata.assignment == (await read_group(session, "g")).assignment
    await peer.leave()
    assert bench.ledger.of("a") == [
        ("assigned", jobs(*range(6))),
        ("revoking", jobs(*range(6))),
        ("revoked", jobs(*range(6))),
    ]
    left = await read_group(session, "g")
    assert (left.members, left.pending) == ({}, frozenset())
    assert (await session.children("/groups/g/members")).names == []


async def test_only_what_must_move_moves_and_the_old_owner_finishes_first(bench: Bench) -> None:
    old = await bench.join("old")
    await bench.shared_out(old)
    going_on, may_finish = asyncio.Event(), asyncio.Event()

    async def finish(partitions: frozenset[Partition]) -> None:
        assert partitions < old.owned  # still ours
        going_on.set()
        await may_finish.wait()

    old.recorder.finishing = finish
    new = await bench.join("new")
    async with asyncio.timeout(PATIENCE_S):
        await going_on.wait()
    assert (len(old.owned), new.owned) == (6, frozenset())
    may_finish.set()
    await bench.shared_out(old, new)
    assert bench.ledger.calls() == [
        ("old", "assigned"),
        ("old", "revoking"),
        ("old", "revoked"),
        ("new", "assigned"),
    ]
    assert bench.ledger.moved() == 6 + 3
    old.recorder.finishing = None


async def test_an_eager_group_gives_up_everything_first(bench: Bench) -> None:
    old = await bench.join("old", assignors=[sticky])
    await bench.shared_out(old)
    new = await bench.join("new", assignors=[sticky])
    await bench.shared_out(old, new)
    assert bench.ledger.of("old")[:3] == [
        ("assigned", jobs(*range(6))),
        ("revoking", jobs(*range(6))),
        ("revoked", jobs(*range(6))),
    ]
    assert len(bench.ledger.of("new")) == 1


async def test_who_leaves_is_succeeded_and_may_come_back(bench: Bench) -> None:
    first, second = await bench.join("first"), await bench.join("second")
    await bench.shared_out(first, second)
    was = first.group.member_id
    await first.leave()
    await bench.shared_out(second)
    assert second.group.is_leader
    again = await bench.join("first")
    await bench.shared_out(again, second)
    assert again.group.member_id != was
    assert "lost" not in dict(bench.ledger.calls()).values()


async def test_members_may_want_different_topics(bench: Bench) -> None:
    leader = await bench.join("leader", topics={"jobs": 2})
    other = await bench.join("other", topics={"mail": 3})
    await eventually(lambda: len(other.owned) == 3 and leader.owned == jobs(0, 1), PATIENCE_S)
    assert other.owned == {Partition("mail", number) for number in range(3)}


async def test_a_group_for_nothing_but_its_leader(bench: Bench) -> None:
    first, second = await bench.join("first", topics={}), await bench.join("second", topics={})
    await eventually(lambda: first.group.is_leader != second.group.is_leader, PATIENCE_S)
    assert bench.ledger.told == []


async def test_two_groups_know_nothing_of_each_other(bench: Bench, zk_chroot: str) -> None:
    other = Bench(zk_chroot, "other/group")
    ours, theirs = await bench.join("ours"), await other.join("theirs")
    try:
        await bench.shared_out(ours)
        await other.shared_out(theirs)
    finally:
        await other.close()
    other.ledger.check()


# ------------------------------------------------------------------ assignors


async def test_the_assignor_that_all_support_and_most_prefer_is_used(bench: Bench) -> None:
    peers = [
        await bench.join("a", assignors=[range_, round_robin]),
        await bench.join("b", assignors=[modulo, round_robin, range_]),
        await bench.join("c", assignors=[round_robin, range_]),
    ]
    await bench.shared_out(*peers)
    assert peers[0].group.metadata.assignor == "round-robin"


async def test_no_common_assignor_is_refused_at_the_door(bench: Bench, session: ZkSession) -> None:
    peer = await bench.join("a", assignors=[range_])
    await bench.shared_out(peer)
    with pytest.raises(InconsistentGroupProtocol, match="cooperative-sticky"):
        await bench.join("b", assignors=[cooperative_sticky])
    assert list((await read_group(session, "g")).members) == [peer.group.member_id]
    assert len((await session.children("/groups/g/members")).names) == 1
    assert peer.owned == jobs(*range(6))


def test_eager_and_cooperative_assignors_do_not_mix(zk_chroot: str) -> None:
    with pytest.raises(ValueError, match="choose assignors of one kind"):
        Bench(zk_chroot).prepare("a", assignors=[cooperative_sticky, range_])


def broken(_: Mapping[str, int], __: Sequence[GroupMember]) -> dict[str, list[Partition]]:
    raise RuntimeError("the assignor has a bug")


def generous(_: Mapping[str, int], members: Sequence[GroupMember]) -> dict[str, list[Partition]]:
    return {member.id: [Partition("jobs", 0)] for member in members}


@pytest.mark.parametrize(("assign", "words"), [(broken, "has a bug"), (generous, "two members")])
async def test_a_faulty_assignor_ends_the_leader_and_is_told_why(
    bench: Bench, assign: Assignor, words: str
) -> None:
    peers = [await bench.join(name, assignors=[assign]) for name in ("a", "b")]
    for peer in peers:
        if assign is generous and peer is peers[-1]:
            break  # alone it does no harm
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(AssignorFailed, match=words):
                await peer.group.wait()
        with pytest.raises(AssignorFailed):
            peer.group.poll()


async def test_what_is_no_group_is_quarantined(bench: Bench, session: ZkSession) -> None:
    await session.create("/groups/g/members", makepath=True)
    await session.set("/groups/g", b"something else")
    with pytest.raises(Mismatch, match="group 'g'"):
        await read_group(session, "g")
    peer = await bench.join("a")
    assert peer.group.member_id in (await read_group(session, "g")).members


# ------------------------------------------------------------------ looking on


async def test_changes_are_told_and_generations_rise(bench: Bench) -> None:
    peer = bench.prepare("a")
    generations: list[int] = []
    states: list[GroupState] = []
    unsubscribe = peer.group.on_change(lambda group: generations.append(group.generation))
    peer.group.on_change(lambda group: states.append(group.state))
    await bench.enter(peer)
    await bench.shared_out(peer)
    other = await bench.join("b")
    await bench.shared_out(peer, other)
    assert generations == sorted(generations)
    assert generations[-1] == peer.group.generation == 3
    assert states[-1] is GroupState.STABLE
    unsubscribe()
    await other.leave()
    await bench.shared_out(peer)
    assert generations[-1] == 3


async def test_a_look_from_outside(bench: Bench, session: ZkSession) -> None:
    assert (await read_group(session, "g")).state is GroupState.EMPTY
    peer = await bench.join("a", data={"address": "a:1"})
    await bench.shared_out(peer)
    group = await read_group(session, "g")
    [member] = group.members.values()
    assert member.join.client_id == "a"
    assert group.leader_id == member.id
    assert set(group.assignment[member.id]) == peer.owned
