"""Resources in the folders of attempts: fetched once, checked, copied, and kept within limits."""

import asyncio
import errno
import hashlib
import io
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from shoal.core.data_sources import DataSource
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.proto.data_sources import to_message
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import Storage
from shoal.worker.home import download
from shoal.worker.home.download import STARVED, Download, File, WrongContent
from shoal.worker.home.resources import ResourceCache
from shoal.worker.processes.launcher import Launched, Launcher
from shoal.worker.processes.program import LaunchRequest
from shoal.worker.processes.work_files import ANSWER_FILE
from shoal.worker.supervisor.causes import EndCause
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    WorkerProcess,
    alive,
    descendants,
    kill,
    log_text,
    the_worker,
    work_folders,
)
from tests.support.fake_master import FakeMaster
from tests.support.storage import put_resource
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]


def stored(cluster: ClusterSettings, resource: pb.Resource) -> Path:
    return Path(cluster.resources, resource.object)


def cached(cluster: ClusterSettings) -> list[str]:
    return sorted(os.listdir(cluster.data / "workers" / "w" / "1" / "resources"))


async def ended(
    master: FakeMaster, kind: str, params: dict[str, Any], *resources: pb.Resource, **rest: Any
) -> tuple[int, str, str]:
    """Run a task to its end; return its number, its state and the reason."""
    number = await master.submit(kind, params, resources=resources, **rest)
    task = await master.table.ended(number)
    assert task.report is not None
    return number, task.state, task.report.reason


async def test_files_lie_in_the_folder_of_the_attempt_by_their_paths(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    binary = os.urandom(3_000_000)
    files = [
        put_resource(cluster, "etl/data ä.bin", binary, 7),
        put_resource(cluster, "etl/deep/run.sh", b"#!/bin/sh\necho it runs\n"),
        put_resource(cluster, "empty", b""),
    ]
    script = 'sha256sum < "resources/etl/data ä.bin"; resources/etl/deep/run.sh; wc -c < resources/'
    number, state, reason = await ended(master, "SHELL", {"script": script + "empty"}, *files)
    assert state == "SUCCEEDED", reason
    lines = log_text(cluster.data, number).splitlines()
    assert lines == [
        "shoal: resources: etl/data ä.bin@7, etl/deep/run.sh@1, empty@1",
        f"{hashlib.sha256(binary).hexdigest()}  -",
        "it runs",
        "0",
    ]
    await eventually(lambda: work_folders(cluster.data) == [])


async def test_copy_is_the_attempts_own_and_the_next_one_needs_no_storage(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    file = put_resource(cluster, "a", b"one")
    spoil = {"script": "chmod +w resources/a && echo spoilt > resources/a"}
    assert (await ended(master, "SHELL", spoil, file))[1] == "SUCCEEDED"
    stored(cluster, file).unlink()
    other = pb.Resource(path="b/c", version=9, sha256=file.sha256, size=3, object=file.object)
    check = {"script": 'test "$(cat resources/b/c)" = one'}
    assert (await ended(master, "SHELL", check, other))[1] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("kind", "params", "path", "content"),
    [
        ("SHELL", {"arguments": ["x y"]}, "etl/job.sh", b'test "$1" = "x y" && echo "day $day"'),
        (
            "PYTHON",
            {"arguments": ["x y"]},
            "etl/job.py",
            b"import os, sys, helper\nassert sys.argv[1:] == ['x y']\n"
            b"print('day', os.environ['day'], helper.VALUE)\n",
        ),
        ("SQL", {"result": "value"}, "etl/job.sql", "\ufeffSELECT 'day ' || ${day}".encode()),
    ],
)
async def test_program_of_a_task_can_be_a_resource(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    tmp_path: Path,
    kind: str,
    params: dict[str, Any],
    path: str,
    content: bytes,
) -> None:
    sqlite3.connect(tmp_path / "x.db").close()
    source = DataSource("db", "sqlite", database=str(tmp_path / "x.db"))
    if kind == "SQL":
        params = {**params, "data_source": "db"}
    number, state, reason = await ended(
        master,
        kind,
        {**params, "file": f"{path}@3"},
        put_resource(cluster, path, content, 3),
        put_resource(cluster, "etl/helper.py", b"VALUE = 17\n"),
        parameters={"day": "Monday"},
        data_sources={"db": to_message(source)} if kind == "SQL" else {},
    )
    assert state == "SUCCEEDED", reason
    assert "day Monday" in log_text(cluster.data, number)


async def test_shell_file_that_names_a_parameter_too_large_for_a_variable_is_refused(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    file = put_resource(cluster, "job.sh", b'echo "$big"')
    _, state, reason = await ended(
        master, "SHELL", {"file": "job.sh"}, file, parameters={"big": "x" * 200_000}
    )
    assert (state, "does not fit" in reason) == ("FAILED", True)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff\xfe", "job.sql is not UTF-8 text"), (b" \n", "job.sql is empty")],
)
async def test_sql_file_that_is_no_program_says_so(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    content: bytes,
    words: str,
) -> None:
    source = DataSource("db", "sqlite", database="/nowhere/x.db")
    _, state, reason = await ended(
        master,
        "SQL",
        {"data_source": "db", "file": "job.sql"},
        put_resource(cluster, "job.sql", content),
        data_sources={"db": to_message(source)},
    )
    assert (state, words in reason) == ("FAILED", True), reason


async def test_content_that_is_not_what_was_stored_is_never_used(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    for spoilt in (b"two", b"one and more", b""):
        file = put_resource(cluster, "a", b"one")
        stored(cluster, file).write_bytes(spoilt)
        _, state, reason = await ended(master, "SHELL", {"script": "true"}, file)
        assert state == "FAILED"
        assert f"the object {file.object} in the storage of resources is not what" in reason
        assert cached(cluster) == []


async def test_object_that_is_gone_fails_the_task_with_the_reason(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    file = put_resource(cluster, "a", b"one")
    stored(cluster, file).unlink()
    number, state, reason = await ended(master, "SHELL", {"script": "true"}, file)
    assert state == "FAILED"
    assert "it is not there; it is the setting resources_url" in reason
    assert reason in log_text(cluster.data, number)


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", ""])
async def test_path_of_a_payload_that_leads_outside_is_refused(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, path: str
) -> None:
    file = put_resource(cluster, path, b"one")
    _, state, reason = await ended(master, "SHELL", {"script": "true"}, file)
    assert (state, "which is not a path" in reason) == ("FAILED", True)
    odd = pb.Resource(path="a", version=1, sha256="../../x", size=3, object=file.object)
    _, state, reason = await ended(master, "SHELL", {"script": "true"}, odd)
    assert (state, "which is not a path" in reason) == ("FAILED", True)


async def test_tasks_at_once_fetch_a_file_once_also_if_the_first_is_killed(
    master: FakeMaster,
    worker: InProcessWorker,
    channels: Channels,
    cluster: ClusterSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = put_resource(cluster, "a", b"one")
    fetch, go_on, fetched = ResourceCache._run, asyncio.Event(), list[str]()

    async def run(self: ResourceCache, files: Sequence[File]) -> None:
        fetched.extend(one.object for one in files)
        await go_on.wait()
        await fetch(self, files)

    monkeypatch.setattr(ResourceCache, "_run", run)
    script = {"script": "cat resources/a"}
    first, *others = await master.submit_many(4, "SHELL", script, resources=[file])
    for number in (first, *others):
        await master.table.wait(number, "CLAIMED")
    await eventually(lambda: fetched == [file.object])
    await kill(channels, await the_worker(master.session), first)
    assert (await master.table.ended(first)).state == "KILLED"
    go_on.set()
    for number in others:
        assert (await master.table.ended(number)).state == "SUCCEEDED"
        assert log_text(cluster.data, number).endswith("\none")
    assert fetched == [file.object]


def hold(cluster: ClusterSettings, file: pb.Resource) -> None:
    """Let fetching of a file take long: it cannot be read, and is tried again."""
    stored(cluster, file).unlink()
    os.mkfifo(stored(cluster, file))


async def test_attempt_that_is_killed_while_it_waits_for_a_file_is_over_at_once(
    master: FakeMaster, worker: InProcessWorker, channels: Channels, cluster: ClusterSettings
) -> None:
    file = put_resource(cluster, "a", b"one")
    hold(cluster, file)
    number = await master.submit("SHELL", {"script": "true"}, resources=[file])
    await eventually(lambda: any(name.startswith("fetch-") for name in work_folders(cluster.data)))
    assert await kill(channels, await the_worker(master.session), number) == [number]
    task = await master.table.ended(number)
    assert (task.state, task.report and task.report.reason) == ("KILLED", "stopped by alice")
    assert (await ended(master, "SHELL", {"script": "true"}))[1] == "SUCCEEDED"


async def test_worker_that_is_stopped_waits_for_no_fetching(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    file = put_resource(cluster, "a", b"one")
    hold(cluster, file)
    async with InProcessWorker(cluster, drain_s=0.2):
        await the_worker(master.session)
        number = await master.submit("SHELL", {"script": "true"}, resources=[file])
        await eventually(
            lambda: any(name.startswith("fetch-") for name in work_folders(cluster.data))
        )
    assert master.table.tasks[number].report is None  # it is not a failure: the attempt is lost


async def test_fetching_that_is_interrupted_is_no_result_of_the_attempt(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch, launchers = Launcher.launch, dict[str, Launcher]()

    async def noted(self: Launcher, request: LaunchRequest, **rest: Any) -> Launched:
        launchers[request.id] = self
        return await launch(self, request, **rest)

    monkeypatch.setattr(Launcher, "launch", noted)
    file = put_resource(cluster, "a", b"one")
    hold(cluster, file)
    number = await master.submit("SHELL", {"script": "true"}, resources=[file])
    await eventually(lambda: launchers != {})
    ((fetch, launcher),) = launchers.items()
    await launcher.kill(fetch, "the lease has passed", 0.0, EndCause.LEASE_LOST)
    await master.unclaimed(number)
    assert master.table.tasks[number].report is None


async def test_fetching_dies_with_its_worker_and_leaves_nothing_half_done(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    file = put_resource(cluster, "a", b"one")
    hold(cluster, file)
    with WorkerProcess(cluster) as process:
        pid = (await the_worker(master.session)).data["pid"]
        await master.submit("SHELL", {"script": "true"}, resources=[file])
        await eventually(lambda: any(".download" in one.args for one in descendants(pid)))
        fetching = [one.pid for one in descendants(pid) if ".download" in one.args]
        process.signal(signal.SIGKILL)
        await eventually(lambda: not any(alive(one) for one in fetching))
    stored(cluster, file).unlink()
    unfinished = cluster.data / "workers" / "w" / "1" / "resources" / f".{file.sha256}.1"
    unfinished.write_bytes(b"half")
    async with InProcessWorker(cluster):
        assert (await ended(master, "SHELL", {"script": "true"}))[1] == "SUCCEEDED"
        assert cached(cluster) == []


async def test_files_that_nobody_has_used_for_longest_make_room(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    async with InProcessWorker(cluster, resource_cache_mb=1):
        files = [put_resource(cluster, "a", bytes([number]) * 400_000) for number in range(3)]
        script = {"script": "true"}
        for number in (0, 1, 0, 2):
            assert (await ended(master, "SHELL", script, files[number]))[1] == "SUCCEEDED"
            await asyncio.sleep(0.02)
        await eventually(
            lambda: cached(cluster) == sorted(files[number].sha256 for number in (0, 2))
        )
        large = [put_resource(cluster, f"x{number}", os.urandom(700_000)) for number in range(3)]
        both = {"script": "cat resources/x* | wc -c"}
        number, state, _ = await ended(master, "SHELL", both, *large)
        assert (state, log_text(cluster.data, number).splitlines()[-1]) == ("SUCCEEDED", "2100000")
        await eventually(lambda: len(cached(cluster)) == 1)


async def test_files_in_use_make_no_room(
    master: FakeMaster, cluster: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, go_on = ResourceCache._copy, threading.Event()
    slow, quick = (put_resource(cluster, name, os.urandom(700_000)) for name in ("slow", "quick"))

    def wait_and_copy(self: ResourceCache, wanted: Sequence[pb.Resource], folder: Path) -> None:
        if wanted[0].path == "slow":
            go_on.wait()
        copy(self, wanted, folder)

    monkeypatch.setattr(ResourceCache, "_copy", wait_and_copy)
    async with InProcessWorker(cluster, resource_cache_mb=1):
        await the_worker(master.session)
        try:
            number = await master.submit("SHELL", {"script": "true"}, resources=[slow])
            await eventually(lambda: cached(cluster) == [slow.sha256])
            assert (await ended(master, "SHELL", {"script": "true"}, quick))[1] == "SUCCEEDED"
        finally:
            go_on.set()
        assert (await master.table.ended(number)).state == "SUCCEEDED"


async def test_file_of_the_cache_that_has_lost_bytes_is_fetched_again(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    file = put_resource(cluster, "a", b"one")
    script = {"script": 'test "$(cat resources/a)" = one'}
    assert (await ended(master, "SHELL", script, file))[1] == "SUCCEEDED"
    place = cluster.data / "workers" / "w" / "1" / "resources" / file.sha256
    place.chmod(0o600)
    place.write_bytes(b"")
    assert (await ended(master, "SHELL", script, file))[1] == "SUCCEEDED"


@pytest.mark.parametrize("starved", ["fetching", "copying"])
async def test_task_goes_back_where_the_machine_has_no_room_to_stage_its_files(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    monkeypatch: pytest.MonkeyPatch,
    starved: str,
) -> None:
    launch, copy, failed = Launcher.launch, ResourceCache._copy, list[str]()

    async def launch_starved(self: Launcher, request: LaunchRequest, **rest: Any) -> Launched:
        if request.id.startswith("fetch-") and not failed:
            failed.append(request.id)
            request = replace(request, argv=["/bin/sh", "-c", f"exit {STARVED}"])
        return await launch(self, request, **rest)

    def copy_starved(self: ResourceCache, wanted: Sequence[pb.Resource], folder: Path) -> None:
        if not failed:
            failed.append(folder.name)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        copy(self, wanted, folder)

    if starved == "fetching":
        monkeypatch.setattr(Launcher, "launch", launch_starved)
    else:
        monkeypatch.setattr(ResourceCache, "_copy", copy_starved)
    number = await master.submit(
        "SHELL", {"script": "cat resources/a"}, resources=[put_resource(cluster, "a", b"one")]
    )
    assert (await master.table.ended(number)).state == "SUCCEEDED"
    assert len(failed) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.EMFILE, "Too many open files"), STARVED),
        (MemoryError(), STARVED),
        (OSError(errno.EIO, "Input/output error"), 1),
    ],
)
def test_fetching_tells_a_machine_without_room_from_a_file_that_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    def refuse(self: Storage, name: str) -> NoReturn:
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Storage, "reading", refuse)
    errand = Download(str(tmp_path), str(tmp_path), [File("a/b", "0" * 64, 1)])
    monkeypatch.setattr(sys, "stdin", io.StringIO(errand.to_json()))
    assert download.main() == code
    assert (tmp_path / ANSWER_FILE).read_text() in (str(error), repr(error))


def test_content_is_checked_before_it_has_its_name(
    cluster: ClusterSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "cache"
    folder.mkdir()
    resource = put_resource(cluster, "a", b"one")
    right = File(resource.object, resource.sha256, resource.size)
    for wrong in (replace(right, sha256="0" * 64), replace(right, size=2), replace(right, size=4)):
        errand = Download(cluster.resources, str(folder), [wrong])
        monkeypatch.setattr(sys, "stdin", io.StringIO(errand.to_json()))
        assert download.main() == 1
        assert (tmp_path / ANSWER_FILE).read_text() == str(WrongContent(wrong))
        assert os.listdir(folder) == []
