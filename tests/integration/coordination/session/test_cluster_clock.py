"""The clock of a process against those of a real ensemble and other sources."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from shoal.coordination import ClusterClock, ZkSession
from shoal.coordination.cluster.cluster_clock import read_clocks
from shoal.core.errors import ShoalError
from shoal.core.timing.cluster_time import ClockReading
from shoal.sql import Database
from tests.integration.coordination.conftest import eventually

HOUR_S = 3600.0
CLOSE = timedelta(seconds=60)  # beside an hour


class Jumping:
    """This machine's clocks, of which the wall clock can be set."""

    def __init__(self) -> None:
        self.off_s = 0.0

    def __call__(self) -> ClockReading:
        true = read_clocks()
        return ClockReading(true.wall_s + self.off_s, true.since_boot_s)


def is_right(clock: ClusterClock) -> bool:
    return abs(clock() - datetime.now(UTC)) < CLOSE


async def true_time() -> datetime:
    return datetime.now(UTC)


async def test_clock_that_jumps_is_not_followed_and_named(session: ZkSession) -> None:
    read = Jumping()
    async with ClusterClock(session, {"database": true_time}, read, every_s=0.05) as clock:
        read.off_s = HOUR_S
        assert is_right(clock)
        await eventually(lambda: clock.differences.keys() == {"own"})
        await clock.compare()
        assert is_right(clock)
        read.off_s = 0.0
        await eventually(lambda: not clock.differences)
        assert is_right(clock)


async def test_clock_that_is_wrong_from_the_start_is_outvoted(session: ZkSession) -> None:
    read = Jumping()
    read.off_s = -HOUR_S
    async with ClusterClock(session, {"database": true_time}, read) as clock:
        assert is_right(clock)
        assert clock.differences.keys() == {"own"}


async def test_source_that_fails_or_is_silent_leaves_the_others(session: ZkSession) -> None:
    async def fails() -> datetime:
        raise ShoalError("no answer today")

    async def silent() -> datetime:
        await asyncio.Event().wait()
        raise AssertionError

    read = Jumping()
    sources = {"failing": fails, "silent": silent, "right": true_time}
    async with ClusterClock(session, sources, read) as clock:
        read.off_s = HOUR_S
        await clock.compare()
        assert is_right(clock)


async def test_stamp_of_the_ensemble_is_asked_for_with_one_write(session: ZkSession) -> None:
    async with ClusterClock(session) as clock:
        before = (await session.get("/clock")).stat.version
        await clock.compare()
        assert (await session.get("/clock")).stat.version == before + 1
        await session.delete("/clock")
        await clock.compare()
        assert (await session.get("/clock")).data == b""


async def test_postgresql_tells_its_time(migrated_postgresql_url: str) -> None:
    async with Database(migrated_postgresql_url) as database:
        (ask,) = database.clocks.values()
        assert abs((await ask()).timestamp() - time.time()) < HOUR_S


async def test_sqlite_has_no_clock_of_its_own(tmp_path: Path) -> None:
    assert not Database(f"sqlite:///{tmp_path}/shoal.db").clocks
