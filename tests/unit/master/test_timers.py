"""Wake-ups: each instance once for everything that is due, and one reminder at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from shoal.master.services.timers import Timers
from tests.support.waiting import DEADLINE_S

START = datetime(2026, 1, 1, tzinfo=UTC)


class Woken:
    """A clock that stands still, and the instances that the timers woke."""

    def __init__(self) -> None:
        self.now = START
        self.instances: list[int] = []
        self.timers = Timers(lambda: self.now, self._wake, kill_retry_s=2.0)
        self._news = asyncio.Event()

    def _wake(self, instance_id: int) -> None:
        self.instances.append(instance_id)
        self._news.set()

    async def next(self) -> list[int]:
        """Return the instances that were woken once there are some."""
        async with asyncio.timeout(DEADLINE_S):
            await self._news.wait()
        self._news.clear()
        woken, self.instances = self.instances, []
        return sorted(woken)


@asynccontextmanager
async def running() -> AsyncIterator[Woken]:
    woken = Woken()
    work = asyncio.create_task(woken.timers.run())
    try:
        yield woken
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def test_what_is_due_together_wakes_an_instance_once() -> None:
    async with running() as woken:
        for seconds in (3, 2, 1, 0):
            woken.timers.add(START - timedelta(seconds=seconds), 7)
        woken.timers.add(START, 8)
        assert await woken.next() == [7, 8]


async def test_an_instance_has_one_reminder_however_many_ask_for_it() -> None:
    async with running() as woken:
        for _ in range(100):
            woken.timers.remind(0.01, 7)
        woken.timers.remind(0.02, 8)
        found: list[int] = []
        while 8 not in found:  # both at once, if this process stood still meanwhile
            found += await woken.next()
        assert found == [7, 8]
        woken.timers.remind(0.01, 7)  # a new one, once the first is over
        assert await woken.next() == [7]


async def test_reminder_comes_although_the_clock_was_set_back() -> None:
    async with running() as woken:
        woken.timers.remind(0.01, 7)
        woken.now -= timedelta(hours=1)
        assert await woken.next() == [7]


async def test_entries_of_an_instance_that_has_ended_are_dropped() -> None:
    """Else each run of a workflow with a timeout would leave one until then."""
    async with running() as woken:
        timers, far = woken.timers, START + timedelta(days=1)
        for instance_id in range(10_000):
            timers.add(far, instance_id)
            timers.drop(instance_id)
        assert not timers._set
        assert len(timers._heap) <= 2_000


async def test_a_dropped_entry_wakes_nobody_and_can_be_added_again() -> None:
    async with running() as woken:
        later = START + timedelta(seconds=5)
        for instance_id in (7, 8):
            woken.timers.add(later, instance_id)
        woken.timers.drop(7)
        woken.now = later
        woken.timers.add(START, 9)  # the clock stands still: something has to wake the loop
        assert await woken.next() == [8, 9]
        woken.timers.add(later, 7)
        assert await woken.next() == [7]


async def test_a_sleep_is_bounded_whatever_is_next() -> None:
    """The clock may be set to where the next one is due already."""
    async with running() as woken:
        woken.timers.add(START + timedelta(days=365), 7)
        assert woken.timers._fire_due() == 60.0
