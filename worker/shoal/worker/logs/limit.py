"""The limit for the size of one attempt's log.

Tasks write their logs themselves, straight into the file, so nothing stands in their way that
could count. Instead the file is checked and cut back to the limit when it is longer: what it
held up to there stays, the task goes on, and since it appends, its next output lands behind the
limit and goes with the next cut. So a log takes more room than the limit for a moment only. When
the attempt is over, a last line says how much is missing.
"""

import asyncio
import os
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from shoal.worker.attempts.held import HeldAttempt, HeldAttempts

log = structlog.get_logger()

# All logs are checked every CHECK_EVERY_S, but at most LOGS_EACH_S of them a second; one that grows
# fast more often, at the shortest after SHORTEST_CHECK_S.
CHECK_EVERY_S, LOGS_EACH_S, SHORTEST_CHECK_S = 0.25, 10_000, 0.02
MIB = 1 << 20


class LogLimit:
    """Keeps the logs of ``attempts`` at ``limit_mb`` MiB; 0 means no limit. One event loop."""

    def __init__(self, attempts: HeldAttempts, limit_mb: int) -> None:
        self._attempts, self._limit_mb = attempts, limit_mb
        self._sizes: dict[HeldAttempt, int] = {}  # of the logs, at the last check

    @property
    def limit(self) -> int | None:
        """The limit in bytes."""
        return self._limit_mb * MIB or None

    async def watch(self) -> None:
        """Cut logs back for ever."""
        checked_at = time.monotonic()
        while self.limit is not None:
            running = {a: a.log_path for a in self._attempts.live if a.log_path is not None}
            now = time.monotonic()
            sizes = await asyncio.to_thread(self._cut_all, running) if running else {}
            before, self._sizes = self._sizes, sizes
            growths = [(n, n - min(self.limit, before.get(a, 0))) for a, n in sizes.items()]
            await asyncio.sleep(next_check_s(growths, now - checked_at, self.limit))
            checked_at = now

    async def finish(self, attempt: HeldAttempt, log_bytes: int) -> None:
        """Cut the log of an attempt that has ended with so many bytes; say what is missing."""
        path, attempt.log_path = attempt.log_path, None  # from now on it grows no more
        if path is None or self.limit is None:
            return
        if attempt.log_dropped or log_bytes > self.limit:
            await asyncio.to_thread(self._finish, attempt, path)
            log.warning("log cut", task_instance=attempt.id, dropped_bytes=attempt.log_dropped)

    def _cut_all(self, running: Mapping[HeldAttempt, Path]) -> dict[HeldAttempt, int]:
        return {attempt: self._cut(attempt, path) for attempt, path in running.items()}

    def _cut(self, attempt: HeldAttempt, path: Path) -> int:
        """Cut one log; return how many bytes it had. Blocks."""
        try:
            size, surplus = self._cut_file(path)
        except FileNotFoundError:  # removed by its task, or not there yet
            return 0
        except OSError as error:
            log.warning("log not cut", task_instance=attempt.id, error=str(error))
            return 0
        attempt.log_dropped += surplus
        return size

    def _cut_file(self, path: Path) -> tuple[int, int]:
        """Return how many bytes there were, and were too many. Raises OSError, also for a link."""
        assert self.limit is not None
        if (size := path.lstat().st_size) <= self.limit:
            return size, 0
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size <= self.limit:
                return found.st_size, 0
            os.ftruncate(fd, self.limit)
        finally:
            os.close(fd)
        return found.st_size, found.st_size - self.limit

    def _finish(self, attempt: HeldAttempt, path: Path) -> None:
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


def next_check_s(growths: Sequence[tuple[int, int]], took_s: float, limit: int) -> float:
    """Return when to check again: before any log can have grown far beyond ``limit`` bytes.

    ``growths`` are the sizes of the logs and by how much they have grown in the last ``took_s``.
    """
    longest_s = max(CHECK_EVERY_S, len(growths) / LOGS_EACH_S)
    for size, growth in growths:
        if growth > 0:
            # Half the time that is left: it may grow faster yet. One that is cut begins at limit.
            left = max(0, limit - size)
            longest_s = min(longest_s, left * took_s / growth / 2)
    return max(SHORTEST_CHECK_S, longest_s)
