"""A group that does not fit into a znode ends for the member that makes it so, and no other."""

import asyncio
import random
import threading
from collections.abc import Mapping, Sequence

import pytest

from shoal.coordination import (
    BalancedJobs,
    FairShare,
    Group,
    GroupSettings,
    OwnerNodes,
    OwnershipListener,
    SessionState,
    ZkSession,
    read_group,
    znodes,
)
from shoal.coordination.assignors import GroupMember, Partition, cooperative, cooperative_sticky
from shoal.coordination.errors import GroupTooLarge, TooLarge
from shoal.coordination.group.store import LARGE_PARTITIONS
from shoal.coordination.session.session import NODE_BYTES
from tests.integration.coordination.conftest import connect, eventually
from tests.support.waiting import DEADLINE_S

AT_ONCE = GroupSettings(initial_rebalance_delay_s=0.0)


async def _nothing(*_: object) -> None:
    """Called back for nothing."""


@pytest.mark.parametrize(
    "topics",
    [
        {"feeds": 100_001},
        {"a": 60_000, "b": 60_000},
        {"feeds": -1},
        {"feeds": 10**12},
        {"caf\udce9": 4},  # a file name that is not UTF-8
    ],
)
async def test_what_no_group_can_share_is_refused_at_construction(
    session: ZkSession, topics: Mapping[str, int]
) -> None:
    with pytest.raises(ValueError, match=r"partitions|invalid topic"):
        Group(session, "g", topics=topics)
    nodes = OwnerNodes[Partition](lambda _: "/owner", "a")
    with pytest.raises(ValueError, match=r"partitions|invalid topic"):
        FairShare(session, "g", topics, nodes, OwnershipListener(_nothing, _nothing, _nothing))


async def test_data_of_a_member_that_is_too_large_is_refused_at_construction(
    session: ZkSession,
) -> None:
    with pytest.raises(TooLarge, match="member of group 'g'"):
        Group(session, "g", data={"text": "x" * 1_200_000})


async def test_jobs_with_too_many_bytes_are_refused_at_entering(session: ZkSession) -> None:
    async def run(job: str, epoch: int) -> None:
        """Nothing to do."""

    drawn = random.Random(1)  # names that do not compress well
    names = [drawn.randbytes(200).hex() for _ in range(6_000)]
    jobs = BalancedJobs(session, "g", "a", names, run, settings=AT_ONCE)
    with pytest.raises(GroupTooLarge, match=r"1 member with 6000 partitions would not fit"):
        await jobs.__aenter__()
    assert session.state is SessionState.CONNECTED


async def test_a_member_that_makes_the_group_too_large_is_refused_alone(zk_chroot: str) -> None:
    async with connect(zk_chroot, max_request_bytes=NODE_BYTES + 16_000) as session:
        states: list[SessionState] = []
        session.on_state(states.append)
        async with Group(session, "g", topics={"a": 4}, settings=AT_ONCE) as small:
            await eventually(lambda: len(small.owned) == 4)
            large = Group(session, "g", topics={"b": 2_700}, settings=AT_ONCE)
            with pytest.raises(GroupTooLarge, match="2 members with 2704 partitions") as failure:
                await large.__aenter__()
            assert "jute.maxbuffer" in str(failure.value)
            # It names what would fit, but for some bytes of the next member's id.
            fits = {"b": failure.value.fit - 100}
            async with Group(session, "g", topics=fits, settings=AT_ONCE):
                small.raise_failure()
            small.raise_failure()
            await eventually(lambda: len(small.owned) == 4)
            stored = await read_group(session, "g")
            assert list(stored.members) == [small.member_id]
            assert not stored.pending
        assert states == []


async def test_room_that_a_dead_member_holds_is_given_to_one_that_enters(zk_chroot: str) -> None:
    """With both the group would be too large; a refusal is final, and the room is free by then."""
    topics = {"a": 1_500}, {"b": 1_500}
    async with connect(zk_chroot, max_request_bytes=NODE_BYTES + 16_000) as session:
        async with connect(zk_chroot, max_request_bytes=NODE_BYTES + 16_000) as lost:
            dead = Group(lost, "g", topics=topics[0], settings=AT_ONCE)
            await dead.__aenter__()
        async with Group(session, "g", topics=topics[1], settings=AT_ONCE) as alive:
            await eventually(lambda: len(alive.owned) == 1_500)


async def test_a_process_that_gets_no_thread_gives_up_no_group(
    session: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lack is no fault of what is stored, which all members would lose."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    topics = {"feeds": LARGE_PARTITIONS + 1}
    async with Group(session, "g", topics=topics, settings=AT_ONCE) as group:
        await eventually(lambda: len(group.owned) == LARGE_PARTITIONS + 1)
    assert (await read_group(session, "g")).generation == 2  # entered and left, not begun anew


async def test_a_group_that_does_not_fit_as_plain_text_is_shared_all_the_same(
    zk_chroot: str,
) -> None:
    async with connect(zk_chroot, max_request_bytes=NODE_BYTES + 16_000) as session:
        topics = {"feeds": 2_000}
        async with Group(session, "g", topics=topics, settings=AT_ONCE) as first:
            await eventually(lambda: len(first.owned) == 2_000)
            async with Group(session, "g", topics=topics, settings=AT_ONCE) as second:
                await eventually(lambda: len(first.owned) == len(second.owned) == 1_000)
                assert not first.owned & second.owned
                node = await session.get(znodes.group("g"))
                assert not node.data.startswith(b"{")
            await eventually(lambda: len(first.owned) == 2_000)


@pytest.mark.parametrize("leaves", [True, False], ids=["left", "cancelled"])
async def test_a_large_assignment_does_not_hold_the_loop(session: ZkSession, leaves: bool) -> None:
    """The assignor is still at work when the group has ended."""
    begun, may_end, has_ended = threading.Event(), threading.Event(), threading.Event()

    @cooperative
    def slow(
        counts: Mapping[str, int], members: Sequence[GroupMember]
    ) -> dict[str, list[Partition]]:
        begun.set()
        may_end.wait(DEADLINE_S)  # on the loop, or waited for, it would take so long
        has_ended.set()
        return cooperative_sticky(counts, members)

    async def take_part() -> None:
        topics = {"feeds": 10_000}
        async with Group(session, "g", topics=topics, assignors=[slow], settings=AT_ONCE) as group:
            await (eventually(begun.is_set) if leaves else group.wait())

    try:
        taking_part = asyncio.create_task(take_part())
        await eventually(begun.is_set)
        if not leaves:
            taking_part.cancel()
        await asyncio.wait([taking_part])
        assert taking_part.cancelled() is not leaves
        assert not has_ended.is_set()
        assert not (await read_group(session, "g")).members
    finally:
        may_end.set()
