"""A claimer who has heard of every put knows the queue without reading it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from shoal.coordination import QueueEntry, TaskQueue, ZkSession
from shoal.coordination.cluster import layout
from shoal.coordination.queue import pruner, putter, window
from shoal.coordination.session.client import Client
from tests.integration.coordination.conftest import connect
from tests.support.waiting import DEADLINE_S


def entry(task: int, *, wp: int = 2, wi: int = 1) -> QueueEntry:
    return QueueEntry("g", wp, wi, 2, task, 0)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many requests of each kind all sessions send; heartbeats do not count.

    On a machine that stands still, too: nothing that is known grows old.
    """
    monkeypatch.setattr(window, "TRUST_ALONE_S", 3600.0)
    monkeypatch.setattr(putter, "FRESH_S", 3600.0)
    kinds: Counter[str] = Counter()
    submit = Client.submit

    def counted(
        self: Client, request: Any, body: bytes, session_id: int, done: Callable[..., None]
    ) -> None:
        kind = type(request).__name__
        kinds[kind] += kind != "Sync"
        submit(self, request, body, session_id, done)

    monkeypatch.setattr(Client, "submit", counted)
    return kinds


async def ids(queue: TaskQueue, count: int) -> list[int]:
    return [claim.entry.task_instance_id for claim in await queue.claim("g", count, "w")]


async def test_news_are_claimed_in_order_without_reading_the_queue(
    queue: TaskQueue, sent: Counter[str]
) -> None:
    await queue.put([entry(task) for task in range(10, 15)])
    assert await ids(queue, 1) == [10]
    sent.clear()
    await queue.put([entry(2, wp=3), entry(1)])
    await queue.put([entry(3, wp=0)])  # while the claimer is busy
    assert await ids(queue, 3) == [3, 1, 11]
    assert await ids(queue, 9) == [12, 13, 14, 2]
    assert sent["GetChildren2"] == 0
    assert sent["GetData"] == 1


async def test_chain_of_tasks_costs_few_requests(queue: TaskQueue, sent: Counter[str]) -> None:
    await queue.put([entry(0)])
    claims = await queue.claim("g", 8, "w")
    sent.clear()
    for task in range(1, 21):
        await queue.put([entry(task)])
        claims += await queue.claim("g", 8, "w")
    assert [claim.task_instance_id for claim in claims] == list(range(21))
    await queue.release(claims, ended=True)
    assert (
        sent.total() <= 20 * 3 + 1
    )  # a put, a look at the notification, a claim; one release for all


async def test_notification_that_tells_nothing_makes_us_read(
    queue: TaskQueue, session: ZkSession
) -> None:
    await queue.put([entry(5)])
    assert await ids(queue, 8) == [5]
    await session.create(entry(6).path)
    await session.set(layout.queue("g"), b"")
    assert await ids(queue, 8) == [6]
    await session.create(entry(7).path)
    await session.set(layout.queue("g"), b"what is this")
    await queue.put([entry(8)])
    assert await ids(queue, 8) == [7, 8]


async def test_puts_of_two_masters_are_all_heard(queue: TaskQueue, zk_chroot: str) -> None:
    await queue.put([entry(1)])
    assert await ids(queue, 1) == [1]
    async with connect(zk_chroot) as other:
        second = TaskQueue(other)
        await queue.put([entry(4)])
        await second.put([entry(3)])
        await queue.put([entry(5)])
        await second.put([entry(2)])
    assert await ids(queue, 8) == [2, 3, 4, 5]


async def test_long_put_behind_what_we_know_is_not_read(
    queue: TaskQueue, sent: Counter[str]
) -> None:
    await queue.put([entry(task) for task in range(600)])
    assert await ids(queue, 2) == [0, 1]
    sent.clear()
    await queue.put([entry(task, wi=2) for task in range(1000, 1200)])
    assert await ids(queue, 2) == [2, 3]
    assert sent["GetChildren2"] == 0
    await queue.put([entry(task, wp=1) for task in range(2000, 2200)])
    assert await ids(queue, 2) == [2000, 2001]


async def test_entry_that_is_told_of_twice_is_claimed_once(
    queue: TaskQueue, session: ZkSession
) -> None:
    await queue.put([entry(1)])
    assert await ids(queue, 1) == [1]
    for path in (entry(1).inner, entry(1).outer):  # pruned: the next put takes two goes
        await session.delete(path)
    await queue.put([entry(2), entry(3)])
    await queue.put([entry(2)])  # it is there already
    assert await ids(queue, 8) == [2, 3]
    assert queue.lost_races == 0


async def test_buckets_of_many_small_instances_do_not_stay(
    queue: TaskQueue, session: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner, "IDLE_S", 0.0)
    instances = 5 * pruner.AT_ONCE
    outer = entry(0).outer
    for instance in range(1, instances + 1):
        await queue.put([entry(instance, wi=instance)])
        assert await ids(queue, 8) == [instance]
    async with asyncio.timeout(DEADLINE_S):
        while len((await session.children(outer)).names) > 2 * pruner.AT_ONCE:
            await asyncio.sleep(0.01)
    await queue.put([entry(9_999, wi=1)])  # in a bucket that was there before
    assert await ids(queue, 8) == [9_999]
