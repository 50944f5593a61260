"""Whatever dies around a Spark Connect server of a worker: nothing goes on, and nobody hangs."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from shoal.worker.spark import server as server_module
from shoal.worker.spark import servers as servers_module
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    Process,
    WorkerProcess,
    alive,
    descendants,
    kill,
    the_worker,
)
from tests.integration.worker.spark.kit import Endless, ask, ended, servers
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]
pytestmark = pytest.mark.usefixtures("java")

PROGRAM = """\
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate().sql({!r}).collect()
"""


async def busy(endless: Endless, pid: int | None = None) -> Process:
    """Return the one server, once it is at work."""
    await endless.runs()
    await eventually(clients)
    [server] = servers(pid)
    return server


def clients() -> list[Process]:
    """Return the processes of attempts."""
    below = descendants(os.getpid())
    return [p for p in below if "shoal.worker.types.child" in p.args or "script.py" in p.args]


async def test_killed_tasks_leave_nothing_running_at_the_server(
    master: FakeMaster, worker: InProcessWorker, channels: Channels, endless: Endless
) -> None:
    member = await the_worker(master.session)
    by_driver = await ask(master, endless.sql)
    server = await busy(endless)
    await kill(channels, member, by_driver)
    report = await ended(master, by_driver)
    assert report.kind == pb.KILLED, report.reason
    await endless.has_stopped()

    params = {"script": PROGRAM.format(endless.sql), "spark": "connect"}
    by_program = await master.submit("PYTHON", params, tag="t-9")
    await busy(endless)
    await kill(channels, member, by_program)
    report = await ended(master, by_program)
    assert report.kind == pb.KILLED, report.reason
    await endless.has_stopped()

    # The client is killed without a chance to say anything.
    again = await ask(master, endless.sql)
    await busy(endless)
    for client in clients():
        client.kill()
    report = await ended(master, again)
    assert report.kind == pb.FAILED
    assert "may still run" not in report.reason
    await endless.has_stopped()
    assert [one.pid for one in servers()] == [server.pid]


async def test_server_that_dies_under_several_tasks_interrupts_them_all(
    master: FakeMaster, worker: InProcessWorker, endless: Endless, tmp_path: Path
) -> None:
    another = Endless(tmp_path / "other beats")
    numbers = [await ask(master, one.sql) for one in (endless, another)]
    await another.runs()
    first = await busy(endless)
    first.kill()
    # Without their claims, and without a result, masters declare them LOST: they run again.
    async with asyncio.timeout(DEADLINE_S):
        while await master.queue.claimed(numbers):
            await asyncio.sleep(0.05)
    assert clients() == []
    assert [master.table.tasks[number].report for number in numbers] == [None, None]
    report = await ended(master, await ask(master, "select 1"))
    assert report.kind == pb.SUCCEEDED
    [new] = servers()
    assert new.pid != first.pid


async def test_server_that_dies_under_its_only_task_fails_it(
    master: FakeMaster, worker: InProcessWorker, endless: Endless
) -> None:
    number = await ask(master, endless.sql)
    server = await busy(endless)
    server.kill()
    report = await ended(master, number)
    assert report.kind == pb.FAILED
    assert "lost" in report.reason
    assert "may still run" not in report.reason
    report = await ended(master, await ask(master, "select 1"))
    assert report.kind == pb.SUCCEEDED
    [new] = servers()
    assert new.pid != server.pid


async def test_server_without_memory_ends_and_says_so(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    async with InProcessWorker(cluster, spark_memory_mb=500):
        hungry = "select length(concat_ws(',', collect_list(id))) from range(0, 200000000, 1, 1)"
        report = await ended(master, await ask(master, hungry))
        assert report.kind == pb.FAILED
        await eventually(lambda: servers() == [])


async def test_server_that_answers_nobody_is_ended(
    master: FakeMaster,
    worker: InProcessWorker,
    endless: Endless,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(servers_module, "CHECK_EVERY_S", 0.2)
    monkeypatch.setattr(server_module, "CHECK_TIMEOUT_S", 1.0)
    number = await ask(master, endless.sql)
    server = await busy(endless)
    os.kill(server.pid, signal.SIGSTOP)
    report = await ended(master, number)
    assert report.kind == pb.FAILED
    assert not alive(server.pid)


async def test_nothing_is_left_of_a_killed_worker(
    master: FakeMaster, cluster: ClusterSettings, endless: Endless
) -> None:
    with WorkerProcess(cluster) as process:
        await ask(master, endless.sql)
        server = await busy(endless, process.pid)
        process.signal(signal.SIGKILL)
        await eventually(lambda: not alive(server.pid))
