"""FLINK tasks of a worker: what it reports is true of the cluster."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shoal.core.data_sources import DataSource
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.proto.data_sources import to_message
from shoal.runtime.settings import ClusterSettings
from tests.flink.conftest import Flink
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    descendants,
    kill,
    log_text,
    the_worker,
)
from tests.support.fake_master import FakeMaster
from tests.support.storage import put_resource
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]


async def submit(
    master: FakeMaster, source: DataSource, tag: str, jar: str, *arguments: str, **more: Any
) -> int:
    params = {
        "data_source": source.name,
        "jar": jar,
        "main_class": "Jobs",
        "arguments": list(arguments),
    }
    return await master.submit(
        "FLINK", params, tag=tag, data_sources={source.name: to_message(source)}, **more
    )


async def test_jar_that_is_a_resource_of_the_project(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, flink: Flink, jar: Path
) -> None:
    tag = flink.new_tag("resource")
    content = await asyncio.to_thread(jar.read_bytes)
    resource = put_resource(cluster, "jobs/count.jar", content)
    number = await submit(
        master,
        flink.source,
        tag,
        "resources/jobs/count.jar",
        "batch",
        "1000",
        resources=[resource],
    )
    task = await master.table.ended(number)
    assert task.report is not None
    assert task.state == "SUCCEEDED", log_text(cluster.data, number)
    assert task.report.outputs["accumulators"] == '{"numbers":1000}'


async def test_killed_is_reported_when_flink_has_ended_the_job(
    master: FakeMaster,
    worker: InProcessWorker,
    channels: Channels,
    flink: Flink,
    jar: Path,
    tmp_path: Path,
) -> None:
    tag, file = flink.new_tag("agent-kill"), tmp_path / "numbers"
    number = await submit(master, flink.source, tag, str(jar), "stream", str(file))
    await eventually(file.exists)
    await kill(channels, await the_worker(master.session), number)
    task = await master.table.ended(number)
    assert task.state == "KILLED", task.report
    assert flink.live(tag) == []


async def test_job_of_a_process_that_dies_is_ended_before_its_failure_is_reported(
    master: FakeMaster, worker: InProcessWorker, flink: Flink, jar: Path, tmp_path: Path
) -> None:
    tag, file = flink.new_tag("agent-dead"), tmp_path / "numbers"
    number = await submit(master, flink.source, tag, str(jar), "stream", str(file))
    await eventually(file.exists)
    for process in descendants(os.getpid()):
        if "shoal.worker.types.child" in process.args:
            os.kill(process.pid, signal.SIGKILL)
    task = await master.table.ended(number)
    assert task.report is not None
    assert task.state == "FAILED"
    assert "may still run" not in task.report.reason
    assert flink.live(tag) == []


@pytest.mark.parametrize(
    ("port", "ok", "said"), [(0, True, "Flink 2"), (1, False, "no server lis")]
)
async def test_data_source_is_tried(
    master: FakeMaster,
    worker: InProcessWorker,
    channels: Channels,
    flink: Flink,
    port: int,
    ok: bool,
    said: str,
) -> None:
    member = await the_worker(master.session)
    source = replace(flink.source, port=port or flink.source.port)
    service = channels.probe(str(member.data["address"]))
    answer = await service.Probe(pb.ProbeRequest(name="farm", data_source=to_message(source)))
    assert answer.ok is ok
    assert said in answer.text
