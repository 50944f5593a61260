"""When a disk counts as nearly full, and when it has room again."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from shoal.worker.home.disk import DiskGuard

MIB = 1 << 20


class Disks:
    """What ``os.statvfs`` says of all disks."""

    def __init__(self) -> None:
        self.free_mb, self.files, self.free_files = 1000.0, 10**6, 10**6

    def statvfs(self, _: object) -> SimpleNamespace:
        return SimpleNamespace(
            f_bavail=int(self.free_mb * MIB / 512),
            f_frsize=512,
            f_files=self.files,
            f_favail=self.free_files,
        )


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> Disks:
    disks = Disks()
    monkeypatch.setattr(os, "statvfs", disks.statvfs)
    return disks


async def test_shortage_begins_at_the_limit_and_ends_well_above_it(
    disks: Disks, tmp_path: Path
) -> None:
    guard = DiskGuard([tmp_path], 100)
    seen = []
    for free_mb in (150, 101, 99, 101, 124, 126, 101, 99):
        disks.free_mb = free_mb
        changed = await guard.check()
        seen.append((changed, guard.shortage is not None))
    assert seen == [
        (False, False),
        (False, False),
        (True, True),
        (False, True),
        (False, True),
        (True, False),
        (False, False),
        (True, True),
    ]
    assert guard.shortage == (
        f"the disk of {tmp_path} has 99 MiB left, less than min_free_mb = 100"
    )


async def test_disk_without_room_for_files_is_full_too(disks: Disks, tmp_path: Path) -> None:
    guard = DiskGuard([tmp_path], 100)
    disks.free_files = 999
    assert await guard.check()
    assert guard.shortage == f"the disk of {tmp_path} has room for 999 more files only"
    disks.files = disks.free_files = 0  # of a file system that does not count them
    assert await guard.check()
    assert guard.shortage is None


async def test_folder_that_is_gone_is_a_shortage(tmp_path: Path) -> None:
    guard = DiskGuard([tmp_path / "gone"], 1)
    assert await guard.check()
    assert guard.shortage == f"{tmp_path / 'gone'} cannot be checked: No such file or directory"


async def test_guard_may_be_switched_off(disks: Disks, tmp_path: Path) -> None:
    disks.free_mb = disks.free_files = 0
    guard = DiskGuard([tmp_path], 0)
    assert not await guard.check()
    assert guard.shortage is None
    await guard.enough()
