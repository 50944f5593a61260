"""A worker that reaches ZooKeeper and not its masters keeps no tasks from others, and recovers."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.proto.tls import TlsFiles, create_identity
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import InProcessWorker, the_worker
from tests.support.fake_master import FakeMaster
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

PATIENCE_S = 0.5


@asynccontextmanager
async def behind_proxy(master: FakeMaster, partitions: range = range(4)) -> AsyncIterator[TcpProxy]:
    """Let ``master`` own ``partitions`` under the address of a proxy."""
    host, port = master.address.rsplit(":", 1)
    async with TcpProxy(host, int(port)) as proxy:
        for partition in partitions:
            if partition in master.owned:
                await master.vacate(partition)
        master.address = proxy.address
        for partition in partitions:
            await master.own(partition)
        yield proxy


async def published(master: FakeMaster, key: str) -> Any:
    """What the only worker publishes under ``key``, once it does."""
    async with asyncio.timeout(DEADLINE_S):
        while key not in (data := (await the_worker(master.session)).data):
            await asyncio.sleep(0.05)
    return data[key]


async def told_no_more(master: FakeMaster, key: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while key in (await the_worker(master.session)).data:
            await asyncio.sleep(0.05)


async def test_worker_that_no_master_answers_leaves_the_queue_to_a_sound_one(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    strange = tmp_path / "strange"
    strange.mkdir()
    create_identity(strange / "tls")  # of another authority: no master will talk to it
    cut = cluster.model_copy(update={"data": strange})
    async with InProcessWorker(cut, name="cut"):
        numbers = await master.submit_many(8, "SHELL", {"script": "true"})
        began = time.monotonic()
        async with asyncio.timeout(DEADLINE_S):
            while not await master.queue.claimed(numbers):
                await asyncio.sleep(0.02)
        assert master.asked == []  # it is cut off indeed
        async with InProcessWorker(cluster, name="sound"):
            for number in numbers:
                task = await master.table.ended(number)
                assert (task.state, task.worker[:5]) == ("SUCCEEDED", "sound")
            print(f"all ended after {time.monotonic() - began:.1f} s")  # noqa: T201 - a figure
        more = await master.submit("SHELL", {"script": "true"})
        await asyncio.sleep(3 * PATIENCE_S)  # no other worker is there now
        assert await master.queue.claimed([more]) == set()  # it claims nothing any more
        assert await published(master, "paused") == f"cannot reach master {master.address}"
        assert await published(master, "unreachable") == [master.address]


@pytest.mark.parametrize("cut_off", [TcpProxy.freeze, TcpProxy.cut], ids=["silent", "refused"])
async def test_claims_are_released_while_no_master_answers_and_run_when_one_does(
    cut_off: Any, master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    master.runs_lost_again = (
        True  # requests may get through late, when they are not waited for any more
    )
    async with (
        behind_proxy(master) as proxy,
        InProcessWorker(cluster, slots=2, fetch_patience_s=PATIENCE_S),
    ):
        before = await master.submit("SHELL", {"script": "true"})
        await master.table.ended(before)
        cut_off(proxy)
        numbers = await master.submit_many(6, "SHELL", {"script": f"echo x >>'{ledger}'"})
        why = await published(master, "paused")
        assert why == f"cannot reach master {proxy.address}"
        async with asyncio.timeout(DEADLINE_S):
            while await master.queue.claimed(numbers) or await master.queue.depth("default") < 6:
                await asyncio.sleep(0.02)
        assert not ledger.exists()
        proxy.heal()
        for number in numbers:
            assert (await master.table.ended(number)).state == "SUCCEEDED"
        await told_no_more(master, "paused")
        assert "unreachable" not in (await the_worker(master.session)).data
    assert ledger.read_text() == 6 * "x\n"


async def test_tasks_of_masters_that_answer_go_on_behind_those_of_one_that_does_not(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    for partition in (0, 1):
        await master.disown(partition)
        await master.vacate(partition)
    tls = TlsFiles.of(cluster)
    async with (
        FakeMaster(
            cluster.zookeeper, tls, master.table, master_id="cut", partitions=range(0)
        ) as cut,
        behind_proxy(cut, range(2)) as proxy,
    ):
        proxy.freeze()
        numbers = await master.submit_many(40, "SHELL", {"script": "true"}, put=False)
        tasks = [master.table.tasks[number] for number in numbers]
        mute = [task for task in tasks if task.entry.partition < 2]
        others = [task for task in tasks if task.entry.partition >= 2]
        await master.queue.put([task.entry for task in mute])  # at the head, more than slots
        for task in tasks:
            task.put = True
        async with InProcessWorker(cluster, slots=2, fetch_patience_s=PATIENCE_S):
            assert await published(master, "unreachable") == [proxy.address]
            for task in others:
                await master.table.ended(task.entry.task_instance_id)
            assert {task.state for task in mute} == {"QUEUED"}
            assert "paused" not in (await the_worker(master.session)).data
            ids = [task.entry.task_instance_id for task in mute]
            async with asyncio.timeout(DEADLINE_S):
                while await master.queue.claimed(ids):  # from before it knew
                    await asyncio.sleep(0.02)
            for _ in range(20):
                assert await master.queue.claimed(ids) == set()  # it leaves them alone
                await asyncio.sleep(0.05)
            proxy.heal()
            for task in mute:
                await master.table.ended(task.entry.task_instance_id)
            await told_no_more(master, "unreachable")


async def test_claims_of_a_master_that_has_gone_for_good_go_to_its_successor(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    async with (
        behind_proxy(master) as proxy,
        InProcessWorker(cluster, fetch_patience_s=PATIENCE_S),
    ):
        proxy.cut()
        numbers = await master.submit_many(4, "SHELL", {"script": "true"})
        await published(master, "paused")
        async with FakeMaster(
            cluster.zookeeper,
            TlsFiles.of(cluster),
            master.table,
            master_id="b",
            partitions=range(0),
        ) as successor:
            for partition in range(4):
                await master.disown(partition)
                await master.vacate(partition)
                await successor.own(partition)
            for number in numbers:
                await master.table.ended(number)
            await told_no_more(master, "paused")
