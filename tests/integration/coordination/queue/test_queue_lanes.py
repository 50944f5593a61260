"""Projects take turns in the queue, however long the backlog of one of them is."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from shoal.coordination import QueueEntry, TaskQueue, ZkSession, prepare
from shoal.coordination.queue import lane_of, window
from tests.integration.coordination.conftest import connect
from tests.support.waiting import DEADLINE_S

FLOOD, OTHER = lane_of("flood"), lane_of("other")


def backlog(count: int, lane: int = FLOOD, first: int = 1, priority: int = 2) -> list[QueueEntry]:
    """One task for each of many runs."""
    return [
        QueueEntry("g", priority, number, 2, number, 0, lane)
        for number in range(first, first + count)
    ]


def hiding(count: int = 1_100) -> list[QueueEntry]:
    """Tasks at the front of a lane that are left out, more than a reading searches."""
    return [QueueEntry("g", 2, n, 2, n, 1, FLOOD) for n in range(1, count + 1)]


def counted_lists(session: ZkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths whose children the session lists from now on."""
    paths: list[str] = []
    real = session.children

    async def noted(path: str, **options: Any) -> object:
        paths.append(path)
        return await real(path, **options)

    monkeypatch.setattr(session, "children", noted)
    return paths


@pytest.mark.parametrize("is_known", [True, False])
async def test_task_of_another_project_is_next(session: ZkSession, is_known: bool) -> None:
    """Whether the claimer learns of it by the notification or by reading the queue."""
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    await putter.put(backlog(1_500))
    if is_known:
        assert [c.entry.lane for c in await queue.claim("g", 3, "w")] == [FLOOD] * 3
    (single,) = backlog(1, OTHER, first=9_000)
    await putter.put([single])
    assert single in [claim.entry for claim in await queue.claim("g", 2, "w")]


async def test_large_put_of_many_projects_is_noticed(session: ZkSession) -> None:
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    await putter.put(backlog(400))
    await queue.claim("g", 1, "w")
    await putter.put(backlog(90, first=5_000) + backlog(90, OTHER, first=6_000))
    found = Counter(claim.entry.lane for claim in await queue.claim("g", 20, "w"))
    assert found[OTHER] >= 9


async def test_lanes_are_shared_fairly_until_both_are_used_up(session: ZkSession) -> None:
    """Also beyond what one reading has found of a lane; urgent entries come first."""
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    await putter.put(backlog(400) + backlog(300, OTHER, first=5_000))
    await putter.put(backlog(5, first=8_000, priority=1))
    seen: list[QueueEntry] = []
    while claims := await queue.claim("g", 7, "w"):
        seen += [claim.entry for claim in claims]
    assert [entry.workflow_priority for entry in seen[:5]] == [1] * 5
    rest = seen[5:]
    for end in range(20, 600, 20):
        assert abs(Counter(e.lane for e in rest[:end])[OTHER] - end / 2) <= 8, end
    for lane, count in ((FLOOD, 400), (OTHER, 300)):
        numbers = [entry.task_instance_id for entry in rest if entry.lane == lane]
        assert numbers == sorted(numbers)
        assert len(numbers) == count


async def test_many_lanes_are_all_served(session: ZkSession) -> None:
    """More than one reading reads."""
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    entries = [
        QueueEntry("g", 2, 1_000 * n + k, 2, 1_000 * n + k, 0, n + 1)
        for n in range(150)
        for k in range(2)
    ]
    random.Random(1).shuffle(entries)
    await putter.put(entries)
    seen: list[QueueEntry] = []
    while claims := await queue.claim("g", 16, "w"):
        seen += [claim.entry for claim in claims]
    assert sorted(seen) == sorted(entries)


async def test_claimers_share_lanes_and_each_entry_is_claimed_once(
    session: ZkSession, zk_chroot: str
) -> None:
    await prepare(session, 4)
    putter = TaskQueue(session)
    entries = backlog(300) + backlog(100, OTHER, first=5_000)
    await putter.put(entries)
    seen: list[QueueEntry] = []

    async def work() -> None:
        async with connect(zk_chroot) as own:
            queue = TaskQueue(own)
            while await queue.wait("g", timeout_s=1.0):
                claims = await queue.claim("g", 3, "w")
                seen.extend(claim.entry for claim in claims)
                if not claims and len(seen) == len(entries):
                    return
                await queue.release(claims, ended=True)

    await asyncio.gather(work(), work(), work())
    assert sorted(seen) == sorted(entries)
    assert Counter(entry.lane for entry in seen[:150])[OTHER] >= 50


async def test_lane_is_read_again_when_it_is_used_up_before_another_one(
    session: ZkSession,
) -> None:
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    await putter.put(backlog(400))
    await queue.claim("g", 110, "w")  # of the 128 that were read
    await putter.put(backlog(60, OTHER, first=5_000))
    seen: list[QueueEntry] = []
    while len(seen) < 100 and (claims := await queue.claim("g", 5, "w")):
        seen += [claim.entry for claim in claims]
    for end in range(20, 101, 20):
        assert abs(Counter(e.lane for e in seen[:end])[OTHER] - end / 2) <= 6, end


async def test_tasks_that_stand_in_two_places_are_claimed_once(session: ZkSession) -> None:
    """As an earlier version puts them, without a lane, and then its successor."""
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    await putter.put(backlog(30, lane=0))
    await putter.put(backlog(30))
    claims = await queue.claim("g", 4, "w")
    assert [claim.entry for claim in claims] == backlog(4)
    claims += await queue.claim("g", 26, "w")  # what is left of the others is in the way
    assert sorted(claim.task_instance_id for claim in claims) == list(range(1, 31))
    assert await queue.claim("g", 1, "w") == []


async def test_no_lane_brings_less_urgent_tasks_forward(session: ZkSession) -> None:
    """Nor does one that is short, or many of which a reading passes over some."""
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    await putter.put(backlog(1) + backlog(300, OTHER, first=1_000))
    await putter.put(backlog(300, first=2_000, priority=4))
    seen: list[int] = []
    while len(seen) < 400:
        seen += [c.entry.workflow_priority for c in await queue.claim("g", 8, "w")]
    assert seen == sorted(seen)


async def test_window_has_as_many_entries_as_are_wanted_of_uneven_lanes(
    session: ZkSession,
) -> None:
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    entries = [QueueEntry("g", 2, lane, 2, lane, 0, lane) for lane in range(1, 31)]
    await putter.put(entries + backlog(300, OTHER, first=1_000))
    head = queue._head("g")
    async with head.lock:
        await head.choose(8)
    assert len(head._window.entries) >= 128


async def test_first_ones_of_a_lane_that_are_left_out_do_not_hide_the_others(
    session: ZkSession,
) -> None:
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    queue.leave_out([1])
    await putter.put(QueueEntry("g", 2, n, 2, n, 1, FLOOD) for n in range(1, 701))
    await putter.put(backlog(20, first=1_000) + backlog(400, OTHER, first=5_000))
    found = [claim.entry for claim in await queue.claim("g", 20, "w")]
    assert Counter(entry.lane for entry in found) == {FLOOD: 10, OTHER: 10}


async def test_lanes_are_read_together(session: ZkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty lanes cost as many turns of waiting as one."""
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    await putter.put([QueueEntry("g", 2, n, 2, n, 0, n) for n in range(1, 51)])
    waits, most, real = 0, 0, session.children

    async def noted(path: str, **options: Any) -> object:
        nonlocal waits, most
        waits += 1
        most = max(most, waits)
        try:
            return await real(path, **options)
        finally:
            waits -= 1

    monkeypatch.setattr(session, "children", noted)
    assert len(await queue.claim("g", 50, "w")) == 50
    assert most >= 50


async def test_lanes_whose_front_cannot_be_claimed_are_not_read_at_each_claim(
    session: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only after a put, when what is in the way has gone, or after some seconds."""
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    queue.leave_out([1])
    await putter.put([*hiding(), *backlog(20, first=2_000), *backlog(6, OTHER, first=5_000)])
    lists = counted_lists(session, monkeypatch)
    monkeypatch.setattr(window, "TRUST_ALONE_S", 600.0)  # however slow the machine is
    found = [(await queue.claim("g", 1, "w"))[0].entry for _ in range(6)]
    assert {entry.lane for entry in found} == {OTHER}
    first = len(lists)
    for _ in range(20):
        assert await queue.claim("g", 4, "w") == []
    assert len(lists) == first < 1_200  # one reading: a list for each run in the way
    (single,) = backlog(1, OTHER, first=9_000)
    await putter.put([single])
    assert [claim.entry for claim in await queue.claim("g", 4, "w")] == [single]
    assert len(lists) == first  # the notification names it
    await putter.remove(hiding())
    monkeypatch.setattr(window, "TRUST_ALONE_S", 5.0)
    async with asyncio.timeout(30.0):  # it is searched again within 5 s
        assert await queue.wait("g", timeout_s=120.0)
    assert len(await queue.claim("g", 20, "w")) == 20


async def test_lane_whose_front_cannot_be_claimed_is_not_read_at_each_claim_of_a_long_one(
    session: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading finds as many entries as it looks for, all of them in the other lane."""
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    queue.leave_out([1])
    await putter.put([*hiding(), *backlog(400, OTHER, first=5_000)])
    monkeypatch.setattr(window, "TRUST_ALONE_S", 600.0)  # however slow the machine is
    lists = counted_lists(session, monkeypatch)
    found = [(await queue.claim("g", 1, "w"))[0].entry]
    first = len(lists)
    found += [(await queue.claim("g", 1, "w"))[0].entry for _ in range(100)]
    assert found == backlog(101, OTHER, first=5_000)
    assert len(lists) == first
    for _ in range(3):
        found += [claim.entry for claim in await queue.claim("g", 100, "w")]
    assert sorted(found[:400]) == backlog(400, OTHER, first=5_000)[: len(found)]


async def test_wait_ends_when_hidden_tasks_may_have_come_forward_and_not_before(
    session: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    queue.leave_out([1])
    await putter.put(hiding())
    monkeypatch.setattr(window, "TRUST_ALONE_S", 600.0)
    assert await queue.claim("g", 1, "w") == []
    assert not await queue.wait("g", timeout_s=0.05)
    monkeypatch.setattr(window, "TRUST_ALONE_S", 0.0)
    assert await queue.wait("g", timeout_s=60.0)
    assert await queue.wait("g", timeout_s=60.0)  # until it is read again
    monkeypatch.setattr(window, "TRUST_ALONE_S", 600.0)
    assert await queue.claim("g", 1, "w") == []
    assert not await queue.wait("g", timeout_s=0.05)


async def test_tasks_of_any_priority_are_noticed_beside_a_lane_whose_front_cannot_be_claimed(
    session: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prepare(session, 4)
    queue, putter = TaskQueue(session), TaskQueue(session)
    queue.leave_out([1])
    await putter.put(hiding())
    monkeypatch.setattr(window, "TRUST_ALONE_S", 600.0)  # only the notification says so
    assert await queue.claim("g", 1, "w") == []
    lists = counted_lists(session, monkeypatch)
    for priority in range(5):
        put = backlog(2, OTHER, first=9_000 + 10 * priority, priority=priority)
        await putter.put(put)
        async with asyncio.timeout(DEADLINE_S):
            assert await queue.wait("g", timeout_s=600.0)
        assert [claim.entry for claim in await queue.claim("g", 4, "w")] == put
    assert lists == []


async def test_claimers_do_not_read_a_lane_whose_front_cannot_be_claimed_at_each_claim(
    session: ZkSession, zk_chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that claim in turn: after a collision each takes the first entries of its share."""
    await prepare(session, 4)
    await TaskQueue(session).put([*hiding(), *backlog(60, OTHER, first=5_000)])
    async with connect(zk_chroot, name="second") as other:
        queues = TaskQueue(session), TaskQueue(other)
        for queue in queues:
            queue.leave_out([1])
            await queue._head("g")._claimers.refresh()
        monkeypatch.setattr(window, "TRUST_ALONE_S", 600.0)
        monkeypatch.setattr(window, "TRUST_S", 0.0)  # as if each claim came later
        monkeypatch.setattr(window, "TRUST_OWN_SHARE_S", 0.0)
        monkeypatch.setattr(window, "READINGS", 10_000)
        lists = counted_lists(session, monkeypatch)
        found: list[QueueEntry] = []
        for _ in range(20):
            for queue in queues:
                found += [claim.entry for claim in await queue.claim("g", 1, "w")]
        assert len(lists) < 2 * 1_200  # 20 claims of this session
        while claims := [*await queues[0].claim("g", 4, "w"), *await queues[1].claim("g", 4, "w")]:
            found += [claim.entry for claim in claims]
        assert sorted(found) == backlog(60, OTHER, first=5_000)
