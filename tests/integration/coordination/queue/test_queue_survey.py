"""Counting and paging through queues of any length."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

import pytest

from shoal.coordination import QueueEntry, TaskQueue, ZkSession
from shoal.coordination.cluster import layout
from shoal.coordination.queue.entry import parse
from shoal.coordination.queue.putter import Putter
from shoal.coordination.queue.survey import START, QueueLimits
from tests.integration.sql.driver.turns import Turns


def entries(instances: int, tasks: int, group: str = "g") -> list[QueueEntry]:
    return [
        QueueEntry(group, 2, instance, 2, instance * 1000 + task, 1)
        for instance in range(instances)
        for task in range(tasks)
    ]


async def test_depth_of_many_buckets_is_reckoned_from_some(
    tree: ZkSession,
) -> None:
    queue = TaskQueue(tree, QueueLimits(counted_buckets=20))
    await queue.put(entries(20, 7))
    assert await queue.depth("g") == 140  # each counted
    await queue.put(entries(100, 7))
    assert await queue.depth("g") == 700  # all alike, so any sample tells
    await queue.put(QueueEntry("g", 2, 0, 2, 200_000 + task, 1) for task in range(300))
    assert 600 <= await queue.depth("g") <= 5000
    assert await queue.depth("another") == 0


@pytest.mark.parametrize("most", [1, 60, 10_000])
async def test_pages_show_every_entry_once(tree: ZkSession, most: int) -> None:
    queue = TaskQueue(tree, QueueLimits(page_lists_at_once=4))
    waiting = [*entries(30, 3), *entries(5, 2, "a/b"), QueueEntry("g", 0, 5000, 1, 1, 2)]
    await queue.put(waiting)
    await tree.create(f"{layout.queue('g')}/2-000000000/x", b"")
    seen: list[QueueEntry] = []
    after, pages = START, 0
    while pages == 0 or after != START:
        page, after = await queue.page(after, most)
        seen += page
        pages += 1
        assert len(page) < most + 3
    assert seen == sorted(waiting)
    assert pages > 5 or most > 10


@pytest.mark.parametrize(("most", "lists"), [(1, 1000), (7, 2), (10_000, 1000)])
async def test_what_waits_for_a_group_is_read_in_order(
    tree: ZkSession, most: int, lists: int
) -> None:
    queue = TaskQueue(tree, QueueLimits(page_lists_at_once=4, most_lists=lists))
    urgent = [QueueEntry("g", 0, 5000, 1, task, 2) for task in (1, 2)]
    waiting = [*entries(30, 3), *urgent, QueueEntry("g", 2, 3, 0, 999_999, 1)]
    await queue.put([*waiting, *entries(5, 2, "a/b")])
    await tree.create(f"{layout.queue('g')}/2-000000000/x", b"")
    await tree.create(f"{layout.queue('g')}/1-000000000", b"")
    seen: list[QueueEntry] = []
    more, after = True, None
    while more:
        found, more = await queue.waiting("g", after, most)
        assert found or not more
        assert len(found) <= most
        seen += found
        after = seen[-1]
    assert seen == sorted(waiting)
    assert await queue.waiting("g", after, most) == ([], False)
    assert await queue.waiting("nobody", None, most) == ([], False)


async def test_pages_are_short_in_lists_as_well(
    tree: ZkSession,
) -> None:
    queue = TaskQueue(tree, QueueLimits(page_lists_at_once=4, most_lists=8))
    await queue.put(entries(30, 1))
    page, after = await queue.page(START, 1000)
    assert len(page) == 8
    assert after != START


async def test_claims_lie_in_buckets(queue: TaskQueue, session: ZkSession) -> None:
    await queue.put(entries(3, 300))
    claims = await queue.claim("g", 600, "w")
    assert len(claims) == 600
    assert await queue.claims() == {claim.entry.task_instance_id: "w" for claim in claims}
    buckets = (await session.children(layout.CLAIMS)).names
    stats = [await session.exists(f"{layout.CLAIMS}/{bucket}") for bucket in buckets]
    assert len(buckets) == layout.CLAIM_BUCKETS
    assert max(stat.children for stat in stats if stat) <= 6


async def test_page_ends_in_the_middle_of_the_lists_that_were_read_together(
    queue: TaskQueue,
) -> None:
    await queue.put(entries(6, 40))
    page, after = await queue.page(START, 50)
    assert len(page) == 80  # two buckets, though six were read
    rest, after = await queue.page(after, 1000)
    assert len(rest) == 160
    assert after == START


async def test_others_have_their_turn_while_long_lists_are_looked_at(
    tree: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = TaskQueue(tree, QueueLimits(at_once=10))
    waiting = entries(6, 10)
    await queue.put(waiting)
    parsed: list[int] = []  # in which turn of the loop
    turns = Turns()

    def noted(*names: str) -> QueueEntry:
        parsed.append(turns.count)
        return parse(*names)

    monkeypatch.setattr("shoal.coordination.queue.survey.parse", noted)
    async with turns:
        page, _ = await queue.page(START, 1000)
        assert len(page) == 60
        assert max(Counter(parsed).values()) <= 20
        before = turns.count
        assert await queue.contains(waiting) == set(waiting)
        assert turns.count - before >= 2 * 60 // 10


async def test_requests_for_many_entries_go_out_in_parts(
    tree: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = TaskQueue(tree, QueueLimits(at_once=10))
    waiting = entries(3, 15)
    await queue.put(waiting)
    in_flight, most = 0, 0
    delete = tree.submit_delete

    def answered(_: object) -> None:
        nonlocal in_flight
        in_flight -= 1

    def noted(path: str) -> asyncio.Future[None]:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        sent = delete(path)
        sent.add_done_callback(answered)
        return sent

    monkeypatch.setattr(tree, "submit_delete", noted)
    await queue.remove(waiting)
    assert most == 10
    assert await queue.page(START, 1000) == ([], START)


async def test_entries_are_put_in_their_order(
    queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: list[QueueEntry] = []
    real = Putter.put

    async def noted(putter: Putter, group: str, batch: Sequence[QueueEntry]) -> None:
        put.extend(batch)
        await real(putter, group, batch)

    monkeypatch.setattr(Putter, "put", noted)
    waiting = [QueueEntry("g", 3, 1, 0, 5, 0), *entries(3, 3), QueueEntry("a", 4, 9, 4, 1, 0)]
    await queue.put(reversed(waiting))
    assert put == sorted(waiting)


@pytest.mark.parametrize(("most", "lists"), [(1, 1000), (3, 1), (7, 1000), (10_000, 1000)])
async def test_lanes_take_turns_in_what_is_listed_and_counted(
    tree: ZkSession, most: int, lists: int
) -> None:
    """Also where one is short, has a few large buckets or many small ones."""
    queue = TaskQueue(tree, QueueLimits(page_lists_at_once=4, most_lists=lists, lists_at_once=3))
    large = [QueueEntry("g", 2, 1, 2, task, 0, 11) for task in range(20)]
    small = [QueueEntry("g", 2, 100 * n, 2, 9_000 + n, 0, 22) for n in range(30)]
    short = [QueueEntry("g", 2, 7, 2, 5_000, 0, 33)]
    urgent = [QueueEntry("g", 1, 8, 2, 6_000 + n, 0, 22) for n in range(2)]
    last = [QueueEntry("g", 4, 9, 2, 7_000, 0, 11)]
    await queue.put([*large, *small, *short, *urgent, *last])
    turns = [one for some in zip_longest(large, small, short) for one in some if one]
    waiting = [*urgent, *turns, *last]
    seen: list[QueueEntry] = []
    more = True
    while more:
        found, more = await queue.waiting("g", seen[-1] if seen else None, most)
        seen += found
    assert seen == waiting
    assert [await queue.ahead(entry) for entry in waiting] == list(range(len(waiting)))
    assert await queue.ahead(waiting[40], 40) == await queue.ahead(waiting[41], 40) == 40
    assert await queue.ahead(QueueEntry("g", 2, 1, 2, 21, 0, 11)) is None


async def test_page_goes_on_in_all_lanes_where_its_last_entry_was(queue: TaskQueue) -> None:
    """Also after the first ones were claimed."""
    lanes = [[QueueEntry("g", 2, n, 2, 1000 * n + k, 0, n) for k in range(20)] for n in (1, 2)]
    await queue.put([*lanes[0], *lanes[1]])
    first, _ = await queue.waiting("g", None, 11)
    assert len(await queue.claim("g", 8, "w")) == 8
    rest, more = await queue.waiting("g", first[-1], 100)
    assert not more
    assert sorted(first + rest) == sorted(lanes[0] + lanes[1])
