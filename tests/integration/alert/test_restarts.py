"""An alert server outlives every restart of its database, whatever it is doing."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from shoal.coordination import startup
from shoal.runtime.settings import ClusterSettings
from shoal.sql import Database
from shoal.sql.errors import DatabaseUnavailable
from shoal.sql.startup import when_there
from tests.integration.alert.conftest import Site
from tests.support.database.postgresql import (
    PostgresqlMissing,
    RestartableServer,
    restartable_server,
)
from tests.support.programs import lacking
from tests.support.servers.http_server import HttpServer, answer, says
from tests.support.waiting import DEADLINE_S, SERVICE_SESSION_S

_DOWN_S = 3.0  # longer than the pause between two looks for a first rule


@pytest.fixture
def server() -> Iterator[RestartableServer]:
    try:
        with restartable_server() as found:
            yield found
    except PostgresqlMissing as error:
        lacking(error)


@pytest.fixture
async def site(server: RestartableServer, zk_chroot: str, tmp_path: Path) -> AsyncIterator[Site]:
    cluster = ClusterSettings(
        data=tmp_path,
        zookeeper=zk_chroot,
        session_timeout_s=SERVICE_SESSION_S,
        database_url=server.url,
    )
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(cluster.database))
        await database.migrate()
        sink = await stack.enter_async_context(HttpServer({"/hook": says(answer(200, "ok"))}))
        yield Site(cluster, database, sink)


async def _restart(server: RestartableServer) -> None:
    await asyncio.to_thread(server.stop)
    await asyncio.sleep(_DOWN_S)
    await asyncio.to_thread(server.start)


async def _define(site: Site) -> None:
    """Define all that a message needs; connections of the test are as dead as any other."""
    for what in (site.channel, site.receiver, site.rule):
        await when_there(site.database, what)


async def test_restart_while_no_rule_is_defined(site: Site, server: RestartableServer) -> None:
    async with site.server() as task:
        await asyncio.sleep(0.5)  # it waits for a first definition
        await _restart(server)
        await asyncio.sleep(0.5)
        assert not task.done(), task.result()
        await _define(site)
        await site.fails(run=1)
        [facts] = await site.until(1)
        assert [one["instance_id"] for one in facts["alerts"]] == [1]


async def test_restart_between_the_first_rule_and_the_jobs(
    site: Site, server: RestartableServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server goes down when ZooKeeper has been reached, just before the database is asked."""
    await _define(site)
    connect, gone = startup.connect_when_there, []

    async def connect_and_lose(make: object) -> object:
        session = await connect(make)  # type: ignore[arg-type]
        await asyncio.to_thread(server.stop)
        gone.append(True)
        return session

    monkeypatch.setattr("shoal.alert.main.connect_when_there", connect_and_lose)
    async with site.server() as task:
        async with asyncio.timeout(DEADLINE_S):
            while not gone:
                await asyncio.sleep(0.05)
        await asyncio.sleep(_DOWN_S)
        assert not task.done(), task.result()
        await asyncio.to_thread(server.start)
        await when_there(site.database, lambda: site.fails(run=1))
        await site.until(1)


async def test_start_while_the_database_is_down_and_restart_at_work(
    site: Site, server: RestartableServer
) -> None:
    await _define(site)
    await asyncio.to_thread(server.stop)
    async with site.server() as task:
        await asyncio.sleep(_DOWN_S)
        assert not task.done(), task.result()
        await asyncio.to_thread(server.start)
        await when_there(site.database, lambda: site.fails(run=1))
        await site.until(1)
        await site.settled()  # a message under way would be sent again
        await _restart(server)
        await when_there(site.database, lambda: site.fails("other", run=2))
        found = await site.until(2)
        assert not task.done(), task.result()
    assert {alert["instance_id"] for facts in found for alert in facts["alerts"]} == {1, 2}


async def test_errors_that_do_not_pass_are_raised(site: Site) -> None:
    calls = []

    async def fail() -> None:
        calls.append(1)
        raise DatabaseUnavailable("away") if len(calls) == 1 else ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await when_there(site.database, fail)
    assert len(calls) == 2
