"""Files that attempts hand over: in the storage before the success is reported, or no success."""

import hashlib
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import Storage
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    WorkerProcess,
    descendants,
    kill,
    log_text,
    spool,
    the_worker,
    work_folders,
)
from tests.support.fake_master import FakeMaster, Task
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

MIB = 1 << 20


def wanted(files: Mapping[str, str]) -> list[pb.Publication]:
    return [
        pb.Publication(file=file, path=path, object=Storage.new_name("tests", "uid"))
        for file, path in files.items()
    ]


async def submitted(
    master: FakeMaster, script: str, publish: list[pb.Publication], **more: Any
) -> int:
    more.setdefault("largest_publication", MIB)
    return await master.submit("SHELL", {"script": script}, publish=publish, **more)


async def ended(
    master: FakeMaster, script: str, publish: list[pb.Publication], **more: Any
) -> Task:
    return await master.table.ended(await submitted(master, script, publish, **more))


def reason(task: Task) -> str:
    assert task.report is not None
    return task.report.reason


def stored(cluster: ClusterSettings) -> list[str]:
    root = Path(cluster.resources)
    return [path.name for path in root.rglob("*") if path.is_file()] if root.exists() else []


async def test_files_are_in_the_storage_when_the_success_is_reported(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    publish = wanted({"out/a b.csv": "reports/a.csv", "empty": "empty"})
    script = "set -e; mkdir out; seq 200000 > 'out/a b.csv'; : > empty; echo '{\"n\": 7}' >"
    number = await submitted(
        master, f'{script} "$SHOAL_OUTPUT"', publish, largest_publication=2 * MIB
    )
    task = await master.table.ended(number)
    assert task.state == "SUCCEEDED", reason(task)
    assert task.report is not None
    content = "".join(f"{n}\n" for n in range(1, 200_001)).encode()
    digest, nothing = hashlib.sha256(content).hexdigest(), hashlib.sha256().hexdigest()
    assert list(task.report.published) == [
        pb.PublishedFile(path="reports/a.csv", sha256=digest, size=len(content)),
        pb.PublishedFile(path="empty", sha256=nothing, size=0),
    ]
    assert dict(task.report.outputs) == {"n": "7"}
    with Storage.of(cluster).reading(publish[0].object) as file:
        assert file.read(2 * MIB) == content
    said = log_text(cluster.data, number).splitlines()[-1]
    assert said == "shoal: handed over: empty, out/a b.csv as reports/a.csv"
    await eventually(lambda: work_folders(cluster.data) == [])
    await eventually(lambda: spool(cluster.data) == [])


async def test_attempt_that_fails_hands_nothing_over(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    task = await ended(master, "echo one > a; exit 3", wanted({"a": "a"}))
    assert (task.state, stored(cluster)) == ("FAILED", [])
    assert task.report is not None
    assert not task.report.published


async def test_file_that_cannot_be_used_fails_the_attempt_and_leaves_nothing(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    publish = wanted({"ok": "ok", "out": "a"})
    number = await submitted(master, "echo one > ok; ln -s parameters.json out", publish)
    task = await master.table.ended(number)
    assert task.state == "FAILED"
    assert reason(task).startswith("publish: out cannot be used: Too many levels of symbolic")
    assert task.report is not None
    assert not task.report.permanent
    assert log_text(cluster.data, number).splitlines()[-1] == f"shoal: {reason(task)}"
    assert stored(cluster) == []
    bad: Mapping[str, str]
    for bad in ({"../a": "a"}, {"/etc/hostname": "a"}, {"a": "../a"}):
        task = await ended(master, "echo one > a; echo two > ../a", wanted(bad))
        assert (task.state, "not a path within a project" in reason(task)) == ("FAILED", True)
    assert stored(cluster) == []


def hold(cluster: ClusterSettings, publication: pb.Publication) -> Path:
    """Let the handing over take as long as nobody reads: a pipe is in the object's place."""
    place = Path(cluster.resources, publication.object)
    place.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(place)
    return place


def is_storing(cluster: ClusterSettings) -> bool:
    return any(name.startswith("store-") for name in work_folders(cluster.data))


async def test_attempt_that_is_killed_while_its_files_are_handed_over_is_killed(
    master: FakeMaster, worker: InProcessWorker, channels: Channels, cluster: ClusterSettings
) -> None:
    publish = wanted({"a": "a"})
    hold(cluster, publish[0])
    number = await submitted(master, "echo one > a", publish)
    await eventually(lambda: is_storing(cluster))
    assert await kill(channels, await the_worker(master.session), number) == [number]
    task = await master.table.ended(number)
    assert (task.state, reason(task)) == ("KILLED", "stopped by alice")
    assert task.report is not None
    assert not task.report.published
    await eventually(lambda: work_folders(cluster.data) == [])


async def test_worker_that_stops_while_files_are_handed_over_leaves_no_result(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    publish = wanted({"a": "a"})
    hold(cluster, publish[0])
    async with InProcessWorker(cluster, drain_s=0.2):
        await the_worker(master.session)
        number = await submitted(master, "echo one > a", publish)
        await eventually(lambda: is_storing(cluster))
    assert master.table.tasks[number].report is None  # the attempt is lost


@pytest.mark.parametrize(
    ("point", "is_result"),
    [
        ("publish.before_upload", False),
        ("publish.after_upload", False),
        ("publish.after_record", True),
    ],
)
async def test_worker_that_dies_reports_no_success_unless_the_files_are_there(
    master: FakeMaster,
    cluster: ClusterSettings,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    is_result: bool,
) -> None:
    publish = wanted({"a": "a"})
    monkeypatch.setenv("SHOAL_FAILPOINTS", f"{point}=kill")
    with WorkerProcess(cluster) as process:
        number = await submitted(master, "echo one > a", publish)
        await process.wait()
    (record,) = (cluster.data / "workers" / "w" / "1" / "spool").glob("*.json")
    assert ("published" in json.loads(record.read_text())["context"]) == is_result
    async with InProcessWorker(cluster):
        if is_result:
            task = await master.table.ended(number)
            assert task.report is not None
            assert [one.path for one in task.report.published] == ["a"]
            assert stored(cluster) == [publish[0].object.rpartition("/")[2]]
        await eventually(lambda: spool(cluster.data) == [])
    assert (master.table.tasks[number].report is not None) == is_result


async def test_handing_over_dies_with_its_worker(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    publish = wanted({"a": "a"})
    hold(cluster, publish[0])
    with WorkerProcess(cluster) as process:
        pid = (await the_worker(master.session)).data["pid"]
        await submitted(master, "echo one > a", publish)
        await eventually(lambda: any(".upload" in one.args for one in descendants(pid)))
        storing = [one.pid for one in descendants(pid) if ".upload" in one.args]
        process.signal(signal.SIGKILL)
        await eventually(lambda: not any(Path(f"/proc/{one}").exists() for one in storing))
