"""Counting and paging through queues of any length."""

import pytest

from shoal.coordination import Entry, TaskQueue, ZkSession, layout
from shoal.coordination.queue import survey
from shoal.coordination.queue.survey import START


def entries(instances: int, tasks: int, group: str = "g") -> list[Entry]:
    return [
        Entry(group, 2, instance, 2, instance * 1000 + task, 1)
        for instance in range(instances)
        for task in range(tasks)
    ]


async def test_depth_of_many_buckets_is_reckoned_from_some(
    queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "COUNTED_BUCKETS", 20)
    await queue.put(entries(20, 7))
    assert await queue.depth("g") == 140  # each counted
    await queue.put(entries(100, 7))
    assert await queue.depth("g") == 700  # all alike, so any sample tells
    await queue.put(Entry("g", 2, 0, 2, 200_000 + task, 1) for task in range(300))
    assert 600 <= await queue.depth("g") <= 5000
    assert await queue.depth("another") == 0


@pytest.mark.parametrize("most", [1, 60, 10_000])
async def test_pages_show_every_entry_once(
    queue: TaskQueue, session: ZkSession, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(survey, "LISTS_AT_ONCE", 4)
    waiting = [*entries(30, 3), *entries(5, 2, "a/b"), Entry("g", 0, 5000, 1, 1, 2)]
    await queue.put(waiting)
    await session.create(f"{layout.queue('g')}/2-000000000/x", b"")
    seen: list[Entry] = []
    after, pages = START, 0
    while pages == 0 or after != START:
        page, after = await queue.page(after, most)
        seen += page
        pages += 1
        assert len(page) < most + 4 * 3
    assert seen == sorted(waiting)
    assert pages > 5 or most > 10


async def test_pages_are_short_in_lists_as_well(
    queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "LISTS_AT_ONCE", 4)
    monkeypatch.setattr(survey, "MOST_LISTS", 8)
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
