"""Partitions have one owner at a time, and each ownership a higher epoch than the one before."""

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import replace

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import (
    NotOwner,
    OwnerNodes,
    Owners,
    Ownership,
    SessionState,
    ZkSession,
    prepare,
)
from shoal.coordination.cluster import layout
from tests.integration.coordination.conftest import appears, connect
from tests.integration.coordination.given import Recorder, owner
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually
from tests.support.zookeeper.server import expire_session

LEAVE_S = 1.5 * DEADLINE_S  # for tests whose blocks may not be left after a wait in vain


@pytest.fixture
async def tree(session: ZkSession) -> ZkSession:
    assert await prepare(session, 128) == 128
    return session


async def test_all_partitions_are_acquired_and_released_together(
    tree: ZkSession, zk_chroot: str
) -> None:
    async with owner(tree, "m1", range(128)) as recorder:
        await eventually(lambda: len(recorder.all("acquired")) == 128)
        assert dict(recorder.all("acquired")) == recorder.ownership.owned()
        owners = await Owners(tree).all_owners(128)
        assert {p: info.epoch for p, info in owners.items()} == recorder.ownership.owned()
    assert sorted(recorder.all("released")) == list(range(128))
    assert await Owners(tree).all_owners(128) == {}
    with pytest.raises(NotOwner, match="partition 5"):
        recorder.ownership.epoch_of(5)


async def test_partition_is_handed_over_once_and_the_epoch_grows(
    tree: ZkSession, zk_chroot: str
) -> None:
    async with (
        connect(zk_chroot) as other,
        owner(tree, "m1", {7}) as first,
    ):
        await eventually(lambda: first.all("acquired"))
        async with owner(other, "m2", {7}) as second:
            for _ in range(3):
                await other.sync("/")
            assert not second.all("acquired")
            first.ownership.set_wanted(set())
            await eventually(lambda: second.all("acquired"))
            assert first.when("released") < second.when("acquired")
            (_, old), (_, new) = first.all("acquired")[0], second.all("acquired")[0]
            assert new > old
            assert not first.ownership.owned()
            first.ownership.set_wanted({7})  # and back, when the other leaves
        await eventually(lambda: len(first.all("acquired")) == 2)
        assert first.all("acquired")[1][1] > new
    assert not first.all("lost")
    assert not second.all("lost")


async def test_who_gives_up_can_wait_until_the_owner_node_is_gone(tree: ZkSession) -> None:
    async with owner(tree, "m1", {1, 2}) as recorder:
        await eventually(lambda: set(recorder.ownership.owned()) == {1, 2})
        recorder.ownership.set_wanted({2})
        await recorder.ownership.released({1, 2, 3})  # 2 is still wanted, 3 was never ours
        assert recorder.all("released") == [1]
        assert set(await Owners(tree).all_owners(128)) == {2}


async def test_flipping_assignments_end_in_the_last_one(tree: ZkSession) -> None:
    async with owner(tree, "m1", {1}) as recorder:
        for _ in range(5):
            recorder.ownership.set_wanted({2})
            recorder.ownership.set_wanted({1, 2})
            await asyncio.sleep(0)
        await eventually(lambda: set(recorder.ownership.owned()) == {1, 2})
        recorder.ownership.set_wanted({3})
        await eventually(lambda: set(recorder.ownership.owned()) == {3})


async def test_expired_session_loses_all_and_owns_again_with_higher_epochs(
    tree: ZkSession, zookeeper: ZooKeeperServer
) -> None:
    async with owner(tree, "m1", {1, 2}) as recorder:
        await eventually(lambda: len(recorder.all("acquired")) == 2)
        before = dict(recorder.ownership.owned())
        await expire_session(tree, zookeeper)
        await eventually(lambda: len(recorder.all("acquired")) == 4)
        assert recorder.all("lost") == [frozenset({1, 2})]
        after = recorder.ownership.owned()
        assert all(after[partition] > before[partition] for partition in (1, 2))
        assert not recorder.all("released")


async def test_owner_that_is_cut_off_stops_before_another_can_begin(
    tree: ZkSession, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    async with (
        connect(zk_proxied, session_timeout_s=6.0, close_timeout_s=1.0) as session,
        owner(session, "cut off", {1}) as first,
        owner(tree, "successor", set()) as second,
    ):
        await eventually(lambda: first.all("acquired"))
        owned_meanwhile: list[dict[int, int]] = []
        # By the clock, whether or not this loop has come to its callbacks since.
        second.on_acquired = lambda: owned_meanwhile.append(dict(first.ownership.owned()))
        second.ownership.set_wanted({1})
        zk_proxy.freeze()
        await eventually(lambda: owned_meanwhile)
        assert owned_meanwhile == [{}]
        assert session.state is not SessionState.LOST  # it had to find out by its own clock
        await eventually(lambda: first.all("lost") == [frozenset({1})])
        zk_proxy.heal()


async def test_session_that_goes_on_after_doubt_gets_a_new_epoch(
    tree: ZkSession, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    async with (
        connect(zk_proxied, session_timeout_s=6.0) as session,
        owner(session, "m1", {1}) as recorder,
    ):
        await eventually(lambda: recorder.all("acquired"))
        zk_proxy.swallow_replies = True  # the server hears it, so the session goes on
        await eventually(lambda: recorder.all("lost"))
        zk_proxy.drop()
        zk_proxy.heal()
        await eventually(lambda: len(recorder.all("acquired")) == 2)
        assert session.generation == 1
        (_, old), (_, new) = recorder.all("acquired")
        assert new > old
        assert (await tree.get("/partitions/001/owner")).stat.czxid == new


async def test_create_whose_reply_was_lost_is_ours(
    tree: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    async with owner(proxied, "m1", set()) as recorder:
        zk_proxy.swallow_replies = True
        recorder.ownership.set_wanted({1})
        await appears(tree, "/partitions/001/owner")
        czxid = (await tree.get("/partitions/001/owner")).stat.czxid
        assert not recorder.all("acquired")
        zk_proxy.drop()
        zk_proxy.heal()
        await eventually(lambda: recorder.all("acquired"))
        assert recorder.all("acquired") == [(1, czxid)]
        assert not recorder.all("lost")


async def test_failing_to_take_up_work_is_tried_again(tree: ZkSession) -> None:
    async with owner(tree, "m1", set()) as recorder:
        recorder.fail_acquiring = 1
        recorder.ownership.set_wanted({1})
        await eventually(lambda: len(recorder.all("acquired")) == 2)
        (_, failed), (_, worked) = recorder.all("acquired")
        assert worked > failed
        assert recorder.ownership.owned() == {1: worked}


async def test_takeover_does_not_wait_after_a_release(tree: ZkSession, zk_chroot: str) -> None:
    async with (
        connect(zk_chroot) as other,
        owner(tree, "heir", set(), takeover_delay_s=3600.0) as heir,
        owner(other, "first", {1, 2}) as first,
    ):
        await eventually(lambda: len(first.all("acquired")) == 2)
        first.ownership.set_wanted({2})
        await eventually(lambda: first.all("released") == [1])
        heir.ownership.set_wanted({1, 2, 3})  # released, still owned, never owned
        await eventually(lambda: len(heir.all("acquired")) == 2)
        assert {p for p, _ in heir.all("acquired")} == {1, 3}


async def test_takeover_waits_after_an_owner_that_vanished(
    tree: ZkSession, zk_chroot: str, zookeeper: ZooKeeperServer
) -> None:
    delay_s = 0.8
    async with (
        connect(zk_chroot) as other,
        owner(tree, "heir", set(), takeover_delay_s=delay_s) as heir,
        owner(other, "first", {2}) as first,
    ):
        await eventually(lambda: first.all("acquired"))
        heir.ownership.set_wanted({2})
        first.ownership._wanted = frozenset()  # it will not come back by itself
        expired_at = time.monotonic()
        await expire_session(other, zookeeper)
        await eventually(lambda: heir.all("acquired"))
        assert time.monotonic() - expired_at > delay_s


async def test_owners_are_looked_up_and_forgotten_when_they_change(
    tree: ZkSession, zk_chroot: str
) -> None:
    async with connect(zk_chroot) as other:
        owners = Owners(other)
        assert await owners.owner_of(1) is None
        async with owner(tree, "m1", {1}) as recorder:
            await eventually(lambda: recorder.all("acquired"))
            info = await owners.owner_of(1)
            assert info is not None
            assert (info.owner_id, info.address) == ("m1", "m1:1")
            assert info.epoch == recorder.ownership.epoch_of(1)
            assert await owners.owner_of(1) is info  # from memory
        await other.sync("/")
        assert await owners.owner_of(1) is None


async def test_owner_that_changes_while_it_is_read_is_not_remembered(tree: ZkSession) -> None:
    data = b'{"owner_id": "m1", "address": "h:1"}'
    await tree.create("/partitions/001/owner", data, ephemeral=True)
    owners = Owners(tree)
    reading = asyncio.create_task(owners.owner_of(1))
    await asyncio.sleep(0)  # now the reading is sent
    deleting = tree.submit_delete("/partitions/001/owner")
    threading.Event().wait(0.1)  # the loop is busy, so all answers are taken in one go
    await deleting
    info = await reading
    assert info is not None
    assert info.owner_id == "m1"  # that was true when it was read
    assert await owners.owner_of(1) is None


async def test_what_was_lost_and_is_not_wanted_any_more_is_left_to_others(
    session: ZkSession, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    """The session was in doubt and goes on, so its nodes do not go by themselves."""
    async with connect(zk_proxied, session_timeout_s=10.0, name="doubted") as doubted:
        recorder = Recorder(doubted, "a")
        async with recorder.ownership as ownership:
            ownership.set_wanted([1, 2])
            await eventually(lambda: len(recorder.all("acquired")) == 2)
            before, session_id = ownership.owned(), doubted.session_id
            zk_proxy.freeze()
            await eventually(lambda: recorder.all("lost"))
            ownership.set_wanted([2])
            zk_proxy.heal()
            await eventually(lambda: ownership.owned().keys() == {2})
            async with asyncio.timeout(DEADLINE_S):
                while (owners := await Owners(session).all_owners(4)).keys() != {2}:
                    await asyncio.sleep(0.01)
            assert owners[2].epoch > before[2]
            assert doubted.session_id == session_id


class Stuck(Recorder):
    """Never finishes what it is to release."""

    async def _released(self, partition: int) -> None:
        self._note("releasing", partition)
        await asyncio.Event().wait()


async def test_waiting_for_a_release_ends_when_the_ownership_is_lost(
    session: ZkSession, zookeeper: ZooKeeperServer
) -> None:
    recorder = Stuck(session, "a")
    async with recorder.ownership as ownership:
        ownership.set_wanted([1])
        await eventually(lambda: recorder.all("acquired"))
        ownership.set_wanted([])
        releasing = asyncio.create_task(ownership.released([1]))
        await eventually(lambda: recorder.all("releasing"))
        assert not releasing.done()
        await expire_session(session, zookeeper)
        async with asyncio.timeout(DEADLINE_S):
            await releasing
        assert recorder.all("lost") == [{1}]


async def test_owner_nodes_are_watched_again_after_an_error_in_the_loop_that_watches_them(
    tree: ZkSession, zk_chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = asyncio.Event()
    async with (
        connect(zk_chroot) as other,
        owner(tree, "m1", {7}, reread_s=1e6) as recorder,
    ):
        nodeless = recorder.ownership._nodeless

        async def fail_once(epochs: Mapping[int, int]) -> list[int]:
            if epochs and not failed.is_set():
                failed.set()
                raise KeyError("junk")
            return await nodeless(epochs)

        monkeypatch.setattr(recorder.ownership, "_nodeless", fail_once)
        async with asyncio.timeout(DEADLINE_S):
            await failed.wait()
        await other.delete(layout.owner(7))
        await eventually(lambda: len(recorder.all("acquired")) == 2)
    assert recorder.all("lost") == [frozenset({7})]


class Room:
    """The paths of owner nodes; asking for one fails while ``is_closed``."""

    def __init__(self) -> None:
        self.is_closed = False
        self.refused = 0

    def path(self, partition: int) -> str:
        if self.is_closed:
            self.refused += 1
            raise RuntimeError("the room is closed")
        return f"/room/{partition}/owner"


def room_owner(session: ZkSession, owner_id: str, room: Room) -> Recorder:
    recorder = Recorder(session, owner_id)
    nodes = OwnerNodes(room.path, owner_id)
    recorder.ownership = Ownership(session, nodes, recorder.listener)
    return recorder


async def test_hold_that_fails_unexpectedly_gives_its_turn_and_is_tried_again(
    session: ZkSession,
) -> None:
    room = Room()
    first, second = room_owner(session, "a", room), room_owner(session, "b", Room())
    async with (
        asyncio.timeout(LEAVE_S),
        first.ownership as failing,
        second.ownership as other,
    ):
        failing.set_wanted({2})
        await eventually(failing.owned)  # so the next hold begins at once
        failing.set_wanted({1, 2})
        room.is_closed = True
        await eventually(lambda: room.refused)
        other.set_wanted({1})
        await eventually(other.owned)
        room.is_closed = False
        other.set_wanted(())
        await eventually(lambda: set(failing.owned()) == {1, 2})
        assert failing.epoch_of(1) > second.all("acquired")[0][1]


async def test_hold_that_fails_at_its_release_deletes_its_node_later(session: ZkSession) -> None:
    room = Room()
    recorder = room_owner(session, "a", room)
    async with asyncio.timeout(LEAVE_S), recorder.ownership as ownership:
        ownership.set_wanted({1})
        await eventually(lambda: recorder.all("acquired"))
        room.is_closed = True
        ownership.set_wanted(())
        await eventually(lambda: room.refused)
        assert await session.exists("/room/1/owner")
        room.is_closed = False
        await ownership.released({1})
        assert await session.exists("/room/1/owner") is None
    assert recorder.all("released") == [1]


async def test_block_of_a_hold_that_always_fails_is_left(session: ZkSession) -> None:
    room = Room()
    recorder = room_owner(session, "a", room)
    async with asyncio.timeout(LEAVE_S):
        async with recorder.ownership as ownership:
            ownership.set_wanted({1})
            await eventually(lambda: recorder.all("acquired"))
            room.is_closed = True
    assert room.refused > 0


async def test_callback_that_awaits_a_cancelled_task_is_tried_again(session: ZkSession) -> None:
    ended = asyncio.create_task(asyncio.Event().wait())
    ended.cancel()
    acquired: list[int] = []

    async def on_acquired(_: int, epoch: int) -> None:
        acquired.append(epoch)
        if len(acquired) == 1:
            await ended

    recorder = Recorder(session, "a")
    listener = replace(recorder.listener, on_acquired=on_acquired)
    nodes = OwnerNodes(Room().path, "a")
    async with asyncio.timeout(LEAVE_S), Ownership(session, nodes, listener) as ownership:
        ownership.set_wanted({1})
        await eventually(lambda: len(acquired) == 2)
        assert ownership.owned() == {1: acquired[1]}


async def test_partition_whose_path_fails_changes_nothing(session: ZkSession) -> None:
    def path(partition: int) -> str:
        if partition == 2:
            raise ValueError("no such room")
        return f"/room/{partition}/owner"

    recorder = Recorder(session, "a")
    recorder.ownership = Ownership(session, OwnerNodes(path, "a"), recorder.listener)
    async with asyncio.timeout(LEAVE_S), recorder.ownership as ownership:
        ownership.set_wanted({1})
        await eventually(ownership.owned)
        with pytest.raises(ValueError, match="no such room"):
            ownership.set_wanted({2, 3})
        assert set(ownership.owned()) == {1}
    assert recorder.all("released") == [1]


async def test_owner_leaves_although_giving_up_was_cancelled_while_on_lost_ran(
    tree: ZkSession,
) -> None:
    losing, may_end, ended = (asyncio.Event() for _ in range(3))

    async def on_lost(_: frozenset[int]) -> None:
        losing.set()
        await may_end.wait()
        ended.set()

    recorder = Recorder(tree, "m1")
    listener = replace(recorder.listener, on_lost=on_lost)
    ownership = Ownership(tree, OwnerNodes(layout.owner, "m1"), listener)
    await ownership.__aenter__()
    ownership.set_wanted({1})
    await eventually(ownership.owned)
    giving_up = asyncio.create_task(ownership.give_up(dict(ownership.owned()), 0.0))
    await losing.wait()
    giving_up.cancel()
    await asyncio.wait([giving_up])
    assert giving_up.cancelled()
    leaving = asyncio.create_task(ownership.__aexit__())
    may_end.set()
    # Not a timeout around the leaving: where it hangs, cancelling does not end it either.
    await asyncio.wait([leaving], timeout=DEADLINE_S)
    assert leaving.done()
    assert ended.is_set()
    assert not await tree.exists(layout.owner(1))
