"""MR tasks in YARN: what carries a task's tag never outlives the attempt."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.hadoop.conftest import Hadoop
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    Process,
    descendants,
    kill,
    log_text,
    the_worker,
)
from tests.support.fake_master import FakeMaster
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

PATIENCE_S = 500.0


@pytest.fixture
def slow(hadoop: Hadoop, tmp_path: Path) -> str:
    """A folder of HDFS whose words take minutes."""
    folder = f"/{tmp_path.name}"
    (tmp_path / "words").write_text("slow " * 600)
    hadoop.files("-mkdir", "-p", folder)
    hadoop.files("-put", str(tmp_path / "words"), folder)
    return folder


def clients() -> list[Process]:
    """Return Hadoop's clients below this process."""
    return [one for one in descendants(os.getpid()) if "util.RunJar" in one.args]


async def submit(master: FakeMaster, jar: Path, folder: str, tag: str) -> int:
    params = {"jar": str(jar), "arguments": [folder, f"{folder}.out"]}
    return await master.submit("MR", params, tag=tag)


async def test_job_runs_in_the_cluster_and_replaces_its_output(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    hadoop: Hadoop,
    words: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "words").write_text("one fish two fish\n")
    hadoop.files("-mkdir", "-p", "/fish/in", "/fish/out")
    hadoop.files("-put", str(tmp_path / "words"), "/fish/in")
    params = {
        "jar": str(words),
        "arguments": ["/fish/in", "/fish/out"],
        "overwrite": "/fish/out",
        "conf": {"words.prefix": "a "},
    }
    number = await master.submit("MR", params, tag="shoal-fish")
    task = await master.table.ended(number, timeout_s=PATIENCE_S)
    assert task.report is not None
    assert task.state == "SUCCEEDED", log_text(cluster.data, number)
    assert task.report.outputs["job_id"].startswith("job_1")
    assert hadoop.files("-cat", "/fish/out/part-r-00000") == "a fish\t2\na one\t1\na two\t1\n"
    assert await hadoop.live("shoal-fish") == 0


async def test_killed_job_is_ended_in_the_cluster(
    master: FakeMaster,
    worker: InProcessWorker,
    channels: Channels,
    hadoop: Hadoop,
    words: Path,
    slow: str,
) -> None:
    number = await submit(master, words, slow, "shoal-kill")
    async with asyncio.timeout(PATIENCE_S):
        while await hadoop.live("shoal-kill") != 1:
            await asyncio.sleep(0.2)
    await kill(channels, await the_worker(master.session), number)
    task = await master.table.ended(number, timeout_s=PATIENCE_S)
    assert task.state == "KILLED", task.report
    assert await hadoop.live("shoal-kill") == 0


@pytest.mark.parametrize("seed", range(5))
async def test_client_killed_around_the_submission_leaves_nothing(
    seed: int,
    master: FakeMaster,
    worker: InProcessWorker,
    hadoop: Hadoop,
    words: Path,
    slow: str,
) -> None:
    tag = f"shoal-seed-{seed}"
    number = await submit(master, words, slow, tag)
    await eventually(clients, PATIENCE_S)
    await asyncio.sleep(random.Random(seed).uniform(0.5, 8.0))
    for client in clients():
        client.kill()
    task = await master.table.ended(number, timeout_s=PATIENCE_S)
    assert task.state == "FAILED"
    assert task.report is not None
    assert "may still run" not in task.report.reason
    assert await hadoop.live(tag) == 0
