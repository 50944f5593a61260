"""Letting go of a partition in order, and leaving alone what others hold."""

import asyncio
from contextlib import suppress

from shoal.coordination import OwnerNodes, Ownership, OwnershipListener, ZkSession, prepare
from shoal.coordination.cluster import layout
from tests.integration.coordination.conftest import connect
from tests.support.waiting import DEADLINE_S

ROUND_TRIPS = 20  # far more than it takes to find the node and to do something about it


class Notes:
    """What an owner was told."""

    def __init__(self) -> None:
        self.acquired, self.releasing, self.may_release = (asyncio.Event() for _ in range(3))

    async def on_acquired(self, partition: int, epoch: int) -> None:
        self.acquired.set()

    async def on_released(self, partition: int) -> None:
        self.releasing.set()
        await self.may_release.wait()

    async def on_lost(self, partitions: frozenset[int]) -> None:
        raise AssertionError("the session lives")

    def ownership(self, session: ZkSession, owner_id: str) -> Ownership:
        return Ownership(
            session,
            OwnerNodes(layout.owner, owner_id),
            OwnershipListener(self.on_acquired, self.on_released, self.on_lost),
            reread_s=0.01,
        )


async def test_nobody_owns_a_partition_while_its_old_owner_finishes(zk_chroot: str) -> None:
    notes = Notes()
    async with connect(zk_chroot) as session:
        await prepare(session, 2)
        async with asyncio.timeout(DEADLINE_S), notes.ownership(session, "old") as ownership:
            ownership.set_wanted({1})
            await notes.acquired.wait()
            ownership.set_wanted(())
            await notes.releasing.wait()
            assert await session.exists(layout.owner(1))
            notes.may_release.set()
        assert not await session.exists(layout.owner(1))


async def test_what_is_wanted_while_the_block_is_left_does_not_keep_it_open(
    zk_chroot: str,
) -> None:
    notes = Notes()
    async with connect(zk_chroot) as session, asyncio.timeout(DEADLINE_S):
        await prepare(session, 2)
        ownership = await notes.ownership(session, "one").__aenter__()
        ownership.set_wanted({1})
        await notes.acquired.wait()
        leaving = asyncio.create_task(ownership.__aexit__(None, None, None))
        await notes.releasing.wait()
        ownership.set_wanted({0, 1})  # as a group does that hears of an assignment now
        notes.may_release.set()
        await leaving
        assert not await session.exists(layout.owner(1))


class Swallowing(Notes):
    """A listener that ends in order when it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = frozenset[int]()

    async def on_acquired(self, partition: int, epoch: int) -> None:
        self.acquired.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async def on_lost(self, partitions: frozenset[int]) -> None:
        self.lost |= partitions


async def test_a_callback_that_swallows_its_cancellation_holds_up_no_loss(zk_chroot: str) -> None:
    notes = Swallowing()
    async with connect(zk_chroot) as session:
        await prepare(session, 2)
        async with notes.ownership(session, "one") as ownership:
            ownership.set_wanted({1})
            await notes.acquired.wait()
            ownership.set_wanted(())  # so that it is not acquired anew
            try:
                async with asyncio.timeout(DEADLINE_S):
                    await ownership.give_up(ownership.owned(), 60.0)
            finally:
                notes.may_release.set()
            assert notes.lost == {1}


async def test_an_exit_leaves_no_loop_whenever_it_is_cancelled(zk_chroot: str) -> None:
    notes = Notes()
    notes.may_release.set()
    async with connect(zk_chroot) as session, asyncio.timeout(DEADLINE_S):
        await prepare(session, 2)
        for turns in range(1, 25):  # by then it has begun, and is over
            ownership = await notes.ownership(session, f"after {turns}").__aenter__()
            await asyncio.sleep(0)
            leaving = asyncio.create_task(ownership.__aexit__(None, None, None))
            for _ in range(turns):
                await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            left = [task.get_name() for task in asyncio.all_tasks()]
            assert not [name for name in left if f"after {turns}" in name]
            ownership.set_wanted({1})
            await asyncio.sleep(0)
            assert not notes.acquired.is_set()
            assert "hold partition 1" not in [task.get_name() for task in asyncio.all_tasks()]


async def test_owner_node_of_another_session_is_left_alone(zk_chroot: str) -> None:
    notes = Notes()
    notes.may_release.set()
    async with (
        connect(zk_chroot) as theirs,
        connect(zk_chroot) as ours,
    ):
        await prepare(theirs, 2)
        epoch = (await theirs.create(layout.owner(1), b"{}", ephemeral=True)).czxid
        async with asyncio.timeout(DEADLINE_S), notes.ownership(ours, "ours") as ownership:
            ownership.set_wanted({1})
            for _ in range(ROUND_TRIPS):
                await ours.sync("/")
            assert (await theirs.get(layout.owner(1))).stat.czxid == epoch
            assert not notes.acquired.is_set()
            await theirs.delete(layout.owner(1))
            await notes.acquired.wait()
