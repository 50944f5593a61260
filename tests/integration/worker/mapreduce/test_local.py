"""MapReduce jobs in the attempt's own process tree, by the real client."""

import asyncio
import json
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    kill,
    log_text,
    the_worker,
)
from tests.support.fake_master import FakeMaster
from tests.support.storage import put_resource
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]
pytestmark = pytest.mark.usefixtures("java")

PATIENCE_S = 300.0


class Site:
    """A job's folders, and a worker that runs it."""

    def __init__(self, master: FakeMaster, jar: Path, folder: Path) -> None:
        self.master, self._jar = master, jar
        self.input, self.output = folder / "input", folder / "the output"
        self.input.mkdir()

    def write(self, text: str, file: str = "a.txt") -> None:
        (self.input / file).write_text(text)

    async def submit(self, **params: Any) -> int:
        values = {
            "jar": str(self._jar),
            "arguments": [str(self.input), str(self.output)],
            **params,
        }
        return await self.master.submit("MR", values, parameters={"day": "Friday"}, tag="shoal-1")

    async def run(self, **params: Any) -> tuple[int, pb.Report]:
        number = await self.submit(**params)
        task = await self.master.table.ended(number, timeout_s=PATIENCE_S)
        assert task.report is not None
        return number, task.report

    def counted(self) -> dict[str, int]:
        lines = (self.output / "part-r-00000").read_text().splitlines()
        return {word: int(count) for word, count in (line.split("\t") for line in lines)}


@pytest.fixture
async def worker(cluster: ClusterSettings, tmp_path: Path) -> AsyncIterator[InProcessWorker]:
    """A worker whose work folder Hadoop can use: that of the others has a blank in its name."""
    async with InProcessWorker(cluster, work_dir=tmp_path / "work") as worker:
        yield worker


@pytest.fixture
def site(master: FakeMaster, worker: InProcessWorker, words: Path, tmp_path: Path) -> Site:
    return Site(master, words, tmp_path)


async def test_jar_can_be_a_resource(site: Site, cluster: ClusterSettings, words: Path) -> None:
    site.write("one fish two fish")
    file = put_resource(cluster, "jobs/words.jar", await asyncio.to_thread(words.read_bytes))
    arguments = [str(site.input), str(site.output)]
    number = await site.master.submit(
        "MR", {"jar": "resources/jobs/words.jar", "arguments": arguments}, resources=[file]
    )
    task = await site.master.table.ended(number, timeout_s=PATIENCE_S)
    assert task.state == "SUCCEEDED", log_text(cluster.data, number)
    assert site.counted()["fish"] == 2


async def test_job_runs_to_its_end_and_its_counters_are_outputs(
    site: Site, cluster: ClusterSettings, tmp_path: Path
) -> None:
    site.write("one fish two fish")
    number, report = await site.run(conf={"words.prefix": "a "})
    text = log_text(cluster.data, number)
    assert report.kind == pb.SUCCEEDED, text
    assert site.counted() == {"a one": 1, "a fish": 2, "a two": 1}
    counters = json.loads(report.outputs["counters"])
    assert counters["Map-Reduce Framework"]["Map input records"] == 1
    assert counters["Map-Reduce Framework"]["Reduce output records"] == 3
    assert report.outputs["job_id"].startswith("job_local")
    assert "day Friday" in text
    assert "map 100% reduce 100%" in text
    await eventually(lambda: not list((tmp_path / "work").glob("[0-9]*")))


async def test_output_that_exists_is_refused_unless_it_is_to_be_replaced(
    site: Site, cluster: ClusterSettings
) -> None:
    site.output.mkdir()
    site.write("fish")
    _, report = await site.run(main_class="")
    assert report.kind == pb.FAILED
    assert "FileAlreadyExistsException" in report.reason
    number, report = await site.run(overwrite=str(site.output))
    assert report.kind == pb.SUCCEEDED
    assert site.counted() == {"fish": 1}
    assert f"shoal: deleting {site.output}" in log_text(cluster.data, number)


async def test_failing_job_says_why(site: Site) -> None:
    site.write("a bad fish")
    _, report = await site.run()
    assert report.kind == pb.FAILED
    assert report.exit_code == 1
    assert report.reason == "exit code 1: Caused by: java.io.IOException: a bad word"


async def test_job_shows_how_far_it_is_and_dies_when_it_is_killed(
    site: Site, channels: Channels, tmp_path: Path
) -> None:
    for name in "abcd":
        site.write("slow " * 1_000 if name == "d" else "fish", f"{name}.txt")
    member = await the_worker(site.master.session)
    number = await site.submit()
    progress = channels.progress(str(member.data["address"]))

    async def done() -> float:
        answer = await progress.Read(pb.ProgressRequest(task_instance_ids=[number]))
        return max((float(one.done) for one in answer.tasks), default=-1.0)

    await site.master.table.wait(number, "RUNNING", timeout_s=PATIENCE_S)
    while await done() < 0:
        assert site.master.table.tasks[number].report is None
    await kill(channels, member, number)
    task = await site.master.table.ended(number)
    assert task.state == "KILLED"
    await eventually(lambda: not list((tmp_path / "work").glob("[0-9]*")))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"jar": "/no/where.jar"}, "there is no file /no/where.jar on this worker"),
        ({"jars": ["/no/lib.jar"]}, "there is no file /no/lib.jar on this worker"),
        ({"queue": "${absent}"}, "no parameter of the workflow fills the placeholder"),
    ],
)
async def test_mistakes_that_are_the_same_another_time(
    site: Site, params: dict[str, Any], said: str
) -> None:
    _, report = await site.run(**params)
    assert report.kind == pb.FAILED
    assert said in report.reason


async def test_classes_that_do_not_fit(site: Site, words: Path, tmp_path: Path) -> None:
    _, report = await site.run(main_class="no.Such")
    assert "manifest names the class WordCount" in report.reason
    plain = tmp_path / "plain.jar"
    with zipfile.ZipFile(words) as given, zipfile.ZipFile(plain, "w") as copy:
        for name in given.namelist():
            if name.endswith(".class"):
                copy.writestr(name, given.read(name))
    _, report = await site.run(jar=str(plain))
    assert "say in main_class which one to run" in report.reason
    _, report = await site.run(jar=str(plain), main_class="no.Such")
    assert "ClassNotFoundException: no.Such" in report.reason
    site.write("fish")
    _, report = await site.run(jar=str(plain), main_class="WordCount")
    assert report.kind == pb.SUCCEEDED
    (tmp_path / "bad.jar").write_text("not a jar")
    _, report = await site.run(jar=str(tmp_path / "bad.jar"))
    assert "is not a jar" in report.reason


async def test_folder_that_hadoop_cannot_use_is_refused(
    master: FakeMaster, cluster: ClusterSettings, words: Path, tmp_path: Path
) -> None:
    async with InProcessWorker(cluster):
        _, report = await Site(master, words, tmp_path).run()
    assert report.kind == pb.FAILED
    assert "give the worker another work_dir" in report.reason
