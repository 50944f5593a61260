"""Room on the disks that hold attempts, logs and results; without it nothing more is claimed.

A task that is started on a full disk fails for a reason that is not its own, and its log and
result may have no place. So a worker leaves waiting tasks to others while one of its disks is
nearly full, says so, and goes on by itself when there is room again.
"""

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import structlog

log = structlog.get_logger()

CHECK_EVERY_S = 1.0  # two system calls a folder
IDLE_CHECK_EVERY_S = 30.0  # for who looks at the worker; before a claim it is checked again
MIB = 1 << 20
FEWEST_FILES = 1000  # that can still be created
# What must be free to begin again, as a multiple of what must be free to go on: no flickering.
ENOUGH = 1.25


class DiskGuard:
    """Watches the disks below ``folders``. Belongs to one event loop.

    At least ``min_free_mb`` MiB must be free on each; 0 switches the guard off.
    """

    def __init__(
        self, folders: Sequence[Path], min_free_mb: int, *, check_every_s: float = CHECK_EVERY_S
    ) -> None:
        self._folders, self._min_free_mb = folders, min_free_mb
        self._check_every_s = check_every_s
        self.shortage: str | None = None  # what is missing where, in words
        self._on_change: list[Callable[[], None]] = []
        self._checked_at = -math.inf  # monotonic seconds
        self._enough = asyncio.Event()
        self._enough.set()

    async def enough(self) -> None:
        """Return as soon as no disk is nearly full.

        Checks for itself: a worker that waits here holds no attempts, so ``watch`` may be resting.
        """
        while await self.is_short():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._check_every_s):
                    await self._enough.wait()

    def subscribe(self, on_change: Callable[[], None]) -> None:
        """Have ``on_change`` called when ``shortage`` has come or gone."""
        self._on_change.append(on_change)

    async def is_short(self) -> bool:
        """Return whether a disk is nearly full, by a check that is not old."""
        is_old = time.monotonic() - self._checked_at >= self._check_every_s
        if self._min_free_mb and is_old:
            await self.check()
        return self.shortage is not None

    async def check(self) -> None:
        """Check the disks now."""
        found = await asyncio.to_thread(self._find_shortage)
        self._checked_at = time.monotonic()
        changed = (found is None) != (self.shortage is None)
        self.shortage = found
        if not changed:
            return
        if found is None:
            log.info("disks have room again: claiming tasks")
            self._enough.set()
        else:
            log.warning("disk nearly full: claiming no more tasks", why=found)
            self._enough.clear()
        for notify in self._on_change:
            notify()

    async def watch(self, in_use: Callable[[], Awaitable[None]]) -> None:
        """Check for ever: often while the worker is in use, or short of room.

        ``in_use`` returns as soon as the worker holds attempts.
        """
        while self._min_free_mb > 0:
            await self.check()
            if self.shortage is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(IDLE_CHECK_EVERY_S):
                        await in_use()
            await asyncio.sleep(self._check_every_s)

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
