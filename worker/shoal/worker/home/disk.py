"""Room on the disks that hold attempts, logs and results; without it nothing more is claimed.

A task that is started on a full disk fails for a reason that is not its own, and its log and
result may have no place. So a worker leaves waiting tasks to others while one of its disks is
nearly full, says so, and goes on by itself when there is room again.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import structlog

log = structlog.get_logger()

CHECK_EVERY_S = 1.0  # two system calls a folder
MIB = 1 << 20
FEWEST_FILES = 1000  # that can still be created
# What must be free to begin again, as a multiple of what must be free to go on: no flickering.
ENOUGH = 1.25


class DiskGuard:
    """Watches the disks below ``folders``. Belongs to one event loop.

    At least ``min_free_mb`` MiB must be free on each; 0 switches the guard off.
    """

    def __init__(self, folders: Sequence[Path], min_free_mb: int) -> None:
        self._folders, self._min_free_mb = folders, min_free_mb
        self.shortage: str | None = None  # what is missing where, in words
        self._enough = asyncio.Event()
        self._enough.set()

    async def enough(self) -> None:
        """Return as soon as no disk is nearly full."""
        await self._enough.wait()

    async def check(self) -> bool:
        """Check the disks now; return whether ``shortage`` has changed between some and none."""
        short = self.shortage is not None
        self.shortage = await asyncio.to_thread(self._find_shortage)
        if (self.shortage is not None) == short:
            return False
        if self.shortage is None:
            log.info("disks have room again: claiming tasks")
            self._enough.set()
        else:
            log.warning("disk nearly full: claiming no more tasks", why=self.shortage)
            self._enough.clear()
        return True

    async def watch(self, on_change: Callable[[], Awaitable[None]]) -> None:
        """Check for ever; call ``on_change`` after each change."""
        while self._min_free_mb > 0:
            if await self.check():
                await on_change()
            await asyncio.sleep(CHECK_EVERY_S)

    def _find_shortage(self) -> str | None:
        if self._min_free_mb == 0:
            return None
        factor = 1.0 if self.shortage is None else ENOUGH
        for folder in self._folders:
            try:
                found = os.statvfs(folder)
            except OSError as error:
                return f"{folder} cannot be checked: {error.strerror}"
            free_mb = found.f_bavail * found.f_frsize / MIB
            if free_mb < self._min_free_mb * factor:
                return (
                    f"the disk of {folder} has {free_mb:,.0f} MiB left, less than min_free_mb = "
                    f"{self._min_free_mb:,}"
                )
            # Some file systems count no files and say 0 of 0.
            if found.f_files and found.f_favail < FEWEST_FILES * factor:
                return f"the disk of {folder} has room for {found.f_favail:,} more files only"
        return None
