"""Limits that keep one task, or all of them, from filling a worker's disks."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from shoal.worker.home import disk
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    eventually,
    log_file,
    log_text,
    the_worker,
)
from tests.integration.worker.logs.log_reader import MEBIBYTE, Reader, ref
from tests.support.fake_master import FakeMaster

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

NOTE = "\nshoal: a log is limited to 1 MiB (log_limit_mb of the worker); at least "
PATIENCE_S = 100.0


def letters(count: int, letter: str) -> str:
    """A shell command that writes so many bytes."""
    return f"head -c {count} /dev/zero | tr '\\0' {letter}"


def dropped(log: str) -> int:
    """The number in the last line of a log that was cut."""
    assert log[MEBIBYTE:].startswith(NOTE), log[MEBIBYTE:][:200]
    number, _, rest = log[MEBIBYTE + len(NOTE) :].partition(" ")
    assert rest == "further bytes were dropped\n"
    return int(number.replace(",", ""))


async def test_long_log_is_cut_and_its_task_goes_on(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    async with InProcessWorker(cluster, log_limit_mb=1):
        script = f"{letters(3 * MEBIBYTE, 'a')}; exit 4"
        number = await master.submit("SHELL", {"script": script})
        task = await master.table.ended(number, timeout_s=PATIENCE_S)
    assert task.report is not None
    assert task.report.exit_code == 4
    log = log_text(cluster.data, number)
    assert log[:MEBIBYTE] == "a" * MEBIBYTE
    assert 0 < dropped(log) <= 2 * MEBIBYTE


async def test_log_is_cut_while_its_task_runs_and_readers_see_nothing_of_that(
    master: FakeMaster, cluster: ClusterSettings, channels: Channels, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with InProcessWorker(cluster, log_limit_mb=1):
        reader = Reader(channels, str((await the_worker(master.session)).data["address"]))
        first, second = letters(2 * MEBIBYTE, "a"), letters(MEBIBYTE, "b")
        wait = f"until [ -e '{go}' ]; do sleep 0.02; done"
        number = await master.submit("SHELL", {"script": f"{first}; {wait}; {second}"})
        await master.table.wait(number, "RUNNING")
        followed = bytearray()
        following = asyncio.create_task(reader.follow(ref(number), followed))
        await eventually(lambda: log_file(cluster.data, number).exists())
        await eventually(lambda: len(followed) == MEBIBYTE)
        await eventually(lambda: log_file(cluster.data, number).stat().st_size == MEBIBYTE)
        view = await reader.view(ref(number), offset=MEBIBYTE - 5)
        assert (view.data, view.size, view.finished) == (b"aaaaa", MEBIBYTE, False)
        assert await reader.download(ref(number)) == b"a" * MEBIBYTE
        go.touch()
        assert (await master.table.ended(number, timeout_s=PATIENCE_S)).state == "SUCCEEDED"
        async with asyncio.timeout(PATIENCE_S):
            await following
        assert await reader.download(ref(number)) == bytes(followed)
    log = followed.decode()
    assert log == log_text(cluster.data, number)
    assert log[:MEBIBYTE] == "a" * MEBIBYTE
    # "At least": what a check cuts in the moment of the end may not be counted yet.
    assert MEBIBYTE <= dropped(log) <= 2 * MEBIBYTE


async def test_log_within_the_limit_is_left_as_it_is(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    async with InProcessWorker(cluster, log_limit_mb=1):
        number = await master.submit("SHELL", {"script": letters(MEBIBYTE, "a")})
        await master.table.ended(number, timeout_s=PATIENCE_S)
    assert log_text(cluster.data, number) == "a" * MEBIBYTE


async def test_log_whose_file_the_task_has_replaced_leads_nowhere(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    """The cut never follows a link to another file."""
    other = tmp_path / "other"
    other.write_bytes(b"x" * 2 * MEBIBYTE)
    async with InProcessWorker(cluster, log_limit_mb=1):
        path = log_file(cluster.data, await master.submit("SHELL", {"script": "true"}))
        await eventually(path.exists)
        script = (
            f"{letters(2 * MEBIBYTE, 'a')}; "
            f"ln -sf '{other}' '{path.parent}/'$SHOAL_TASK_INSTANCE_ID.log"
        )
        number = await master.submit("SHELL", {"script": script})
        await master.table.ended(number, timeout_s=PATIENCE_S)
    assert other.stat().st_size == 2 * MEBIBYTE


@pytest.fixture
def free_mb(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the disks have left, as the worker reads it: one number, to be changed."""
    free = [1000.0]

    def left(_: object) -> SimpleNamespace:
        return SimpleNamespace(
            f_bavail=int(free[0] * 256), f_frsize=4096, f_files=10**6, f_favail=10**6
        )

    monkeypatch.setattr(os, "statvfs", left)
    return free


async def test_worker_with_a_full_disk_claims_nothing_until_there_is_room(
    master: FakeMaster, cluster: ClusterSettings, free_mb: list[float]
) -> None:
    async with InProcessWorker(cluster, min_free_mb=100):
        before = await master.submit("SHELL", {"script": "true"})
        await master.table.ended(before, timeout_s=PATIENCE_S)
        free_mb[0] = 99.0
        await asyncio.sleep(disk.CHECK_EVERY_S)  # until a claim needs a check that is newer
        waiting = await master.submit("SHELL", {"script": "true"})
        await announced(master, paused=True)
        # A claim would be made at once; that there is none shows after another worker's.
        async with InProcessWorker(cluster, name="other", min_free_mb=0):
            await master.table.ended(waiting, timeout_s=PATIENCE_S)
        assert master.table.tasks[waiting].worker.startswith("other-")
        free_mb[0] = 110.0  # enough to go on, not to begin again
        later = await master.submit("SHELL", {"script": "true"})
        free_mb[0] = 130.0
        await announced(master, paused=False)
        await master.table.ended(later, timeout_s=PATIENCE_S)
        assert master.table.tasks[later].worker.startswith("w-")


async def test_worker_that_starts_on_a_full_disk_says_so_from_the_beginning(
    master: FakeMaster, cluster: ClusterSettings, free_mb: list[float]
) -> None:
    free_mb[0] = 7.0
    async with InProcessWorker(cluster, min_free_mb=100):
        why = (await the_worker(master.session)).data["paused"]
        assert "has 7 MiB left, less than min_free_mb = 100" in why
        assert str(cluster.data) in why
        waiting = await master.submit("SHELL", {"script": "true"})
        free_mb[0] = 1000.0
        await master.table.ended(waiting, timeout_s=PATIENCE_S)


async def announced(master: FakeMaster, *, paused: bool) -> None:
    """Return when the only worker says so."""
    async with asyncio.timeout(PATIENCE_S):
        while ("paused" in (await the_worker(master.session)).data) != paused:
            await asyncio.sleep(0.02)
