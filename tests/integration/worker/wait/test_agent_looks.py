"""Looks on a worker: what its report says, also after the agent has died, and what it holds."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog

from shoal.proto import shoal_pb2 as pb
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    WorkerProcess,
    eventually,
    log_text,
    spool,
)
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S

pytest_plugins = ["tests.integration.worker.agent.fixtures"]


@pytest.fixture
async def worker(cluster: ClusterSettings, master: FakeMaster) -> AsyncIterator[InProcessWorker]:
    async with InProcessWorker(cluster, slots=1) as worker:
        yield worker


async def test_look_that_finds_nothing_is_reported_with_its_answer_and_the_next_one(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, tmp_path: Path
) -> None:
    params = {"path": str(tmp_path / "in.csv"), "every": "10s", "back_off": 2}
    number = await master.submit("WAIT_FILE", params, looks=2, waiting_since=1.7e9)
    report = (await master.table.ended(number)).report
    assert report is not None
    assert (report.kind, report.again_s, report.exit_code) == (pb.RESCHEDULED, 40, 75)
    assert report.reason == f"{tmp_path}/in.csv: nothing is there"
    assert not report.permanent
    await master.unclaimed(number)  # so is its slot, the only one:
    (tmp_path / "in.csv").write_text("abc")
    found = await master.submit("WAIT_FILE", params, attempt=4, looks=3)
    outputs = (await master.table.ended(found)).report
    assert outputs is not None
    assert outputs.outputs["file"] == f"{tmp_path}/in.csv"
    assert (outputs.outputs["size"], outputs.outputs["count"]) == ("3", "1")
    log = log_text(cluster.data, number)
    assert "not yet" in log
    assert "the next look is in 40" in log


async def test_look_that_cannot_be_made_is_a_failure(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    params = {"data_source": "db", "sql": "select 1"}  # of which the payload has none
    with structlog.testing.capture_logs() as logs:
        number = await master.submit("WAIT_SQL", params)
        report = (await master.table.ended(number)).report
    assert report is not None
    assert (report.kind, report.permanent) == (pb.FAILED, True)
    # The settling lacks the data source, too: further tries would only hold the slot.
    assert [one["tries"] for one in logs if one["event"] == "settling failed"] == [1]


async def test_look_is_reported_as_one_by_the_next_life_of_the_worker(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    params = {"path": str(tmp_path / "in.csv"), "every": "10s"}
    with WorkerProcess(cluster) as first:
        number = await master.submit("WAIT_FILE", params)
        await master.table.wait(number, "CLAIMED", "RUNNING")
        master.open.clear()  # nothing of it is reported in this life
        await eventually(lambda: str(number) in spool(cluster.data))
        first.signal(signal.SIGKILL)
        await first.wait()
    master.open.set()
    with WorkerProcess(cluster):
        report = (await master.table.ended(number, 2 * DEADLINE_S)).report
    assert report is not None
    assert report.kind == pb.RESCHEDULED  # when to look next is the master's to choose then
