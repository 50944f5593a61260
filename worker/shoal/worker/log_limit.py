"""The limit for the size of one attempt's log.

Tasks write their logs themselves, straight into the file, so nothing stands in their way that
could count. Instead the file is looked at and cut back to the limit when it is longer: what it
held up to there stays, the task goes on, and since it appends, its next output lands behind the
limit and goes with the next cut. So a log takes more room than the limit for a moment only. When
the attempt is over, a last line says how much is missing.
"""

import asyncio
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

import structlog

from shoal.worker.agent_attempts import Attempt, Attempts

log = structlog.get_logger()

LOOK_EVERY_S = 1.0
LOOK_AGAIN_S = 0.2  # while one is too long
MIB = 1 << 20


class LogLimit:
    """Keeps the logs of ``attempts`` at ``limit_mb`` MiB; 0 is no limit. One event loop."""

    def __init__(self, attempts: Attempts, limit_mb: int) -> None:
        self._attempts, self._limit_mb = attempts, limit_mb

    @property
    def limit(self) -> int | None:
        """The limit in bytes."""
        return self._limit_mb * MIB or None

    async def watch(self) -> None:
        """Cut logs back for ever."""
        while self.limit is not None:
            running = {a: a.log_path for a in self._attempts.live if a.log_path is not None}
            too_long = await asyncio.to_thread(self._cut_all, running) if running else []
            await asyncio.sleep(LOOK_AGAIN_S if too_long else LOOK_EVERY_S)

    async def finish(self, attempt: Attempt, log_bytes: int) -> None:
        """Cut the log of an attempt that has ended with so many bytes; say what is missing."""
        path, attempt.log_path = attempt.log_path, None  # from now on it grows no more
        if path is None or self.limit is None:
            return
        if attempt.log_dropped or log_bytes > self.limit:
            await asyncio.to_thread(self._finish, attempt, path)
            log.warning("log cut", task_instance=attempt.id, dropped_bytes=attempt.log_dropped)

    def _cut_all(self, running: Mapping[Attempt, Path]) -> Iterable[Attempt]:
        return [attempt for attempt, path in running.items() if self._cut(attempt, path)]

    def _cut(self, attempt: Attempt, path: Path) -> bool:
        """Cut one log; return whether it was too long. Blocks."""
        try:
            surplus = self._cut_file(path)
        except FileNotFoundError:  # removed by its task, or not there yet
            return False
        except OSError as error:
            log.warning("log not cut", task_instance=attempt.id, error=str(error))
            return False
        attempt.log_dropped += surplus
        return surplus > 0

    def _cut_file(self, path: Path) -> int:
        """Return how many bytes were too many. Raises OSError, also for a link."""
        assert self.limit is not None
        if path.lstat().st_size <= self.limit:
            return 0
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size <= self.limit:
                return 0
            os.ftruncate(fd, self.limit)
        finally:
            os.close(fd)
        return found.st_size - self.limit

    def _finish(self, attempt: Attempt, path: Path) -> None:
        self._cut(attempt, path)
        line = (
            f"\nshoal: a log is limited to {self._limit_mb:,} MiB (log_limit_mb of the worker); "
            f"at least {attempt.log_dropped:,} further bytes were dropped\n"
        )
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with open(os.open(path, flags), "ab") as file:
                file.write(line.encode())
        except OSError as error:
            log.warning("log not completed", task_instance=attempt.id, error=str(error))
