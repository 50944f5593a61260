"""Masters that start before their database does: they wait, and say so once."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import make_url
from structlog.testing import capture_logs

from shoal.master.main import serve
from shoal.master.settings import MasterSettings
from shoal.runtime.settings import ClusterSettings
from shoal.sql.errors import DatabaseRefused, InvalidDatabaseUrl
from tests.integration.master.conftest import DIAMOND, Bench
from tests.support.servers.proxy import TcpProxy, behind
from tests.support.waiting import DEADLINE_S, eventually

pytestmark = pytest.mark.parametrize("bench", ["postgresql"], indirect=True)
WAITING = "waiting for the database"


@pytest.fixture
async def proxy(bench: Bench) -> AsyncIterator[TcpProxy]:
    """A proxy in front of a database that cannot be reached."""
    folder = make_url(bench.cluster.database).query["host"]
    async with TcpProxy(f"{folder}/.s.PGSQL.5432", 0) as proxy:
        proxy.cut()
        yield proxy


def with_url(cluster: ClusterSettings, url: str) -> ClusterSettings:
    return cluster.model_copy(update={"database_url": url})


async def test_master_waits_for_its_database_and_goes_on_when_it_is_there(
    bench: Bench, proxy: TcpProxy
) -> None:
    workflow = await bench.publish(DIAMOND)
    with capture_logs() as logs:

        def warnings() -> int:
            return sum(line["event"].startswith(WAITING) for line in logs)

        async with bench.master(behind(proxy, bench.cluster)) as master:
            await eventually(warnings)
            tries = proxy.refused
            await eventually(lambda: proxy.refused > tries + 1)
            assert not master.done()
            proxy.heal()
            instance = await bench.start(workflow)
            assert instance.id
        assert warnings() == 1
    [line] = [line for line in logs if line["event"].startswith(WAITING)]
    assert f"127.0.0.1:{proxy.port}" in line["database"]
    assert line["error"]


async def test_master_that_waits_for_its_database_ends_when_it_is_told(
    bench: Bench, proxy: TcpProxy
) -> None:
    stop = asyncio.Event()
    with capture_logs() as logs:
        cluster = behind(proxy, bench.cluster)
        master = asyncio.create_task(serve(MasterSettings(), cluster, stop))
        await eventually(lambda: any(line["event"].startswith(WAITING) for line in logs))
        stop.set()
        async with asyncio.timeout(DEADLINE_S):
            await master


@pytest.mark.parametrize("name", ["database", "user", "driver"])
async def test_address_that_can_never_work_ends_a_master_at_once(bench: Bench, name: str) -> None:
    url = make_url(bench.cluster.database)
    wrong = {
        "database": url.set(database="unknown"),
        "user": url.set(username="nobody-here"),
        "driver": url.set(drivername="oracle"),
    }[name]
    cluster = with_url(bench.cluster, wrong.render_as_string(hide_password=False))
    error = InvalidDatabaseUrl if name == "driver" else DatabaseRefused
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(error):
            await serve(MasterSettings(), cluster, asyncio.Event())
