"""When a disk counts as nearly full, when it has room again, and when that is checked."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from shoal.worker.home.disk import DiskGuard
from tests.support.waiting import eventually

MIB = 1 << 20


class Disks:
    """What ``os.statvfs`` says of all disks."""

    def __init__(self) -> None:
        self.free_mb, self.files, self.free_files = 1000.0, 10**6, 10**6
        self.asked = 0

    def statvfs(self, _: object) -> SimpleNamespace:
        self.asked += 1
        return SimpleNamespace(
            f_bavail=int(self.free_mb * MIB / 512),
            f_frsize=512,
            f_files=self.files,
            f_favail=self.free_files,
        )


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disks]:
    disks = Disks()
    with monkeypatch.context() as patches:
        patches.setattr(os, "statvfs", disks.statvfs)
        yield disks


async def test_shortage_begins_at_the_limit_and_ends_well_above_it(
    disks: Disks, tmp_path: Path
) -> None:
    guard, changes = DiskGuard([tmp_path], 100), []
    guard.subscribe(lambda: changes.append(disks.free_mb))
    short = []
    for free_mb in (150, 101, 99, 101, 124, 126, 101, 99):
        disks.free_mb = free_mb
        await guard.check()
        short.append(guard.shortage is not None)
    assert short == [False, False, True, True, True, False, False, True]
    assert changes == [99, 126, 99]
    assert guard.shortage == (
        f"the disk of {tmp_path} has 99 MiB left, less than min_free_mb = 100"
    )


async def test_disk_without_room_for_files_is_full_too(disks: Disks, tmp_path: Path) -> None:
    guard = DiskGuard([tmp_path], 100)
    disks.free_files = 999
    await guard.check()
    assert guard.shortage == f"the disk of {tmp_path} has room for 999 more files only"
    disks.files = disks.free_files = 0  # of a file system that does not count them
    await guard.check()
    assert guard.shortage is None


async def test_folder_that_is_gone_is_a_shortage(tmp_path: Path) -> None:
    guard = DiskGuard([tmp_path / "gone"], 1)
    await guard.check()
    assert guard.shortage == f"{tmp_path / 'gone'} cannot be checked: No such file or directory"


async def test_guard_may_be_switched_off(disks: Disks, tmp_path: Path) -> None:
    disks.free_mb = disks.free_files = 0
    guard = DiskGuard([tmp_path], 0)
    assert not await guard.is_short()
    await guard.enough()


async def test_idle_worker_checks_its_disks_before_it_claims(disks: Disks, tmp_path: Path) -> None:
    """While it holds nothing they are hardly checked: it may have filled up meanwhile."""
    guard = DiskGuard([tmp_path], 100, check_every_s=0.0)
    idle, in_use = asyncio.Event(), asyncio.Event()

    async def until_used() -> None:
        idle.set()
        await in_use.wait()

    watching = asyncio.create_task(guard.watch(until_used))
    await idle.wait()
    assert disks.asked == 1
    disks.free_mb = 99
    assert await guard.is_short()
    asked = disks.asked
    waiting = asyncio.create_task(guard.enough())
    await eventually(lambda: disks.asked > asked + 2)
    assert not waiting.done()
    disks.free_mb = 1000
    await waiting  # who waits for room checks for it: nothing can come into use meanwhile
    in_use.set()
    await eventually(lambda: disks.asked > 10)
    watching.cancel()
