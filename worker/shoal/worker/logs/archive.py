"""Copies finished logs into the archive, where they outlive this worker.

A log is copied some seconds after the end of its attempt, or when a worker has started that finds
it. The masters say which instances there still are, and what the cluster is called in the archive.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

import structlog

from shoal.core.errors import ShoalError
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.logs.folders import LogFolder, folders
from shoal.worker.logs.upload import LogUpload, unarchived
from shoal.worker.masters import Ask
from shoal.worker.processes.helpers import Helpers

log = structlog.get_logger()

EVERY_S = 10.0
SEARCH_EVERY_S = 3_600.0  # through all logs
FIRST_PAUSE_S = 1.0  # after a failure; twice as long after each that follows
LONGEST_PAUSE_S = 30.0
TIMEOUT_S = 3_600.0
_TOGETHER = 200  # instances
_UPLOADING = "shoal.worker.logs.upload"


class LogArchiver:
    """Belongs to the event loop; ``run`` is its life.

    ``root``: the folder of all logs. ``former``: those of workers that ran here before.
    """

    def __init__(
        self,
        root: Path,
        url: str,
        attempts: HeldAttempts,
        ask: Ask,
        helpers: Helpers,
        former: Callable[[], Iterable[Path]] = lambda: (),
    ) -> None:
        self._root, self._url, self._former = root, url, former
        self._attempts, self._ask, self._helpers = attempts, ask, helpers
        self._waiting: dict[LogFolder, None] = {}  # a set that keeps its order
        self.trouble: str | None = None  # why logs are not copied
        attempts.when_forgotten(self._note)

    async def run(self) -> None:
        """Copy what is finished, until it is cancelled."""
        due_s = 0.0
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                if time.monotonic() >= due_s:
                    await self._search()
                    due_s = time.monotonic() + SEARCH_EVERY_S
                # No more than there is now: each copy is a process, and tasks end all the time.
                for _ in range(0, len(self._waiting), _TOGETHER):
                    await self._copy()
                if self.trouble is not None:
                    log.info("logs are copied to the archive again")
                    self.trouble = None
            except (ShoalError, OSError) as error:
                self._failed(str(error))
            except Exception as error:
                # Logs wait here until an administrator has repaired it; tasks must not suffer.
                log.exception("logs are not copied to the archive")
                self._failed(repr(error))
            if self.trouble is None:
                pause_s = FIRST_PAUSE_S
                await asyncio.sleep(EVERY_S)
            else:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def finish(self) -> None:
        """Copy what is left: this machine may be gone soon."""
        try:
            while self._waiting:
                await self._copy()
        except (ShoalError, OSError) as error:
            log.warning("logs are left here alone", error=str(error))

    def is_waiting(self, folder: LogFolder) -> bool:
        """Return whether logs in a folder are still to be copied. Blocks."""
        return bool(unarchived(folder))

    def _note(self, attempt: HeldAttempt) -> None:
        if attempt.launch.workflow is not None:
            instance = attempt.claim.entry.workflow_instance_id
            self._waiting[LogFolder(instance, attempt.launch.workflow, self._root)] = None

    async def _search(self) -> None:
        """Find what an earlier life of this worker has left, or what was missed."""
        found = await asyncio.to_thread(self._left)
        self._waiting.update(dict.fromkeys(found))

    def _left(self) -> list[LogFolder]:
        roots = (self._root, *self._former())
        return [folder for root in roots for folder in folders(root) if unarchived(folder)]

    async def _copy(self) -> None:
        """Copy some. Raises ShoalError, OSError."""
        root = next(iter(self._waiting)).root
        some = list(islice((each for each in self._waiting if each.root == root), _TOGETHER))
        for folder in some:  # who ends meanwhile comes again
            del self._waiting[folder]
        try:
            await self._upload(some)
        except BaseException:
            self._waiting.update(dict.fromkeys(some))
            raise

    async def _upload(self, some: Sequence[LogFolder]) -> None:
        standing = await self._ask([folder.workflow_instance_id for folder in some])
        ours = await asyncio.to_thread(
            lambda: [folder for folder in some if folder.belongs_to(standing.cluster)]
        )
        known = [
            (folder.workflow, folder.workflow_instance_id)
            for folder in ours
            if folder.workflow_instance_id in standing.open
            or folder.workflow_instance_id in standing.ended
        ]
        if not known:
            return
        live = {attempt.id for attempt in self._attempts}
        errand = LogUpload(self._url, standing.cluster, str(some[0].root), known, live)
        ended = await self._helpers.run(
            _UPLOADING, errand.to_json(), name="archive", timeout_s=TIMEOUT_S
        )
        if not ended.is_well:
            raise LogsNotArchived(ended.why)

    def _failed(self, why: str) -> None:
        if self.trouble is None:
            log.warning("logs are not copied to the archive", error=why)
        self.trouble = why


class LogsNotArchived(ShoalError):
    """Logs could not be copied into the archive. They are tried again."""
