"""Finished logs in the archive: copied soon, again when they have grown, and never half."""

import asyncio
import io
import os
import signal
import sys
from collections.abc import Callable, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from shoal.runtime.log_archive import LogArchive
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import ObjectMissing, StorageError
from shoal.worker.logs import archive, retention
from shoal.worker.logs.archive import LogArchiver
from shoal.worker.logs.files import LogStore
from shoal.worker.logs.folders import LogFolder
from shoal.worker.logs.upload import LogUpload, unarchived
from shoal.worker.logs.upload import main as upload_logs
from shoal.worker.processes.helpers import Ended, Helpers
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    WorkerProcess,
    log_file,
    the_worker,
    until,
    work_folders,
)
from tests.support.fake_master import CLUSTER, FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

INSTANCE = 7  # of all tasks of the fake master


@pytest.fixture
def archived(
    cluster: ClusterSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ClusterSettings:
    """A cluster with an archive, and workers that do not wait long."""
    for name in ("EVERY_S", "FIRST_PAUSE_S"):
        monkeypatch.setattr(archive, name, 0.1)
    monkeypatch.setattr(retention, "CHECK_EVERY_S", 0.1)
    return cluster.model_copy(update={"logs_url": str(tmp_path / "archive")})


def content(cluster: ClusterSettings, number: int) -> bytes | None:
    archive = LogArchive(cluster.logs_url, CLUSTER)
    try:
        return archive.read(INSTANCE, number, 0, archive.size(INSTANCE, number))
    except StorageError:
        return None


async def there(cluster: ClusterSettings, number: int, text: str) -> None:
    await eventually(lambda: content(cluster, number) == text.encode())


async def test_log_is_copied_when_its_attempt_has_ended(
    master: FakeMaster, archived: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with InProcessWorker(archived):
        running = await master.submit("SHELL", {"script": f"echo begun; {until(go)}; echo done"})
        done = [await master.submit("SHELL", {"script": f"echo {n}"}) for n in range(3)]
        failed = await master.submit("SHELL", {"script": "echo why >&2; exit 3"})
        refused = await master.submit("NOSUCH", {})
        for number in (*done, failed, refused):
            await master.table.ended(number)
        for n, number in enumerate(done):
            await there(archived, number, f"{n}\n")
        await there(archived, failed, "why\n")
        await eventually(lambda: b"NOSUCH" in (content(archived, refused) or b""))
        assert content(archived, running) is None
        go.touch()
        await master.table.ended(running)
        await there(archived, running, "begun\ndone\n")
        await eventually(lambda: work_folders(archived.data) == [])


async def test_what_a_killed_worker_has_left_is_copied_by_its_next_life(
    master: FakeMaster, archived: ClusterSettings
) -> None:
    with WorkerProcess(archived.model_copy(update={"logs_url": ""})) as process:
        number = await master.submit("SHELL", {"script": "echo before"})
        await master.table.ended(number)
        process.signal(signal.SIGKILL)
    assert content(archived, number) is None
    async with InProcessWorker(archived):
        await there(archived, number, "before\n")


async def test_search_that_failed_is_repeated_soon(
    master: FakeMaster, archived: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with InProcessWorker(archived.model_copy(update={"logs_url": ""})):
        number = await master.submit("SHELL", {"script": "echo before"})
        await master.table.ended(number)
    search = LogArchiver._left
    failed: list[LogArchiver] = []

    def fail_once(self: LogArchiver) -> list[LogFolder]:
        if not failed:
            failed.append(self)
            raise OSError("no descriptor left")
        return search(self)

    monkeypatch.setattr(LogArchiver, "_left", fail_once)
    async with InProcessWorker(archived):
        await there(archived, number, "before\n")
        await eventually(lambda: failed[0].trouble is None)


async def test_worker_that_leaves_copies_what_is_left(
    master: FakeMaster, archived: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(self: LogArchiver) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(LogArchiver, "run", wait)
    async with InProcessWorker(archived):
        number = await master.submit("SHELL", {"script": "echo last words"})
        await master.table.ended(number)
    assert content(archived, number) == b"last words\n"


async def test_logs_of_a_purged_instance_are_not_copied(
    master: FakeMaster, archived: ClusterSettings
) -> None:
    master.purged = {INSTANCE}
    async with InProcessWorker(archived):
        number = await master.submit("SHELL", {"script": "echo nobody reads it"})
        await master.table.ended(number)
    assert content(archived, number) is None
    assert log_file(archived.data, number).exists()


async def test_log_that_has_grown_is_copied_again(
    master: FakeMaster, archived: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "SEARCH_EVERY_S", 0.1)
    async with InProcessWorker(archived):
        number = await master.submit("SHELL", {"script": "echo one"})
        await master.table.ended(number)
        await there(archived, number, "one\n")
        with log_file(archived.data, number).open("a") as file:
            file.write("two\n")
        await there(archived, number, "one\ntwo\n")
        log = log_file(archived.data, number)
        folder = LogFolder(INSTANCE, log.parent.parent.name, log.parents[2])
        await eventually(lambda: unarchived(folder) == set())


async def test_archive_that_is_away_is_told_and_costs_nothing(
    master: FakeMaster, archived: ClusterSettings
) -> None:
    place = Path(archived.logs_url)
    await asyncio.to_thread(place.write_text, "no folder")
    async with InProcessWorker(archived):
        number = await master.submit("SHELL", {"script": "echo kept"})
        assert (await master.table.ended(number)).state == "SUCCEEDED"

        async def trouble() -> str | None:
            found = (await the_worker(master.session)).data.get("logs_not_archived")
            return None if found is None else str(found)

        async with asyncio.timeout(DEADLINE_S):
            while (why := await trouble()) is None:
                await asyncio.sleep(0.05)
            assert "it is the setting logs_url" in why
            await asyncio.to_thread(place.unlink)
            await there(archived, number, "kept\n")
            while await trouble() is not None:
                await asyncio.sleep(0.05)


async def test_error_of_our_own_costs_nothing_either(
    master: FakeMaster, archived: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Helpers.run
    failed: list[str] = []

    async def fail_once(self: Helpers, module: str, errand: str, **rest: Any) -> Ended:
        if not failed:
            failed.append(module)
            raise ZeroDivisionError
        return await run(self, module, errand, **rest)

    monkeypatch.setattr(Helpers, "run", fail_once)
    async with InProcessWorker(archived):
        number = await master.submit("SHELL", {"script": "echo kept"})
        assert (await master.table.ended(number)).state == "SUCCEEDED"
        await there(archived, number, "kept\n")
    assert failed


def _plant(marks: Path, plant: Callable[[Path], None]) -> None:
    """Put something else in the place of marks, which a copy may write at this very moment."""
    for _ in range(1_000):
        with suppress(FileNotFoundError):
            marks.rmdir() if marks.is_dir() else marks.unlink()
        with suppress(FileExistsError):
            plant(marks)
            return
    raise AssertionError(f"{marks} is always there")


async def test_links_among_the_logs_lead_nowhere(
    master: FakeMaster, archived: ClusterSettings, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    async with InProcessWorker(archived):
        number = await master.submit("SHELL", {"script": "echo one"})
        await master.table.ended(number)
        await there(archived, number, "one\n")
        folder = log_file(archived.data, number).parent
        (folder / "900.log").symlink_to(secret)
        os.mkfifo(folder / "901.log")
        for plant in (lambda path: path.symlink_to(secret), os.mkfifo, os.mkdir):
            _plant(folder / ".archived", plant)
            after = await master.submit("SHELL", {"script": "echo two"})
            await master.table.ended(after)
            await there(archived, after, "two\n")
        assert content(archived, 900) is content(archived, 901) is None
    assert secret.read_text() == "secret"


@pytest.fixture
def upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LogArchive]:
    """Writes logs of demo.flow and copies them, in this process."""
    store = LogStore(tmp_path / "logs")
    monkeypatch.chdir(tmp_path)

    def write_and_upload(live: Set[int] = frozenset(), **logs: str) -> LogArchive:
        for name, text in logs.items():
            path = store.path("demo.flow", INSTANCE, int(name.removeprefix("log_")))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        folders = [("demo.flow", INSTANCE)]
        errand = LogUpload(str(tmp_path / "archive"), CLUSTER, str(store.root), folders, live)
        monkeypatch.setattr(sys, "stdin", io.StringIO(errand.to_json()))
        assert upload_logs() == 0
        return LogArchive(errand.url, CLUSTER)

    return write_and_upload


def test_logs_of_live_attempts_are_left_out(
    upload: Callable[..., LogArchive], tmp_path: Path
) -> None:
    archive = upload(live={2}, log_1="log 1", log_2="log 2")
    assert archive.read(INSTANCE, 1, 0, 5) == b"log 1"
    with pytest.raises(ObjectMissing):
        archive.size(INSTANCE, 2)
    assert unarchived(LogFolder(INSTANCE, "demo.flow", tmp_path / "logs")) == {2}


def test_only_what_has_changed_is_copied_again(
    upload: Callable[..., LogArchive], tmp_path: Path
) -> None:
    archive = upload(log_1="one", log_2="two")
    (one,) = (tmp_path / "archive").rglob("1.log")
    at = one.stat().st_mtime_ns
    upload(log_2="two and more")
    assert archive.read(INSTANCE, 2, 0, 99) == b"two and more"
    assert one.stat().st_mtime_ns == at
