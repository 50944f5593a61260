"""Claims that become those of other tasks: at once or not at all, and nothing is held twice."""

import asyncio

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import QueueEntry, TaskClaim, TaskQueue, ZkSession
from tests.integration.coordination.conftest import claim_request, connect
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually
from tests.support.zookeeper.server import expire_session


def entry(task: int) -> QueueEntry:
    return QueueEntry("default", 2, 1, 2, task, 0)


async def holding(queue: TaskQueue, count: int) -> list[TaskClaim]:
    """Let ``queue`` claim tasks 0 to ``count`` - 1."""
    await queue.put([entry(task) for task in range(count)])
    claims = await queue.claim("default", count, "w")
    assert len(claims) == count
    return claims


def behind(before: TaskClaim, *tasks: int) -> list[TaskClaim]:
    """Return the claims that ``before`` is to become."""
    return [TaskClaim(entry(task), "w", 0, before.generation) for task in tasks]


async def test_claims_become_those_of_other_tasks(queue: TaskQueue, tree: ZkSession) -> None:
    old = await holding(queue, 3)
    new = behind(old[0], 10, 11, 12)
    assert await queue.transfer({old[0]: new[:2], old[2]: new[2:]}) == set(new)
    assert await queue.claims() == dict.fromkeys([1, 10, 11, 12], "w")
    assert [queue.holds(claim) for claim in (*old, *new)] == [False, True, False, True, True, True]
    for claim in new:
        stat = await tree.exists(claim.path)
        assert stat is not None
        assert stat.czxid == claim.epoch


async def test_more_claims_than_fit_into_one_transaction_are_transferred(queue: TaskQueue) -> None:
    old = await holding(queue, 200)
    moves = {claim: behind(claim, claim.task_instance_id + 1000) for claim in old}
    assert len(await queue.transfer(moves)) == 200
    assert set(await queue.claims()) == set(range(1000, 1200))


async def test_both_are_never_missing_at_once(queue: TaskQueue, zk_chroot: str) -> None:
    """A reader of the old claim before the new one finds one of them, at any time."""
    (old,) = await holding(queue, 1)
    async with connect(zk_chroot) as other:
        theirs = TaskQueue(other)
        for task in range(30):
            (new,) = behind(old, task + 1)
            moving = asyncio.create_task(queue.transfer({old: [new]}))
            while not moving.done():
                found = await theirs.claimed([task])
                assert found or await theirs.claimed([task + 1])
            assert await moving == {new}
            old = new


async def test_claim_that_somebody_else_holds_still_is_waited_for(
    queue: TaskQueue, zk_chroot: str
) -> None:
    async with connect(zk_chroot) as other:
        theirs = TaskQueue(other)
        old = await holding(queue, 2)
        await theirs.put([entry(10)])  # of an earlier life
        earlier = await theirs.claim("default", 1, "other")
        new = behind(old[0], 10, 11)
        moving = asyncio.create_task(queue.transfer({old[0]: new[:1], old[1]: new[1:]}))
        async with asyncio.timeout(DEADLINE_S):
            while 11 not in await queue.claims():
                assert not moving.done()
        # The other one went on alone. Until ours is there the old one stays.
        assert await queue.claims() == {0: "w", 11: "w", 10: "other"}
        await queue.release(old[:1], ended=True)
        assert await queue.claimed([0]) == {0}
        await theirs.release(earlier)
        assert await moving == set(new)
        assert await queue.claims() == {10: "w", 11: "w"}


async def test_lost_answer_does_not_count_as_a_failure(
    queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    theirs = TaskQueue(proxied)
    old = await holding(theirs, 2)
    new = behind(old[0], 10, 11)
    zk_proxy.swallow_from = claim_request()
    moving = asyncio.create_task(theirs.transfer({old[0]: new[:1], old[1]: new[1:]}))
    async with asyncio.timeout(DEADLINE_S):
        while not await queue.claimed([10]):
            assert not moving.done()
    zk_proxy.drop()
    zk_proxy.heal()
    assert await moving == set(new)
    assert [theirs.holds(claim) for claim in (*old, *new)] == [False, False, True, True]
    await theirs.release(new)
    assert await queue.claims() == {}


async def test_repeated_transfer_spares_the_claim_that_somebody_has_made_since(
    queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    """The first try was carried out, and its answer lost; then another claims the old task."""
    theirs = TaskQueue(proxied)
    (old,) = await holding(theirs, 1)
    new = behind(old, 10)
    zk_proxy.swallow_from = claim_request()
    moving = asyncio.create_task(theirs.transfer({old: new}))
    async with asyncio.timeout(DEADLINE_S):
        while not await queue.claimed([10]):
            assert not moving.done()
    await queue.put([entry(0)])
    assert len(await queue.claim("default", 1, "another")) == 1
    zk_proxy.drop()
    zk_proxy.heal()
    async with asyncio.timeout(DEADLINE_S):
        assert await moving == set(new)
    assert await queue.claims() == {0: "another", 10: "w"}


async def test_nothing_is_transferred_into_another_session(
    queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy, zookeeper: ZooKeeperServer
) -> None:
    theirs = TaskQueue(proxied)
    old = await holding(theirs, 2)
    zk_proxy.cut()
    moves = {claim: behind(claim, claim.task_instance_id + 10) for claim in old}
    moving = asyncio.create_task(theirs.transfer(moves))
    await expire_session(proxied, zookeeper)
    zk_proxy.heal()
    assert await moving == set()
    assert await queue.claims() == {}


async def test_claim_that_is_not_ours_is_not_transferred(queue: TaskQueue, tree: ZkSession) -> None:
    old = await holding(queue, 2)
    await tree.delete(old[0].path)
    new = behind(old[0], 10, 11)
    assert await queue.transfer({old[0]: new[:1], old[1]: new[1:]}) == set(new[1:])
    assert await queue.claims() == {11: "w"}


async def test_claim_of_somebody_else_is_not_taken_for_ours(
    queue: TaskQueue, tree: ZkSession, zk_chroot: str
) -> None:
    """Ours is gone, and the other task is claimed by its rightful worker."""
    (old,) = await holding(queue, 1)
    await tree.delete(old.path)
    async with connect(zk_chroot) as other:
        theirs = TaskQueue(other)
        await theirs.put([entry(10)])
        await theirs.claim("default", 1, "other")
        (new,) = behind(old, 10)
        assert await queue.transfer({old: [new]}) == set()
        assert not queue.holds(new)
        assert await queue.claims() == {10: "other"}


async def test_claim_that_nobody_wants_any_more_goes_when_it_has_come(queue: TaskQueue) -> None:
    (old,) = await holding(queue, 1)
    new = behind(old, 10, 11)
    moving = queue.transfer({old: new})  # on its way
    await queue.release([old, new[0]])
    assert await queue.claimed([0]) == {0}
    assert await moving == {new[1]}
    assert await queue.claims() == {11: "w"}


async def test_front_is_known_until_the_notification_notifies(
    queue: TaskQueue, zk_chroot: str
) -> None:
    assert queue.front("default") == (None, False)
    await queue.refresh("default")
    assert queue.front("default") == (None, True)
    async with connect(zk_chroot) as other:
        await TaskQueue(other).put([entry(2), entry(3)])
    await eventually(lambda: not queue.front("default")[1])
    await queue.refresh("default")
    assert queue.front("default") == (entry(2), True)
    assert len(await queue.claim("default", 2, "w")) == 2
    assert queue.front("default") == (None, True)


class Deaf(asyncio.Event):
    """Is never set."""

    def set(self) -> None:
        """Do nothing."""


async def test_waiter_hears_of_what_somebody_looking_has_found(
    queue: TaskQueue, zk_chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await queue.claim("default", 1, "w") == []
    head = queue._head("default")
    monkeypatch.setattr(head, "notified", Deaf())
    waiting = asyncio.create_task(queue.wait("default", timeout_s=DEADLINE_S))
    await asyncio.sleep(0)  # it waits
    async with connect(zk_chroot) as other:
        await TaskQueue(other).put([entry(2)])
    monkeypatch.setattr(head._trust, "_read_at", float("-inf"))
    await queue.refresh("default")
    assert queue.front("default") == (entry(2), True)
    assert await waiting
