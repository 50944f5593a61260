"""A member owns what its group assigns, and can leave for a while without ending its block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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

    def __init__(self, session: ZkSession, name: str) -> None:
        self.session = session
        self.epochs: dict[Partition, int] = {}
        self.share = FairShare(
            session,
            "rooms",
            {"rooms": COUNT},
            OwnerNodes(owner_path, name, {"address": name}),
            OwnershipListener(self._acquired, self._released, self._lost),
            settings=SETTINGS,
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
async def process(session: ZkSession, name: str) -> AsyncIterator[Process]:
    member = Process(session, name)
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
