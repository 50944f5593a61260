"""Remove what an attempt leaves on this machine, except its log, when it is no longer needed."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import structlog

from shoal.worker.attempts.held import HeldAttempt
from shoal.worker.home.disk_work import DiskWork
from shoal.worker.home.spool import Spool
from shoal.worker.processes.work_files import remove_tree

log = structlog.get_logger()

TOGETHER_S = 0.05  # what is settled within this time goes in one trip to the disk


class Cleaner:
    """Removes work folders and spooled results. Belongs to the event loop; runs in ``tasks``."""

    def __init__(self, spool: Spool, disk_work: DiskWork, tasks: asyncio.TaskGroup) -> None:
        self._spool, self._disk_work, self._tasks = spool, disk_work, tasks
        self._left: list[tuple[int, Path | None]] = []  # for the next trip

    def remove_soon(self, task_instance_id: int, attempt: HeldAttempt | None) -> None:
        """Remove in the background what that attempt left; None if only its result is known."""
        if not self._left:
            self._tasks.create_task(self._remove_gathered())
        self._left.append(_of(task_instance_id, attempt))

    async def remove(self, attempt: HeldAttempt) -> None:
        """Remove what ``attempt`` left, and return when that is done."""
        await self._disk_work.run(partial(self._remove, [_of(attempt.id, attempt)]))

    async def _remove_gathered(self) -> None:
        await asyncio.sleep(TOGETHER_S)
        left, self._left = self._left, []
        await self._disk_work.run(partial(self._remove, left))

    def _remove(self, left: Sequence[tuple[int, Path | None]]) -> None:
        for task_instance_id, work_dir in left:
            try:
                if work_dir is not None and not remove_tree(work_dir):
                    log.warning("work folder left for the next start", folder=str(work_dir))
                self._spool.remove(str(task_instance_id))
            except OSError as error:
                # A broken disk is no reason to end the others. A result that comes back after a
                # restart is reported again, which masters recognise.
                log.error("result not removed", task_instance=task_instance_id, error=str(error))


def _of(task_instance_id: int, attempt: HeldAttempt | None) -> tuple[int, Path | None]:
    return task_instance_id, attempt.launch.work_dir if attempt is not None else None
