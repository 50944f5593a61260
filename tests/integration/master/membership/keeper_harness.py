"""A partition keeper with its engine on a real ZooKeeper."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from shoal.coordination import Notifications, ZkSession, prepare
from shoal.master.engine.engine import Engine
from shoal.master.membership.partitions import PartitionKeeper
from shoal.master.settings import MasterSettings
from shoal.sql import Database
from tests.support.clock import utc_now
from tests.support.database.databases import migrated
from tests.support.waiting import DEADLINE_S


async def until(condition: Callable[[], object]) -> None:
    """Return as soon as ``condition`` holds."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)


class Master:
    """A keeper, its engine, and what is around them."""

    def __init__(
        self, session: ZkSession, database: Database, notifications: Notifications
    ) -> None:
        self.session, self.database = session, database
        self.engine = Engine(database, lambda _: asyncio.sleep(0), utc_now)
        settings = MasterSettings(initial_rebalance_delay_s=0.0)
        self.keeper = PartitionKeeper(
            session, "m", "host:1", self.engine, notifications, 1, settings
        )

    async def own(self) -> int:
        """Return the epoch once partition 0, which the group gives to this master, is owned."""
        await until(lambda: 0 in self.engine.epochs)
        return self.engine.epochs[0]

    async def raise_epoch(self, epoch: int) -> None:
        """Let the database know of another owner."""
        async with self.database.unit_of_work() as uow:
            await uow.partitions.raise_epochs({0: epoch}, "another")
            await uow.commit()


@pytest.fixture
async def database(sqlite_url: str) -> AsyncIterator[Database]:
    async with migrated(sqlite_url, 1) as database:
        yield database


@asynccontextmanager
async def running(session: ZkSession, database: Database) -> AsyncIterator[Master]:
    await prepare(session, 1)
    async with Notifications(session, lambda _: None) as notifications:
        master = Master(session, database, notifications)
        work = asyncio.create_task(master.keeper.run())
        try:
            async with master.keeper.share:
                yield master
            assert not work.done(), work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


@pytest.fixture
async def master(zk_chroot: str, database: Database) -> AsyncIterator[Master]:
    async with (
        ZkSession(zk_chroot, session_timeout_s=30.0) as session,
        running(session, database) as master,
    ):
        yield master
