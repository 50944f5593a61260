"""Many claimers of one queue: each entry once, in order as far as that goes, nothing left lying."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import QueueEntry, TaskClaim, TaskQueue, ZkSession, prepare
from shoal.coordination.queue import window
from shoal.coordination.queue.claimers import Claimers
from shoal.coordination.queue.contention import ClaimerPlace, turn
from tests.integration.coordination.conftest import connect
from tests.support.waiting import eventually
from tests.support.zookeeper.server import expire_session

DEADLINE_S = 120.0
CROWD = 8


def entry(task: int, *, wp: int = 2, group: str = "default") -> QueueEntry:
    return QueueEntry(group, wp, task // 40, 2, task, 0)


@pytest.fixture
async def sessions(zk_chroot: str) -> AsyncIterator[list[ZkSession]]:
    """As many sessions as there are claimers; the tree is prepared."""
    async with AsyncExitStack() as stack:
        made = [
            await stack.enter_async_context(connect(zk_chroot, name=f"s{number}"))
            for number in range(CROWD)
        ]
        await prepare(made[0], 4)
        yield made


@pytest.fixture
async def queues(sessions: list[ZkSession]) -> list[TaskQueue]:
    return [TaskQueue(session) for session in sessions]


async def empty(queue: TaskQueue, name: str, rng: random.Random) -> list[TaskClaim]:
    """Claim up to four entries at once until there are no more."""
    got: list[TaskClaim] = []
    while claims := await queue.claim("default", rng.randrange(1, 5), name):
        got += claims
    return got


async def test_crowd_gets_each_entry_once_and_keeps_to_the_head(queues: list[TaskQueue]) -> None:
    rng = random.Random(3)
    waiting = [entry(task, wp=rng.randrange(5)) for task in range(1500)]
    await queues[0].put(waiting)
    async with asyncio.timeout(DEADLINE_S):
        got = await asyncio.gather(
            *(empty(queue, f"w{n}", random.Random(n)) for n, queue in enumerate(queues))
        )
    claims = sorted((claim.epoch, claim.entry) for some in got for claim in some)
    # Who gave up early did so because others were quicker: they have the rest.
    assert Counter(claimed for _, claimed in claims) == Counter(waiting)
    left = sorted(waiting)
    for _, claimed in claims:  # in the order in which ZooKeeper saw them
        place = left.index(claimed)
        assert place < CROWD * 32, f"{claimed} overtook {place} others"
        del left[place]
    assert sum(queue.lost_races for queue in queues) < len(claims) / 2


async def test_more_important_entries_are_claimed_before_a_long_queue(
    queues: list[TaskQueue],
) -> None:
    await queues[0].put(entry(task) for task in range(1200))
    for number, queue in enumerate(queues):  # all are there, and some have collided
        assert await queue.claim("default", 1, f"w{number}")
    urgent = [entry(10_000 + task, wp=0) for task in range(40)]
    await queues[0].put(urgent)
    async with asyncio.timeout(DEADLINE_S):
        got = [
            claims
            for number in range(60)
            for claims in await asyncio.gather(
                *(queue.claim("default", 1, f"w{number}") for queue in queues)
            )
        ]
    claimed = {claim.entry: place for place, claims in enumerate(got) for claim in claims}
    assert set(urgent) <= set(claimed)


@pytest.mark.parametrize("count", [1, 4])
async def test_woken_crowd_fights_little_for_few_entries(
    queues: list[TaskQueue], count: int
) -> None:
    got: list[TaskClaim] = []
    over = asyncio.Event()

    async def work(queue: TaskQueue, name: str) -> None:
        while not over.is_set():
            if claims := await queue.claim("default", 1, name):
                got.extend(claims)
            else:
                await queue.wait("default", timeout_s=5)

    crowd = [asyncio.create_task(work(queue, f"w{n}")) for n, queue in enumerate(queues)]
    async with asyncio.timeout(DEADLINE_S):
        for number in range(10):
            await queues[0].put([entry(number * count + index) for index in range(count)])
            while len(got) < (number + 1) * count:
                await asyncio.sleep(0.005)
        over.set()
        await queues[0].put([entry(9_999)])  # wakes all
        await asyncio.gather(*crowd)
    lost = sum(queue.lost_races for queue in queues)
    # One entry: who loses it knows that there is no other. Of several each tries a few.
    assert lost <= 11 * (CROWD - 1) * count


async def test_share_of_a_claimer_that_is_busy_is_not_left_lying(
    sessions: list[ZkSession], queues: list[TaskQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "PATIENCE_S", 0.0)  # at every reading
    monkeypatch.setattr(window, "READINGS", 0)
    names = sorted(f"{session.session_id:016x}" for session in sessions[:3])
    ours = ClaimerPlace(names.index(f"{sessions[2].session_id:016x}"), 3)
    entries = [entry(task) for task in range(3000)]
    # It begins with an entry that is ours only after both others.
    waiting = entries[next(n for n, each in enumerate(entries) if turn(each, ours) == 2) :]
    for number, queue in enumerate(queues[:3]):
        await queue.put([entry(900_000 + number, wp=0)])
        assert await queue.claim("default", 1, f"w{number}")
    active = queues[2]  # the only one that goes on
    await active.put(waiting)
    got: list[QueueEntry] = []
    async with asyncio.timeout(DEADLINE_S):
        while waiting[0] not in got:
            active._head("default").contend()  # as if it had lost a race again
            got += [claim.entry for claim in await active.claim("default", 1, "active")]
    # At first it leaves that one to the others; after three readings, 101 claims at most, it does
    # not. If it never moved up in their order, it would come to it after 247 claims.
    assert 1 < len(got) < 200


async def test_entry_of_a_task_that_ran_elsewhere_is_tried_again_unasked(
    queues: list[TaskQueue],
) -> None:
    ours, theirs = queues[:2]
    await ours.put([entry(1)])
    held = await theirs.claim("default", 1, "theirs")
    assert len(held) == 1
    await ours.put([entry(1), entry(2, group="other")])
    assert await ours.claim("default", 1, "ours") == []
    assert await ours.claim("other", 1, "ours")  # another group does not wait for it
    await theirs.release(held)  # nobody notifications
    async with asyncio.timeout(DEADLINE_S):
        while not (claims := await ours.claim("default", 1, "ours")):
            assert await ours.wait("default", timeout_s=DEADLINE_S)
    assert claims[0].entry == entry(1)


async def test_claimers_know_their_number_and_have_different_ranks(
    sessions: list[ZkSession], zookeeper: ZooKeeperServer
) -> None:
    crowd = [Claimers(session, "a/b") for session in sessions[:4]]

    async def ranks(of: list[Claimers]) -> set[ClaimerPlace]:
        for claimers in of:
            await claimers.refresh()
        return {claimers.place for claimers in of}

    async def until(of: list[Claimers]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while await ranks(of) != {ClaimerPlace(rank, len(of)) for rank in range(len(of))}:
                await asyncio.sleep(0.01)

    assert (await ranks(crowd[:1])) == {ClaimerPlace(0, 1)}
    await until(crowd)
    await expire_session(sessions[0], zookeeper)
    await eventually(lambda: sessions[0].generation == 2)
    await until(crowd)  # registered again with the new session
    await sessions[3].__aexit__(None, None, None)
    await until(crowd[:3])
