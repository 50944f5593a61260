"""Masters whose database falls silent: for ever on old connections, for one of them, for all."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest
from sqlalchemy import make_url

from shoal.coordination import Members, read_group
from shoal.coordination.cluster import layout
from tests.integration.master.conftest import DIAMOND, PARTITIONS, Bench, all_succeed
from tests.integration.master.manual_worker import working
from tests.support.servers.proxy import TcpProxy, behind
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S

GROUP = layout.MASTERS_GROUP

pytestmark = pytest.mark.parametrize("bench", ["postgresql"], indirect=True)


@pytest.fixture
async def proxies(bench: Bench) -> AsyncIterator[list[TcpProxy]]:
    """Two proxies in front of the database, one for each master."""
    folder = make_url(bench.cluster.database).query["host"]
    async with AsyncExitStack() as stack:
        proxies = [TcpProxy(f"{folder}/.s.PGSQL.5432", 0) for _ in range(2)]
        yield [await stack.enter_async_context(proxy) for proxy in proxies]


async def said_of_database(bench: Bench) -> list[Mapping[str, Any]]:
    """What the masters say, in no particular order."""
    members = await Members(bench.session, layout.MASTERS).refresh()
    return [member.data["database"] for member in members.values()]


async def stored_owners(bench: Bench) -> set[str | None]:
    """Return who owns partitions, as the database says."""
    async with bench.database.unit_of_work(read_only=True) as uow:
        return {row.owner for row in await uow.partitions.all()}


async def owned_by_one(bench: Bench) -> str:
    """Wait until one master owns all partitions; return which."""
    async with asyncio.timeout(DEADLINE_S):
        while len(found := await bench.owners()) != 1 or None in found:
            await asyncio.sleep(0.02)
    [owner] = found
    assert owner is not None
    return owner


async def test_work_goes_on_after_a_failover_without_a_farewell(
    bench: Bench, proxies: list[TcpProxy]
) -> None:
    workflow = await bench.publish(DIAMOND)
    first, second = (behind(proxy, bench.cluster) for proxy in proxies)
    async with bench.master(first) as one, bench.master(second) as two:
        await bench.shared_by_two()
        owners = await bench.owners()
        async with working(await bench.worker("w1")):
            instances = [await bench.start(workflow, f"k{n}") for n in range(10)]
            for proxy in proxies:
                proxy.strand()
            instances += [await bench.start(workflow, f"m{n}") for n in range(10)]
            await all_succeed(bench, instances)
        assert await bench.owners() == owners  # new connections were all it took
        assert not one.done()
        assert not two.done()


@pytest.mark.parametrize("trouble", [TcpProxy.cut, TcpProxy.freeze])
async def test_master_without_the_database_gives_its_partitions_to_one_that_has_it(
    bench: Bench, proxies: list[TcpProxy], trouble: Any
) -> None:
    workflow = await bench.publish(DIAMOND)
    first, second = (behind(proxy, bench.cluster) for proxy in proxies)
    async with bench.master(first) as cut, bench.master(second) as steady:
        await bench.shared_by_two()
        async with working(await bench.worker("w1")):
            trouble(proxies[0])
            instances = [await bench.start(workflow, f"k{n}") for n in range(10)]
            await all_succeed(bench, instances)
            await owned_by_one(bench)
            async with asyncio.timeout(DEADLINE_S):  # it says so when it has left
                while sorted(
                    (one["answers"], one["shares"]) for one in await said_of_database(bench)
                ) != [(False, False), (True, True)]:
                    await asyncio.sleep(0.02)
            proxies[0].heal()
            await bench.shared_by_two()
            more = [await bench.start(workflow, f"m{n}") for n in range(10)]
            await all_succeed(bench, more)
        assert not cut.done()
        assert not steady.done()


async def test_database_that_is_away_from_all_moves_nothing(
    bench: Bench, proxies: list[TcpProxy]
) -> None:
    workflow = await bench.publish(DIAMOND)
    timeout_s = 4.0
    settings = bench.cluster.model_copy(update={"session_timeout_s": timeout_s})
    first, second = (behind(proxy, settings) for proxy in proxies)
    async with bench.master(first), bench.master(second):
        await bench.shared_by_two()
        before = (await read_group(bench.session, GROUP)).generation
        for proxy in proxies:
            proxy.freeze()
        await asyncio.sleep(3 * timeout_s)
        assert [one["answers"] for one in await said_of_database(bench)] == [False, False]
        assert [one["shares"] for one in await said_of_database(bench)] == [True, True]
        assert (await read_group(bench.session, GROUP)).generation == before
        for proxy in proxies:
            proxy.heal()
        async with working(await bench.worker("w1")):
            instances = [await bench.start(workflow, f"k{n}") for n in range(PARTITIONS)]
            await all_succeed(bench, instances)


async def test_master_without_the_database_stops_when_it_is_told(
    bench: Bench, proxies: list[TcpProxy]
) -> None:
    workflow = await bench.publish(DIAMOND)
    settings = bench.cluster.model_copy(update={"session_timeout_s": STEADY_SESSION_S})
    async with bench.master(behind(proxies[0], settings)):
        async with asyncio.timeout(DEADLINE_S):
            while len(owners := await stored_owners(bench)) != 1 or None in owners:
                await asyncio.sleep(0.02)
        await bench.start(workflow)
        proxies[0].freeze()
        began_s = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began_s < settings.session_timeout_s
