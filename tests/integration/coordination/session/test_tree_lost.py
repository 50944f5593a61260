"""ZooKeeper comes back empty, or half of the tree is deleted: everybody goes on by themselves."""

import asyncio

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import (
    Election,
    ElectionListener,
    Group,
    Membership,
    NoNode,
    Notifications,
    TaskQueue,
    TreeKeeper,
    ZkSession,
    notify,
    prepare,
    znodes,
)
from shoal.coordination.cluster import layout
from shoal.coordination.errors import CoordinationError, Mismatch
from shoal.coordination.messages import Consumer, Producer
from tests.integration.coordination.conftest import connect
from tests.integration.coordination.given import entry, owner
from tests.integration.coordination.group.group_bench import QUICK
from tests.support.waiting import DEADLINE_S, eventually
from tests.support.zookeeper.server import delete_all, wipe


async def goes_through(queue: TaskQueue, task: int) -> None:
    """Put an entry and claim it, whatever has to be made anew for that."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await queue.put([entry(task)])
                claims = await queue.claim("default", 10, "w")
            except CoordinationError:
                await asyncio.sleep(0.05)
                continue
            if task in [claim.entry.task_instance_id for claim in claims]:
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("chroot", ["", "/shoal"])
async def test_everybody_goes_on_after_the_ensemble_was_wiped(
    own_server: ZooKeeperServer, chroot: str
) -> None:
    notified: list[int] = []
    async with (
        connect(own_server.address + chroot, session_timeout_s=4.0) as session,
        connect(own_server.address + chroot, session_timeout_s=4.0) as other,
    ):
        # Zxids that the new tree will not see again for long.
        for _ in range(500):
            await session.sync("/")
        await prepare(session, 4)
        async with (
            TreeKeeper(session, 4),
            Notifications(session, notified.append) as notifications,
            Membership(session, layout.WORKERS, "w", {"x": 1}),
            owner(session, "m1", range(4)) as recorder,
            Group(session, "g", topics={"t": 4}, settings=QUICK) as group,
            Group(other, "g", topics={"t": 4}, settings=QUICK) as second,
        ):
            notifications.subscribe([0])
            queue = TaskQueue(session)
            await goes_through(queue, 1)
            await eventually(lambda: len(group.owned) == len(second.owned) == 2)
            await eventually(lambda: len(recorder.all("acquired")) == 4)

            await asyncio.to_thread(wipe, own_server)

            await eventually(lambda: len(recorder.all("acquired")) == 8)
            assert {p for lost in recorder.all("lost") for p in lost} == {0, 1, 2, 3}
            await goes_through(queue, 2)
            await eventually(lambda: len(group.owned) == len(second.owned) == 2)
            async with asyncio.timeout(DEADLINE_S):
                while not await session.exists(znodes.member(layout.WORKERS, "w")):
                    await asyncio.sleep(0.05)
            assert await prepare(other, 99) == 4
            notified.clear()
            await eventually_notified(other, notified)


async def eventually_notified(session: ZkSession, notified: list[int]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not notified:
            await notify(session, [0])
            await asyncio.sleep(0.05)


async def test_everybody_goes_on_after_the_tree_was_deleted(
    session: ZkSession, zk_chroot: str
) -> None:
    """The sessions live, so nobody is told."""
    await prepare(session, 4)
    async with (
        connect(zk_chroot) as other,
        TreeKeeper(session, 4, reread_s=0.5),
        Membership(session, layout.WORKERS, "w", {}),
        owner(session, "m1", range(4), reread_s=0.5) as recorder,
        Group(session, "g", topics={"t": 4}, settings=QUICK) as group,
    ):
        queue = TaskQueue(other)
        await goes_through(queue, 1)
        await eventually(lambda: len(recorder.all("acquired")) == 4 and len(group.owned) == 4)
        before, epochs = group.member_id, dict(recorder.ownership.owned())
        await asyncio.to_thread(delete_all, zk_chroot)
        await eventually(
            lambda: (
                len(now := recorder.ownership.owned()) == 4
                and all(now[partition] > epoch for partition, epoch in epochs.items())
            )
        )
        await eventually(lambda: group.member_id != before and len(group.owned) == 4)
        await goes_through(queue, 2)
        async with asyncio.timeout(DEADLINE_S):
            while not await session.exists(znodes.member(layout.WORKERS, "w")):
                await asyncio.sleep(0.05)


async def test_election_and_messages_go_on_after_the_ensemble_was_wiped(
    own_server: ZooKeeperServer,
) -> None:
    async with (
        connect(own_server.address, session_timeout_s=4.0) as session,
        Election(session, "e", "me", ElectionListener()) as election,
        Consumer(session, "mail", "me", group_settings=QUICK, partitions=2) as consumer,
        Producer(session, "mail", partitions=2) as producer,
    ):
        await producer.put("k", b"one", message_id="1")
        async with asyncio.timeout(DEADLINE_S):
            delivery = await anext(consumer)
        assert delivery.payload == b"one"
        await delivery.ack()
        await eventually(lambda: election.epoch)
        epoch = election.epoch

        await asyncio.to_thread(wipe, own_server)

        await eventually(lambda: election.epoch not in (None, epoch))
        async with asyncio.timeout(DEADLINE_S):
            await producer.put("k", b"two", message_id="2")
            assert (await anext(consumer)).payload == b"two"


async def test_damaged_config_is_written_anew(tree: ZkSession, zk_chroot: str) -> None:
    for data in (b"", b"\xff\x00 not json", b"[" * 100_000, b'{"version": 99, "partitions": 1}'):
        await tree.set(layout.CONFIG, data)
        if b"version" not in data:
            assert await prepare(tree, 128) == 4  # counted in the tree
            await tree.set(layout.CONFIG, data)
        else:
            with pytest.raises(Mismatch, match="set it to"):
                await prepare(tree, 128)
        async with TreeKeeper(tree, 4, reread_s=0.2), asyncio.timeout(DEADLINE_S):
            while (await tree.get(layout.CONFIG)).data != layout.config(4):
                await asyncio.sleep(0.02)


async def test_a_tree_that_is_not_ours_is_left_alone(session: ZkSession) -> None:
    """As Kafka's, which has a /config, too."""
    await session.create("/config")
    await session.create("/config/topics")
    with pytest.raises(Mismatch):
        await prepare(session, 4)
    assert await session.exists("/config/topics")
    with pytest.raises(NoNode):
        await session.get(znodes.QUARANTINE)


async def test_ownership_alone_makes_its_place_anew(session: ZkSession) -> None:
    """Users of the library have no keeper of a tree."""
    async with owner(session, "m1", [0]) as recorder:
        await eventually(lambda: recorder.all("acquired"))
        await session.delete(layout.owner(0))
        await session.delete(layout.partition(0))
        await session.delete(layout.PARTITIONS)
        await eventually(lambda: len(recorder.all("acquired")) == 2)
