"""Masters whose database or ZooKeeper comes and goes: nothing is lost, nothing runs twice."""

import asyncio
from collections.abc import Callable

import psycopg
import pytest

from shoal.core.runs.states import WorkflowState
from tests.integration.master.conftest import DIAMOND, PARTITIONS, Bench, all_succeed
from tests.integration.master.manual_worker import working
from tests.support.servers.proxy import TcpProxy


@pytest.mark.parametrize("bench", ["postgresql"], indirect=True)
async def test_database_connections_that_break_all_the_time(bench: Bench) -> None:
    workflow = await bench.publish(DIAMOND)
    broken = 0

    def break_all() -> int:
        url = (bench.cluster.database_url or "").replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchone()
        return int(row[0]) if row else 0

    async with bench.master() as first, bench.master() as second:
        instances = [await bench.start(workflow, f"k{n}") for n in range(10)]
        async with working(await bench.worker("w1")):
            for _ in range(6):
                broken += await asyncio.to_thread(break_all)
                await asyncio.wait([first, second], timeout=0.1)
            await all_succeed(bench, instances)
        assert not first.done()
        assert not second.done()
    assert broken > 6


@pytest.mark.parametrize("trouble", [TcpProxy.cut, TcpProxy.freeze])
async def test_master_without_zookeeper_is_replaced_and_comes_back(
    bench: Bench, zk_proxy: TcpProxy, zk_proxied: str, trouble: Callable[[TcpProxy], None]
) -> None:
    workflow = await bench.publish(DIAMOND)
    # The one that is cut off has a timeout that soon passes.
    dying = bench.cluster.model_copy(update={"zookeeper": zk_proxied, "session_timeout_s": 4.0})
    async with bench.master() as steady, bench.master(dying) as cut:
        await bench.shared_by_two()
        instances = [await bench.start(workflow, f"k{n}") for n in range(10)]
        trouble(zk_proxy)
        async with working(await bench.worker("w1")):
            await all_succeed(bench, instances)
            zk_proxy.heal()
            await bench.shared_by_two()
            more = [await bench.start(workflow, f"m{n}") for n in range(10)]
            await all_succeed(bench, more)
        assert not steady.done()
        assert not cut.done()


async def test_runs_go_on_after_zookeeper_has_lost_all_its_data(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}, "b": {"depends_on": ["a"]}})
    async with bench.database.unit_of_work() as uow:
        await uow.partitions.ensure(PARTITIONS)
        # What a former tree, with a longer history than the present one, has left.
        await uow.partitions.raise_epochs(
            dict.fromkeys(range(PARTITIONS), 10**12), "of the lost tree"
        )
        await uow.commit()
    for key in ("first owner", "its successor"):
        worker = await bench.worker(key)
        async with bench.master():
            instance = await bench.start(workflow, key)
            assert await worker.work(2) == 0
            assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    async with bench.database.unit_of_work(read_only=True) as uow:
        assert {row.epoch for row in await uow.partitions.all()} == {10**12 + 2}
