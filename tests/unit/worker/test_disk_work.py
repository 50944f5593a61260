"""Blocking calls beside the loop."""

import asyncio
import threading

import pytest

from shoal.worker.disk_work import MOST_AT_ONCE, DiskWork
from tests.waiting import DEADLINE_S


async def test_calls_of_one_turn_travel_together_and_each_gets_its_own_outcome() -> None:
    work = DiskWork()

    def fail() -> int:
        raise OSError("no room")

    calls = [threading.get_ident, fail, threading.get_ident]
    first, failed, last = await asyncio.gather(
        *(work.run(call) for call in calls), return_exceptions=True
    )
    assert first == last != threading.get_ident()
    assert isinstance(failed, OSError)


async def test_a_slow_disk_holds_up_its_own_trip_alone() -> None:
    work, go = DiskWork(), threading.Event()
    slow = asyncio.create_task(work.run(lambda: go.wait(DEADLINE_S)))
    await asyncio.sleep(0)  # it has set out
    await asyncio.sleep(0)
    assert await work.run(lambda: "quick") == "quick"
    go.set()
    assert await slow


async def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    work, done = DiskWork(), list[int]()
    given_up = asyncio.create_task(work.run(lambda: done.append(1)))
    await asyncio.sleep(0)  # it has asked, but not set out
    given_up.cancel()
    await work.run(lambda: done.append(2))
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert done == [2]


async def test_many_calls_share_few_trips() -> None:
    work = DiskWork()
    count = 4 * MOST_AT_ONCE
    answers = await asyncio.gather(*(work.run(lambda n=n: n) for n in range(count)))  # type: ignore[misc]
    assert answers == list(range(count))
