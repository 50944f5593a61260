"""Tasks of a project share a Spark Connect server that their worker keeps."""

import json
from pathlib import Path

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import InProcessWorker, log_text, the_worker, work_folders
from tests.integration.worker.spark.kit import ask, ended, servers
from tests.support.fake_master import FakeMaster
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]
pytestmark = pytest.mark.usefixtures("java")

PROGRAM = """\
import os
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("sum", spark.range(1000).groupBy().sum().collect()[0][0])
print("token", os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"])
"""


async def test_tasks_of_a_project_share_a_server_and_other_projects_have_their_own(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    async with InProcessWorker(cluster):
        view = "create global temporary view v as select 1 as a; select * from global_temp.v"
        report = await ended(master, await ask(master, view, result="rows"))
        assert json.loads(report.outputs["rows"]) == [{"a": 1}]
        [first] = servers()

        number = await master.submit("PYTHON", {"script": PROGRAM, "spark": "connect"}, tag="t-2")
        report = await ended(master, number)
        text = log_text(cluster.data, number)
        assert report.kind == pb.SUCCEEDED, text
        assert "sum 499500" in text
        assert "token ***" in text
        assert servers() == [first]

        again = await ask(master, "select * from global_temp.v", result="rows", project="other")
        report = await ended(master, again)
        assert "cannot be found" in report.reason
        assert first in servers()
        assert len(servers()) == 2
    assert servers() == []
    assert work_folders(cluster.data) == []


async def test_unused_server_is_stopped_and_its_place_goes_to_another_project(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    async with InProcessWorker(cluster, spark_servers=1, spark_idle_s=600.0):
        await ended(master, await ask(master, "select 1"))
        [first] = servers()
        report = await ended(master, await ask(master, "select 2", project="other"))
        assert report.kind == pb.SUCCEEDED
        [second] = servers()
        assert second.pid != first.pid
    async with InProcessWorker(cluster, spark_idle_s=0.0) as worker:
        await ended(master, await ask(master, "select 1"))
        await eventually(lambda: servers() == [])
        await eventually(lambda: work_folders(cluster.data) == [])
        assert not worker.task.done()


async def test_worker_without_servers_says_so(
    master: FakeMaster, cluster: ClusterSettings, channels: Channels
) -> None:
    async with InProcessWorker(cluster, spark_servers=0):
        report = await ended(master, await ask(master, "select 1"))
        assert report.kind == pb.FAILED
        assert "spark_servers is 0" in report.reason
        member = await the_worker(master.session)
        probes = channels.probe(str(member.data["address"]))
        asked = pb.ProbeRequest(name="lake", data_source=pb.DataSource(kind="spark"))
        answer = await probes.Probe(asked)
        assert not answer.ok
        assert "spark_servers is 0" in answer.text


async def test_worker_says_which_spark_its_servers_are(
    master: FakeMaster, worker: InProcessWorker, channels: Channels
) -> None:
    member = await the_worker(master.session)
    probes = channels.probe(str(member.data["address"]))
    asked = pb.ProbeRequest(name="lake", data_source=pb.DataSource(kind="spark"))
    answer = await probes.Probe(asked)
    assert answer.ok
    assert "local[*], 1024 MiB" in answer.text
    assert servers() == []


async def test_server_that_does_not_start_fails_its_tasks_and_says_why(
    master: FakeMaster, worker: InProcessWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.extraListeners no.such.Class\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    report = await ended(master, await ask(master, "select 1"))
    assert report.kind == pb.FAILED
    assert "did not start" in report.reason
    assert "no.such.Class" in report.reason
    assert servers() == []
