"""Whether this worker can start processes; while it cannot, it claims nothing more.

Without a free descriptor, process or piece of memory every task that is claimed fails to start, and
the next one is claimed at once: a worker could empty a queue that way. So what could not begin is
requeued, claiming pauses, and the launcher is asked from time to time whether it could start
something. Then it begins with a single task, and twice as many after each that has started.
"""

import asyncio
from collections.abc import Callable

import structlog

from shoal.worker.processes.launcher import Launcher, LauncherUnavailable

log = structlog.get_logger()

TRY_EVERY_S = 1.0  # one process, to see whether it can be started
ENOUGH = 64  # starts in a row after which there is no limit


class StartGuard:
    """Belongs to the event loop; runs in ``tasks``."""

    def __init__(self, launcher: Launcher, tasks: asyncio.TaskGroup) -> None:
        self._launcher, self._tasks = launcher, tasks
        self._on_change: list[Callable[[], None]] = []
        self.shortage: str | None = None  # why nothing can be started, in words
        self.limit: int | None = None  # how many to claim at once; None: any number
        self._possible = asyncio.Event()
        self._possible.set()
        self._trying: asyncio.Task[None] | None = None

    def subscribe(self, on_change: Callable[[], None]) -> None:
        """Have ``on_change`` called when ``shortage`` has come or gone."""
        self._on_change.append(on_change)

    def _changed(self) -> None:
        for notify in self._on_change:
            notify()

    def failed(self, why: str) -> None:
        """An attempt could not be started for want of room."""
        self.limit = 1
        if self.shortage is not None:
            return
        log.warning("no room for another process: claiming no more tasks", why=why)
        self.shortage = why
        self._possible.clear()
        self._trying = self._tasks.create_task(self._try_until_possible())
        self._changed()

    def succeeded(self) -> None:
        """An attempt has started."""
        if self.limit is not None:
            self.limit = 2 * self.limit if self.limit < ENOUGH else None

    async def possible(self) -> None:
        """Return as soon as something can be started."""
        await self._possible.wait()

    def close(self) -> None:
        """Try no more: the worker ends."""
        if self._trying is not None:
            self._trying.cancel()

    async def _try_until_possible(self) -> None:
        while True:
            await asyncio.sleep(TRY_EVERY_S)  # room may come from outside
            try:
                if await self._launcher.try_to_start() is None:
                    break
            except LauncherUnavailable:
                pass  # one is being started
        log.info("processes can be started again: claiming tasks")
        self.shortage = None
        self._possible.set()
        self._changed()
