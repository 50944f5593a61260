"""Blocking calls beside the loop."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from shoal.worker.home import disk_work
from shoal.worker.home.disk_work import AVOID_FOR, MOST_AT_ONCE, SHORT_S, DiskWork
from tests.support.waiting import DEADLINE_S


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


async def test_what_is_not_waited_for_any_more_is_not_begun() -> None:
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


async def test_short_calls_travel_only_for_a_while_after_one_that_was_not_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(disk_work, "time", SimpleNamespace(monotonic=lambda: now))
    work, here = DiskWork(), threading.get_ident()

    def be_slow() -> int:
        nonlocal now
        now += 2 * SHORT_S
        raise OSError("no room")

    assert await work.run_short(threading.get_ident) == here
    with pytest.raises(OSError, match="no room"):
        await work.run_short(be_slow)
    assert await work.run_short(threading.get_ident) != here
    now += AVOID_FOR * SHORT_S
    assert await work.run_short(threading.get_ident) != here, "it took twice as long"
    now += 1.1 * AVOID_FOR * SHORT_S
    assert await work.run_short(threading.get_ident) == here
