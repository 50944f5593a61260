"""A member owns what its group assigns, and can leave for a while without ending its block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from shoal.coordination import (
    FairShare,
    GroupSettings,
    OwnerNodes,
    OwnershipListener,
    Partition,
    ZkSession,
)
from shoal.coordination.session.nodes import Create, Delete
from tests.integration.coordination.conftest import connect, eventually

COUNT = 6
ALL = {Partition("rooms", index) for index in range(COUNT)}
SETTINGS = GroupSettings(initial_rebalance_delay_s=0.0, reread_s=1.0)


def owner_path(partition: Partition) -> str:
    return f"/rooms/{partition.index}/owner"


class Process:
    """One member, and what it has been told."""

    def __init__(
        self, session: ZkSession, name: str, count: int = COUNT, settings: GroupSettings = SETTINGS
    ) -> None:
        self.session = session
        self.epochs: dict[Partition, int] = {}
        self.share = FairShare(
            session,
            "rooms",
            {"rooms": count},
            OwnerNodes(owner_path, name, {"address": name}),
            OwnershipListener(self._acquired, self._released, self._lost),
            settings=settings,
        )

    async def _acquired(self, partition: Partition, epoch: int) -> None:
        self.epochs[partition] = epoch

    async def _released(self, partition: Partition) -> None:
        assert await self.session.exists(owner_path(partition))  # still ours while this runs
        del self.epochs[partition]

    async def _lost(self, partitions: frozenset[Partition]) -> None:
        for partition in partitions:
            self.epochs.pop(partition, None)


@asynccontextmanager
async def process(session: ZkSession, name: str, *options: Any) -> AsyncIterator[Process]:
    member = Process(session, name, *options)
    async with member.share:
        yield member
    assert not member.epochs


async def test_member_that_leaves_gives_everything_up_and_shares_again_when_it_joins(
    session: ZkSession, zk_chroot: str
) -> None:
    async with process(session, "one") as one:
        await eventually(lambda: one.epochs.keys() == ALL)
        async with connect(zk_chroot) as other, process(other, "two") as two:
            await eventually(lambda: len(one.epochs) == len(two.epochs) == COUNT // 2)
            before = dict(one.epochs)
            await one.share.leave()
            assert not one.share.has_joined
            assert not one.epochs
            assert not one.share.owned()
            await eventually(lambda: two.epochs.keys() == ALL)
            assert all(two.epochs[partition] > epoch for partition, epoch in before.items())
            await one.share.leave()  # nothing is left to do
            await one.share.join()
            assert one.share.has_joined
            await eventually(lambda: len(one.epochs) == len(two.epochs) == COUNT // 2)
            assert one.share.owned() == one.epochs
            await one.share.leave()  # leaving the block is not a second leaving


async def test_owner_node_has_the_data_and_confirms_the_owner(
    session: ZkSession, zk_chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with process(session, "one") as one, connect(zk_chroot) as other:
        await eventually(lambda: one.epochs.keys() == ALL)
        first, second = Partition("rooms", 0), Partition("rooms", 1)
        node = await other.get(owner_path(first))
        assert b'"address": "one"' in node.data
        assert node.stat.czxid == one.epochs[first]
        assert await one.share.confirmed([first]) == {first: one.epochs[first]}
        assert await one.share.confirmed([]) == {}
        # Another process puts its own node there, and no watch has fired yet.
        known = one.share._ownership.owned()
        with monkeypatch.context() as patch:
            patch.setattr(one.share._ownership, "owned", lambda: known)
            # Both at once: the owner creates a node again as soon as it is gone.
            theirs = Create(owner_path(second), b"{}", ephemeral=True)
            await other.multi([Delete(owner_path(second)), theirs])
            assert await one.share.confirmed([first, second]) == {first: known[0]}
        await other.delete(owner_path(second))
        await eventually(lambda: one.epochs.keys() == ALL)
    stats = [await session.exists(owner_path(partition)) for partition in ALL]
    assert stats == [None] * COUNT


@pytest.mark.parametrize(("first", "second"), [(2, COUNT), (COUNT, 2), (1, COUNT), (0, COUNT)])
async def test_members_that_know_different_numbers_leave_no_partition_without_an_owner(
    session: ZkSession, zk_chroot: str, first: int, second: int
) -> None:
    other_settings = replace(SETTINGS, rebalance_timeout_s=99.0, client_id="other")
    async with process(session, "one", first) as one, connect(zk_chroot) as other:
        await eventually(lambda: len(one.epochs) == first)
        async with process(other, "two", second, other_settings) as two:
            small, known = (one if first < second else two), min(first, second)
            await eventually(lambda: len(small.epochs) == known)
            await eventually(lambda: one.epochs.keys() | two.epochs.keys() == ALL)
            assert all(each.index < known for each in small.epochs)
            assert not one.epochs.keys() & two.epochs.keys()
        await eventually(lambda: len(one.epochs) == first)


async def test_leader_of_an_earlier_version_stops_no_member_that_knows_fewer_partitions(
    session: ZkSession,
) -> None:
    async with process(session, "one", 2) as one:
        await eventually(lambda: len(one.epochs) == 2)
        # As a leader assigns that looks at the names of topics alone.
        await one.share.on_assigned(frozenset(ALL))
        await one.share.on_revoked(frozenset(ALL))
        await eventually(lambda: not one.epochs)
        await one.share.on_assigned(frozenset(ALL))
        await eventually(lambda: len(one.epochs) == 2)
        await one.share.on_lost(frozenset(ALL))
