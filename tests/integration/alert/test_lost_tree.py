"""ZooKeeper loses its data, and its numbers begin anew: alerts go on, one server at each job."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from shoal.alert.jobs.epochs import epoch_in_database
from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import ZkSession, znodes
from shoal.core.alerts.shares import ALERT_GROUP, SHARES, job_of
from shoal.runtime.settings import ClusterSettings
from shoal.sql import Database
from shoal.sql.errors import JobTaken
from shoal.sql.repositories.alerts.jobs import READING
from tests.integration.alert.conftest import Site
from tests.support.database.databases import migrated_url
from tests.support.servers.http_server import HttpServer, answer, says
from tests.support.waiting import DEADLINE_S, SERVICE_SESSION_S
from tests.support.zookeeper.server import wipe

_CHANGES = 1_000  # more than it takes to start an alert server


async def _wiped(server: ZooKeeperServer) -> None:
    """Let the server come back with nothing; return when all jobs have owners again."""
    await asyncio.to_thread(wipe, server)
    owners = [f"{znodes.jobs(ALERT_GROUP)}/{job_of(share)}/owner" for share in range(SHARES)]
    owners.append(f"{znodes.jobs(ALERT_GROUP)}/{READING}/owner")
    async with (
        asyncio.timeout(DEADLINE_S),
        ZkSession(server.address, session_timeout_s=SERVICE_SESSION_S) as session,
    ):
        while not all([await session.exists(path) for path in owners]):
            await asyncio.sleep(0.1)


@pytest.fixture
async def fragile(
    request: pytest.FixtureRequest, own_server: ZooKeeperServer, tmp_path: Path
) -> AsyncIterator[Site]:
    """The site with a ZooKeeper of its own, which has seen some changes."""
    async with ZkSession(own_server.address, session_timeout_s=SERVICE_SESSION_S) as session:
        for number in range(_CHANGES):
            await session.create(f"/changes-{number}", b"")
    cluster = ClusterSettings(
        data=tmp_path,
        zookeeper=own_server.address,
        session_timeout_s=SERVICE_SESSION_S,
        database_url=migrated_url(request, "sqlite"),
    )
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(cluster.database))
        sink = await stack.enter_async_context(HttpServer({"/hook": says(answer(200, "ok"))}))
        yield Site(cluster, database, sink)


async def test_alerts_go_on_after_zookeeper_lost_its_data(
    fragile: Site, own_server: ZooKeeperServer
) -> None:
    await fragile.channel()
    await fragile.receiver()
    await fragile.rule()
    async with fragile.server(), fragile.server():
        await fragile.fails("before", run=1)
        await fragile.until(1)
        await _wiped(own_server)
        await fragile.fails("after", run=2)
        await fragile.until(2)
        # And once more: what was superseded is superseded again.
        await _wiped(own_server)
        await fragile.fails("again", run=3)
        await fragile.until(3)
        deliveries = await fragile.settled(3)
    assert [(one.state, one.tries) for one in deliveries] == [("SENT", 1)] * 3


class _Node:
    """What ZooKeeper says of an owner node."""

    def __init__(self, epoch: int | None) -> None:
        self.epoch = epoch

    async def confirmed(self, job: str) -> int | None:
        return self.epoch


async def _stored(site: Site, epoch: int) -> None:
    async with site.database.unit_of_work() as uow:
        await uow.alert_jobs.begin("send-0", epoch)
        await uow.commit()


async def test_epoch_of_a_living_successor_is_not_superseded(site: Site) -> None:
    await _stored(site, 9)
    for node in (_Node(None), _Node(9)):  # we were replaced: by nobody yet, or by the successor
        with pytest.raises(JobTaken):
            await epoch_in_database(site.database, node, "send-0", 5)
    assert await epoch_in_database(site.database, _Node(9), "send-0", 9) == 9
    assert await epoch_in_database(site.database, _Node(12), "send-0", 12) == 12


async def test_of_two_that_supersede_one_does(site: Site) -> None:
    await _stored(site, 9)

    class Slow(_Node):
        """It has read what is stored, and another server is quicker."""

        async def confirmed(self, job: str) -> int | None:
            assert await epoch_in_database(site.database, _Node(3), job, 3) == 10
            return self.epoch

    with pytest.raises(JobTaken):
        await epoch_in_database(site.database, Slow(2), "send-0", 2)
    async with site.database.unit_of_work() as uow:
        await uow.alert_jobs.require("send-0", 10)
        with pytest.raises(JobTaken):
            await uow.alert_jobs.require("send-0", 9)
