"""What may have taken effect is not done again by itself when its process is killed."""

import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import InProcessWorker, descendants, log_text
from tests.integration.worker.http.kit import never
from tests.integration.worker.sql.kit import ENDLESS
from tests.support.fake_master import FakeMaster
from tests.support.servers.http_server import HttpServer
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]


@pytest.fixture
async def worker(cluster: ClusterSettings, master: FakeMaster) -> AsyncIterator[InProcessWorker]:
    async with InProcessWorker(cluster, http_allow="127.0.0.0/8") as worker:
        yield worker


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with HttpServer({"/": never}) as server:
        yield server


def kill_the_process() -> None:
    [process] = [p for p in descendants(os.getpid()) if "shoal.worker.types.child" in p.args]
    os.kill(process.pid, signal.SIGKILL)


async def report_of(master: FakeMaster, number: int) -> pb.Report:
    task = await master.table.ended(number)
    assert task.state == "FAILED"
    assert task.report is not None
    return task.report


@pytest.mark.parametrize(
    ("params", "permanent"),
    [({"method": "POST"}, True), ({"method": "POST", "idempotent": True}, False), ({}, False)],
    ids=["POST", "idempotent", "GET"],
)
async def test_request_whose_process_is_killed_is_sent_again_if_that_does_no_harm(
    master: FakeMaster,
    worker: InProcessWorker,
    server: HttpServer,
    params: dict[str, Any],
    permanent: bool,
) -> None:
    number = await master.submit("HTTP", {"url": server.url, **params})
    await eventually(lambda: server.received)
    kill_the_process()
    report = await report_of(master, number)
    assert report.permanent is permanent
    assert ("may have carried the request out" in report.reason) is permanent


async def test_request_whose_task_is_timed_out_is_not_sent_again(
    master: FakeMaster, worker: InProcessWorker, server: HttpServer
) -> None:
    params = {"url": server.url, "method": "POST", "timeout": "1h"}
    number = await master.submit("HTTP", params, timeout_s=3.0)
    report = await report_of(master, number)
    assert report.permanent is bool(server.received)  # before that, nothing was sent


@pytest.mark.parametrize(
    ("params", "permanent"),
    [
        ({"transaction": "statement"}, True),
        ({"transaction": "statement", "idempotent": True}, False),
        ({"transaction": "task"}, False),
    ],
    ids=["committed", "idempotent", "not committed"],
)
async def test_statements_that_may_be_committed_are_not_run_again(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    tmp_path: Path,
    params: dict[str, Any],
    permanent: bool,
) -> None:
    file = tmp_path / "data.db"
    connection = sqlite3.connect(file)
    connection.execute("create table t (a integer)")
    connection.close()
    number = await master.submit(
        "SQL",
        {"data_source": "db", "sql": f"insert into t values (1); {ENDLESS}", **params},
        data_sources={"db": pb.DataSource(kind="sqlite", database=str(file))},
    )
    await master.table.wait(number, "RUNNING")
    await eventually(lambda: "2/2 with" in log_text(cluster.data, number))
    kill_the_process()
    report = await report_of(master, number)
    assert report.permanent is permanent
    assert ("it is unknown whether it was committed" in report.reason) is permanent
