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

from shoal.worker.attempts.held import HeldAttempt

log = structlog.get_logger()

# All logs are checked every CHECK_EVERY_S, but at most LOGS_EACH_S of them a second; one that grows
# fast more often, at the shortest after SHORTEST_CHECK_S.
CHECK_EVERY_S, LOGS_EACH_S, SHORTEST_CHECK_S = 0.25, 10_000, 0.02
MIB = 1 << 20


class _Log:
    """A log that a process may write to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0  # at the last check, in bytes
        self.dropped = 0  # bytes that the limit has cost it so far


class LogLimit:
    """Keeps logs at ``limit_mb`` MiB each; 0 means no limit. Belongs to one event loop.

    It does nothing while no log grows.
    """

    def __init__(self, limit_mb: int) -> None:
        self._limit_mb = limit_mb
        self._growing: dict[HeldAttempt, _Log] = {}
        self._any = asyncio.Event()  # some log grows

    @property
    def limit(self) -> int | None:
        """The limit in bytes."""
        return self._limit_mb * MIB or None

    def begin(self, attempt: HeldAttempt, path: Path) -> None:
        """From now on a process may write to the log of ``attempt``, until ``finish``."""
        if self.limit is not None:
            self._growing[attempt] = _Log(path)
            self._any.set()

    async def watch(self) -> None:
        """Cut logs back for ever."""
        checked_at = time.monotonic()
        while self.limit is not None:
            if not self._growing:
                self._any.clear()
                await self._any.wait()
                checked_at = time.monotonic()
            now = time.monotonic()
            growing = {a: one for a, one in self._growing.items() if not a.over.is_set()}
            before = {attempt: one.size for attempt, one in growing.items()}
            await asyncio.to_thread(self._cut_all, growing)
            growths = [
                (one.size, one.size - min(self.limit, before[attempt]))
                for attempt, one in growing.items()
            ]
            await asyncio.sleep(next_check_s(growths, now - checked_at, self.limit))
            checked_at = now

    async def finish(self, attempt: HeldAttempt, log_bytes: int) -> None:
        """Cut the log of an attempt that has ended with so many bytes; say what is missing."""
        ended = self._growing.pop(attempt, None)
        if ended is not None and (ended.dropped or log_bytes > self._limit_mb * MIB):
            await asyncio.to_thread(self._finish, attempt, ended)
            log.warning("log cut", task_instance=attempt.id, dropped_bytes=ended.dropped)

    def _cut_all(self, growing: Mapping[HeldAttempt, _Log]) -> None:
        for attempt, each in growing.items():
            self._cut(attempt, each)

    def _cut(self, attempt: HeldAttempt, cut: _Log) -> None:
        """Cut one log. Blocks."""
        try:
            cut.size, surplus = self._cut_file(cut.path)
        except FileNotFoundError:  # removed by its task, or not there yet
            cut.size = 0
        except OSError as error:
            log.warning("log not cut", task_instance=attempt.id, error=str(error))
            cut.size = 0
        else:
            cut.dropped += surplus

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

    def _finish(self, attempt: HeldAttempt, finished: _Log) -> None:
        self._cut(attempt, finished)
        line = (
            f"\nshoal: a log is limited to {self._limit_mb:,} MiB (log_limit_mb of the worker); "
            f"at least {finished.dropped:,} further bytes were dropped\n"
        )
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with open(os.open(finished.path, flags), "ab") as file:
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
