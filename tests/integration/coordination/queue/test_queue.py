"""The task queue: exact order alone, each entry once in a crowd, nothing lost with a reply."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import (
    ConnectionLoss,
    Delete,
    NoNode,
    QueueEntry,
    SessionLost,
    TaskClaim,
    TaskQueue,
    ZkSession,
)
from tests.integration.coordination.conftest import claim_request, connect, put_request
from tests.integration.coordination.given import entry
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually
from tests.support.zookeeper.server import expire_session


def entries(count: int) -> list[QueueEntry]:
    return [entry(task, wi=task // 50) for task in range(count)]


def ids(claims: Sequence[TaskClaim]) -> list[int]:
    return [claim.entry.task_instance_id for claim in claims]


async def test_one_claimer_gets_exactly_the_first(queue: TaskQueue) -> None:
    rng = random.Random(5)
    waiting = [
        entry(task, wp=rng.randrange(5), wi=rng.randrange(3000), tp=rng.randrange(5))
        for task in rng.sample(range(10**9), 800)
    ]
    await queue.put(waiting)
    got: list[TaskClaim] = []
    while claims := await queue.claim("default", rng.randrange(1, 40), "w"):
        got += claims
    assert [claim.entry for claim in got] == sorted(waiting)
    assert len({claim.epoch for claim in got}) > 1
    assert await queue.depth("default") == 0


async def test_entry_put_later_comes_first_if_it_is_more_important(queue: TaskQueue) -> None:
    await queue.put([entry(task) for task in range(10)])
    assert ids(await queue.claim("default", 2, "w")) == [0, 1]
    await queue.put([entry(100, wp=1), entry(101, tp=1)])
    assert ids(await queue.claim("default", 4, "w")) == [100, 101, 2, 3]


async def test_racing_claimers_get_each_entry_once(queue: TaskQueue, zk_chroot: str) -> None:
    waiting = entries(2000)
    await queue.put(waiting)
    got: list[TaskClaim] = []
    all_there = asyncio.Barrier(8)

    async def work(name: str) -> None:
        async with connect(zk_chroot) as own:
            mine = TaskQueue(own)
            await all_there.wait()
            while len(got) < len(waiting):
                got.extend(await mine.claim("default", 7, name))
            await mine.release(got)  # only its own

    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(work(f"w{number}") for number in range(8)))
    assert Counter(ids(got)) == Counter(range(2000))
    assert len(Counter(claim.worker_id for claim in got)) > 1  # they did race
    assert await queue.depth("default") == 0


async def test_put_twice_is_one_entry(queue: TaskQueue) -> None:
    for _ in range(2):
        await queue.put(entries(300))  # in one multi, which the second time cannot be done
        await queue.put([entry(999)])  # one by one
    assert await queue.depth("default") == 301
    assert len(await queue.claim("default", 1000, "w")) == 301


async def test_queue_is_counted_searched_and_emptied(queue: TaskQueue, tree: ZkSession) -> None:
    waiting = [*entries(20), *(entry(task, group="a/b") for task in range(50, 53))]
    await queue.put(waiting)
    assert await queue.groups() == ["a/b", "default"]
    assert await queue.depth("default") == 20
    assert await queue.depth("a/b") == 3
    assert await queue.depth("none") == 0
    assert await queue.contains([*waiting, entry(12345)]) == set(waiting)
    await queue.remove(waiting[:10])
    await queue.remove(waiting[:10])
    assert await queue.contains(waiting) == set(waiting[10:])
    await queue.remove(waiting)
    for group in ("default", "a%2Fb"):
        assert (await tree.children(f"/queue/{group}")).names == []  # no empty buckets left


async def test_groups_do_not_see_each_other(queue: TaskQueue) -> None:
    await queue.put([entry(1, group="a"), entry(2, group="..")])
    assert ids(await queue.claim("a", 5, "w")) == [1]
    assert ids(await queue.claim("..", 5, "w")) == [2]


async def test_claims_are_live_until_released_or_their_session_ends(
    queue: TaskQueue, tree: ZkSession, zk_chroot: str
) -> None:
    await queue.put(entries(4))
    async with connect(zk_chroot) as other:
        theirs = TaskQueue(other)
        not_ours = await theirs.claim("default", 2, "w1")
        ours = await queue.claim("default", 2, "w2")
        assert (ids(not_ours), ids(ours)) == ([0, 1], [2, 3])
        assert await queue.claims() == {0: "w1", 1: "w1", 2: "w2", 3: "w2"}
        await queue.release([not_ours[0], ours[0]])
        assert await queue.claimed(range(6)) == {0, 1, 3}
    await tree.sync("/")
    assert await queue.claimed(range(6)) == {3}


async def test_claims_are_released_although_one_is_gone_already(
    queue: TaskQueue, tree: ZkSession
) -> None:
    await queue.put(entries(4))
    claims = await queue.claim("default", 4, "w")
    await tree.delete("/claims/01/1")
    await queue.release(claims[:3], ended=True)
    assert await queue.claims() == {3: "w"}


async def test_claims_vanish_when_the_session_expires(
    queue: TaskQueue, tree: ZkSession, zk_chroot: str, zookeeper: ZooKeeperServer
) -> None:
    await queue.put(entries(2))
    async with connect(zk_chroot) as other:
        theirs = TaskQueue(other)
        old = await theirs.claim("default", 1, "w1")
        await expire_session(other, zookeeper)
        await eventually(lambda: other.generation == 2)
        await queue.put([old[0].entry])  # its master noticed
        new = await queue.claim("default", 1, "w2")
        assert ids(new) == ids(old)
        assert new[0].epoch > old[0].epoch
        await theirs.release(old)  # too late: it belongs to w2 now
        assert await queue.claimed([0]) == {0}


async def test_entry_whose_task_is_still_claimed_waits_behind(queue: TaskQueue) -> None:
    await queue.put(entries(3))
    claims = await queue.claim("default", 1, "w")
    await queue.put([entry(0, wi=0)])
    assert ids(await queue.claim("default", 1, "w")) == [1]  # in order, as if it were not there
    assert ids(await queue.claim("default", 3, "w")) == [2]
    assert await queue.depth("default") == 1
    await queue.release(claims)
    assert await queue.wait("default", timeout_s=DEADLINE_S)
    assert ids(await queue.claim("default", 3, "w")) == [0]


async def test_requeued_claims_are_queued_again_in_their_place(
    queue: TaskQueue, tree: ZkSession
) -> None:
    await queue.put(entries(4))
    claims = await queue.claim("default", 4, "w")
    for bucket in (claims[0].entry.inner, claims[0].entry.outer):  # pruned by somebody
        await tree.delete(bucket)
    await queue.requeue(claims[:3])
    assert await queue.claims() == {3: "w"}
    assert ids(await queue.claim("default", 4, "w")) == [0, 1, 2]


async def test_put_makes_pruned_buckets_again(queue: TaskQueue, tree: ZkSession) -> None:
    waiting = entries(20)
    await queue.put(waiting)
    await tree.multi([Delete(item.path) for item in waiting])
    for bucket in (waiting[0].inner, waiting[0].outer):  # behind the queue's back
        await tree.delete(bucket)
    await queue.put(waiting[:3])
    await queue.put(waiting)
    assert await queue.depth("default") == 20


async def test_put_works_after_the_tree_was_lost_and_made_again(
    queue: TaskQueue, tree: ZkSession
) -> None:
    first, second = entry(1), entry(2)
    await queue.put([first])
    for path in (first.path, first.inner, first.outer, "/queue/default", "/queue"):
        await tree.delete(path)
    with pytest.raises(NoNode):
        await queue.put([second])
    await tree.create("/queue")
    await queue.put([second])
    assert ids(await queue.claim("default", 5, "w")) == [2]


async def test_waiting_ends_with_a_put_by_somebody_else(
    queue: TaskQueue, proxied: ZkSession
) -> None:
    theirs = TaskQueue(proxied)
    assert await theirs.wait("default", "other", timeout_s=DEADLINE_S)  # nothing is known yet
    for group in ("default", "other"):
        assert await theirs.claim(group, 1, "w") == []
    assert not await theirs.wait("default", "other", timeout_s=0.05)
    for number, group in enumerate(("other", "default", "other")):
        waiting = asyncio.create_task(theirs.wait("default", "other", timeout_s=DEADLINE_S))
        await queue.put([entry(number, group=group)])
        assert await waiting
        assert ids(await theirs.claim(group, 1, "w")) == [number]
        assert await theirs.claim(group, 1, "w") == []


async def test_claim_whose_reply_was_lost_is_found_again(
    queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    await queue.put(entries(10))
    theirs = TaskQueue(proxied)
    first = await theirs.claim("default", 1, "w")
    zk_proxy.swallow_from = claim_request()
    claiming = asyncio.create_task(theirs.claim("default", 3, "w"))
    async with asyncio.timeout(DEADLINE_S):
        while len(await queue.claims()) < 4:
            assert not claiming.done()
    zk_proxy.drop()
    zk_proxy.heal()
    claims = await claiming
    assert ids(claims) == [1, 2, 3]
    assert claims[0].epoch > first[0].epoch
    assert await queue.depth("default") == 6
    await theirs.release(claims)
    assert await queue.claims() == {0: "w"}


async def test_claim_that_never_arrived_is_made_again(
    queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    await queue.put(entries(5))
    theirs = TaskQueue(proxied)
    await theirs.claim("default", 1, "w")
    zk_proxy.freeze()
    claiming = asyncio.create_task(theirs.claim("default", 2, "w"))
    await asyncio.sleep(0)
    zk_proxy.drop()
    zk_proxy.heal()
    claims = ids(await claiming)
    assert claims == [1, 2]
    assert await queue.claims() == dict.fromkeys([0, 1, 2], "w")


async def test_claim_that_we_hold_already_is_not_taken_for_the_lost_one(
    queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    await queue.put(entries(3))
    theirs = TaskQueue(proxied)
    await theirs.claim("default", 1, "w")
    await queue.put(entries(1))  # queued again while it runs
    await eventually(lambda: theirs._head("default").notified.is_set())
    zk_proxy.swallow_from = claim_request()
    claiming = asyncio.create_task(theirs.claim("default", 1, "w"))
    await eventually(lambda: zk_proxy.swallow_replies)
    zk_proxy.drop()
    zk_proxy.heal()
    assert ids(await claiming) == [1]


async def test_claim_that_died_with_its_session_says_so(
    queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy, zookeeper: ZooKeeperServer
) -> None:
    await queue.put(entries(5))
    theirs = TaskQueue(proxied)
    await theirs.claim("default", 1, "w")
    zk_proxy.swallow_from = claim_request()
    claiming = asyncio.create_task(theirs.claim("default", 2, "w"))
    async with asyncio.timeout(DEADLINE_S):
        while len(await queue.claims()) < 3:
            assert not claiming.done()
    zk_proxy.cut()
    await expire_session(proxied, zookeeper)
    zk_proxy.heal()
    with pytest.raises(SessionLost):
        await claiming
    assert await queue.claims() == {}


async def test_put_whose_reply_was_lost_can_be_repeated(
    queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    theirs = TaskQueue(proxied)
    zk_proxy.swallow_from = put_request()
    putting = asyncio.create_task(theirs.put(entries(100)))
    async with asyncio.timeout(DEADLINE_S):
        while await queue.depth("default") < 100:
            assert not putting.done()
    zk_proxy.drop()
    with pytest.raises(ConnectionLoss):
        await putting
    zk_proxy.heal()
    await proxied.retry(lambda: theirs.put(entries(100)))
    assert await queue.depth("default") == 100


async def test_cancelled_claim_goes_back_into_the_queue(
    queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    await queue.put(entries(5))
    theirs = TaskQueue(proxied)
    await theirs.claim("default", 1, "w")
    zk_proxy.swallow_from = claim_request()
    claiming = asyncio.create_task(theirs.claim("default", 2, "w"))
    async with asyncio.timeout(DEADLINE_S):
        while len(await queue.claims()) < 3:
            assert not claiming.done()
    claiming.cancel()
    zk_proxy.drop()
    zk_proxy.heal()
    with pytest.raises(asyncio.CancelledError):
        await claiming
    async with asyncio.timeout(DEADLINE_S):
        while await queue.depth("default") < 4:
            pass
    assert await queue.claims() == {0: "w"}
