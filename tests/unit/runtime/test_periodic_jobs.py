"""Jobs of APScheduler by a clock that jumps: none is run too often, and none stands still."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from shoal.core.timing.cron.expression import parse
from shoal.core.timing.cron.trigger import ShoalCronTrigger
from shoal.runtime.periodic_jobs import PeriodicJobs
from tests.support.waiting import DEADLINE_S

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
TWO = datetime(2026, 6, 2, 2, tzinfo=UTC)
AT_TWO = ShoalCronTrigger(parse("0 0 2 * * ?"))
DAY = timedelta(days=1)
YEAR = 365 * DAY
LOOK_S = 0.01


class Clock:
    def __init__(self) -> None:
        self.now = NOON
        self.looks = 0
        self.error: Exception | None = None

    def __call__(self) -> datetime:
        if self.error is not None:
            raise self.error
        self.looks += 1
        return self.now

    async def show(self, now: datetime) -> None:
        """Be set, and wait until the jobs have been looked at several times since."""
        self.now = now
        self.looks = 0
        async with asyncio.timeout(DEADLINE_S):
            while self.looks < 5:
                await asyncio.sleep(LOOK_S)


class Office:
    """One job that notes when it ran."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.jobs = PeriodicJobs(self.clock, LOOK_S)
        self.ran: list[datetime] = []
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def work(self) -> None:
        self.ran.append(self.clock.now)
        await self.may_end.wait()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        run = asyncio.create_task(self.jobs.run())
        try:
            await self.clock.show(self.clock.now)
            yield run
        finally:
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)


def hourly(office: Office) -> None:
    office.jobs.every("job", office.work, 3600.0, first_s=3600.0)


def nightly(office: Office) -> None:
    office.jobs.at("job", office.work, AT_TWO)


@pytest.mark.parametrize(
    ("given", "first", "second"),
    [(hourly, NOON + timedelta(hours=1), NOON + timedelta(hours=2)), (nightly, TWO, TWO + DAY)],
)
async def test_job_runs_at_its_times_and_not_between(
    given: Callable[[Office], None], first: datetime, second: datetime
) -> None:
    office = Office()
    given(office)
    async with office.running():
        for moment in (first - timedelta(microseconds=1), first, first, second):
            await office.clock.show(moment)
    assert office.ran == [first, second]


@pytest.mark.parametrize("given", [hourly, nightly])
async def test_times_that_were_missed_count_as_one(given: Callable[[Office], None]) -> None:
    office = Office()
    given(office)
    async with office.running():
        await office.clock.show(NOON + YEAR)
        await office.clock.show(NOON + YEAR)
        assert office.ran == [NOON + YEAR]
        await office.clock.show(TWO + YEAR)
        assert office.ran == [NOON + YEAR, TWO + YEAR]


@pytest.mark.parametrize("given", [hourly, nightly])
async def test_clock_that_goes_back_stops_no_job(given: Callable[[Office], None]) -> None:
    office = Office()
    given(office)
    async with office.running():
        await office.clock.show(NOON - YEAR)
        assert office.ran == []
        await office.clock.show(TWO - YEAR)
        assert office.ran == [TWO - YEAR]


async def test_small_steps_back_put_off_nothing() -> None:
    office = Office()
    hourly(office)
    async with office.running():
        for minute in range(0, 61, 10):
            await office.clock.show(NOON + timedelta(minutes=minute))
            await office.clock.show(NOON + timedelta(minutes=minute, seconds=-1))
    assert len(office.ran) == 1


async def test_job_that_is_wanted_soon_runs_then_and_at_its_other_times() -> None:
    office = Office()
    hourly(office)
    async with office.running():
        office.jobs.soon("job", 60.0)
        office.jobs.soon("job", 90.0)
        await office.clock.show(NOON + timedelta(seconds=59))
        assert office.ran == []
        await office.clock.show(NOON + timedelta(seconds=60))
        await office.clock.show(NOON + timedelta(seconds=90))
        assert office.ran == [NOON + timedelta(seconds=60)]


async def test_job_that_still_runs_starts_again_when_it_has_ended() -> None:
    office = Office()
    office.may_end.clear()
    office.jobs.every("job", office.work, 3600.0)
    async with office.running():
        await office.clock.show(NOON + timedelta(hours=3))
        assert office.ran == [NOON]
        office.may_end.set()
        await office.clock.show(NOON + timedelta(hours=3))
    assert office.ran == [NOON, NOON + timedelta(hours=3)]


async def test_job_that_asks_for_a_pause_at_its_end_gets_it_however_long_it_ran() -> None:
    office = Office()

    async def slow() -> None:
        await office.work()
        office.clock.now += timedelta(hours=2)
        office.jobs.next_in("job", 3600.0)

    office.jobs.every("job", slow, 3600.0)
    async with office.running():
        await office.clock.show(NOON + timedelta(hours=3, seconds=-1))
        assert office.ran == [NOON]
        await office.clock.show(NOON + timedelta(hours=3))
    assert office.ran == [NOON, NOON + timedelta(hours=3)]


async def test_error_of_a_job_ends_all_and_no_run_outlives_them() -> None:
    office = Office()
    office.may_end.clear()
    ended: list[str] = []

    async def lasting() -> None:
        try:
            await office.work()
        finally:
            ended.append("lasting")

    async def broken() -> None:
        await asyncio.sleep(0)
        raise ValueError("junk")

    office.jobs.every("lasting", lasting, 3600.0)
    office.jobs.every("broken", broken, 3600.0)
    with pytest.raises(ValueError, match="junk"):
        await asyncio.wait_for(office.jobs.run(), DEADLINE_S)
    assert ended == ["lasting"]


async def test_clock_that_cannot_be_read_ends_the_work_with_its_error() -> None:
    office = Office()
    office.jobs.every("job", office.work, 3600.0)
    async with office.running() as run:
        office.clock.error = OSError("no clock")
        with pytest.raises(OSError, match="no clock"):
            await asyncio.wait_for(run, DEADLINE_S)


async def test_wakeup_that_was_queued_before_the_end_starts_no_job() -> None:
    office = Office()
    ended = asyncio.Event()

    async def lasting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(LOOK_S)  # the event loop turns while the end of it is awaited
            ended.set()

    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    office.jobs.every("lasting", lasting, 3600.0)
    office.jobs.every("late", office.work, 3600.0, first_s=3600.0)
    async with office.running() as run:
        run.cancel()
        office.jobs.soon("late")  # queues a wakeup, which comes when the runs are being cancelled
        await asyncio.gather(run, return_exceptions=True)
        assert ended.is_set()
    assert office.ran == []
    assert errors == []
