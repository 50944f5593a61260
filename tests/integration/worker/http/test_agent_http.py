"""HTTP tasks of a real worker: results, outputs, masks, and kills of the task and of the worker."""

import signal
from collections.abc import AsyncIterator

import pytest

from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    WorkerProcess,
    kill,
    log_text,
    the_worker,
    work_folders,
)
from tests.integration.worker.http.kit import dripping, never
from tests.support.fake_master import FakeMaster
from tests.support.servers.http_server import HttpServer, answer, says
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

ALLOW = "127.0.0.0/8"


@pytest.fixture
async def worker(cluster: ClusterSettings, master: FakeMaster) -> AsyncIterator[InProcessWorker]:
    """One that may reach its own machine, where the servers of these tests are."""
    async with InProcessWorker(cluster, http_allow=ALLOW) as worker:
        yield worker


async def test_answer_becomes_outputs_and_secrets_stay_secret(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, server: HttpServer
) -> None:
    server.handlers["/"] = says(answer(200, '{"id": 7, "token": "hush-hush"}'))
    number = await master.submit(
        "HTTP",
        {
            "url": f"{server.url}/?key=hush-hush",
            "auth": {"bearer": "hush-hush"},
            "outputs": {"id": "$.id", "token": "$.token"},
            "log_body": True,
        },
        secrets={"key": "hush-hush"},
    )
    task = await master.table.ended(number)
    assert task.state == "SUCCEEDED"
    assert task.report is not None
    assert dict(task.report.outputs) == {"id": "7", "token": "***"}
    assert server.received[0].headers["authorization"] == "Bearer hush-hush"
    assert log_text(cluster.data, number).splitlines() == [
        f"GET {server.url}/?key=*** (accept, authorization, user-agent)",
        "200 Status-200, 31 bytes",
        '| {"id": 7, "token": "***"}',
    ]


async def test_failure_that_would_be_the_same_says_so_by_its_exit_code(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, server: HttpServer
) -> None:
    missing = await master.submit("HTTP", {"url": f"{server.url}/missing"})
    server.handlers["/busy"] = says(answer(503))
    busy = await master.submit("HTTP", {"url": f"{server.url}/busy"})
    refused = await master.submit("HTTP", {"url": "http://169.254.169.254/latest/meta-data"})
    codes = {}
    for number in (missing, busy, refused):
        task = await master.table.ended(number)
        assert task.state == "FAILED"
        assert task.report is not None
        codes[number] = task.report.exit_code
    assert codes == {missing: 65, busy: 1, refused: 65}
    assert "shoal: the status is 404, not 2xx" in log_text(cluster.data, missing)
    assert "link-local" in log_text(cluster.data, refused)


async def test_worker_without_the_setting_refuses_its_own_machine(
    master: FakeMaster, cluster: ClusterSettings, server: HttpServer
) -> None:
    async with InProcessWorker(cluster):
        number = await master.submit("HTTP", {"url": server.url})
        assert (await master.table.ended(number)).state == "FAILED"
    assert server.received == []
    assert "may not be reached" in log_text(cluster.data, number)


async def test_kill_ends_the_request_at_once(
    master: FakeMaster,
    worker: InProcessWorker,
    channels: Channels,
    cluster: ClusterSettings,
    server: HttpServer,
) -> None:
    server.handlers["/"] = never
    number = await master.submit("HTTP", {"url": server.url, "method": "POST", "timeout": "1h"})
    await eventually(lambda: server.received)
    await kill(channels, await the_worker(master.session), number)
    task = await master.table.ended(number)
    assert task.state == "KILLED"
    assert task.report is not None
    assert task.report.reason == "stopped by alice"
    assert log_text(cluster.data, number).splitlines()[-1] == "shoal: cancelling"
    await eventually(lambda: server.open == 0)
    await eventually(lambda: not work_folders(cluster.data))


async def test_timeout_of_the_task_ends_the_request(
    master: FakeMaster, worker: InProcessWorker, server: HttpServer
) -> None:
    server.handlers["/"] = dripping(b"HTTP/1.1 200 OK\r\nX-A: ")
    number = await master.submit("HTTP", {"url": server.url, "timeout": "1h"}, timeout_s=2.0)
    assert (await master.table.ended(number)).state == "FAILED"
    await eventually(lambda: server.open == 0)


async def test_request_dies_with_its_worker(
    master: FakeMaster, cluster: ClusterSettings, server: HttpServer
) -> None:
    server.handlers["/"] = never
    with WorkerProcess(cluster, http_allow=ALLOW) as worker:
        number = await master.submit("HTTP", {"url": server.url, "timeout": "1h"})
        await eventually(lambda: server.received)
        assert master.table.tasks[number].state == "RUNNING"
        worker.signal(signal.SIGKILL)
        await worker.wait()
        await eventually(lambda: server.open == 0)
