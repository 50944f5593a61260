"""What a master's loops are made of: their turns, and what becomes of errors that end one.

A turn comes at a notification and regularly (``Wakeup``), and long ones give way to other tasks
(``LongTurn``). An error of one run or row quarantines that one (``engine/quarantine.py``). After
any other the loop pauses and tries again (``ErrorBackoff``): no error ends a master that another
try may get over. ``Background`` runs what no loop waits for.
"""

import asyncio
import time
import traceback
from collections.abc import Coroutine
from contextlib import suppress
from typing import Self

import structlog

from shoal.core.errors import ShoalError
from shoal.core.runs.quarantine import reason_of
from shoal.sql.errors import DatabaseDamaged, SchemaMissing, SchemaTooNew, SchemaTooOld

log = structlog.get_logger()

_TURN_S = 0.01  # heartbeats and calls wait for it
_MOST_CALLS = 10  # of a trace
# Short at first, as most errors pass; a database that is back is noticed within ten seconds.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 10.0
# No row causes these, and no retry gets over them.
_FINAL = (SchemaMissing, SchemaTooNew, SchemaTooOld, DatabaseDamaged)


class Wakeup:
    """Wakes one loop as soon as it is notified, and at least every ``interval_s`` seconds.

    Notifications are hints and may be lost; they never put off the regular poll. Used on the event
    loop, by one waiter.
    """

    def __init__(self, interval_s: float, first_s: float = 0.0) -> None:
        """``first_s``: until the first regular poll, seconds."""
        self._interval_s = interval_s
        self._due_at = time.monotonic() + first_s  # of the next regular poll
        self._notified = asyncio.Event()

    def notify(self) -> None:
        """Wake the loop now, or as soon as it waits again."""
        self._notified.set()

    def due_in(self, delay_s: float) -> None:
        """Have the next regular poll in ``delay_s`` seconds, instead of after the interval."""
        self._due_at = time.monotonic() + delay_s

    async def wait(self) -> bool:
        """Wait until there is something to do; True: it is time for the regular poll."""
        await wait_for(self._notified, self._due_at - time.monotonic())
        self._notified.clear()
        if time.monotonic() < self._due_at:
            return False
        self._due_at = time.monotonic() + self._interval_s
        return True


async def wait_for(event: asyncio.Event, timeout_s: float | None) -> None:
    """Wait for an event, ``timeout_s`` seconds at most.

    ``asyncio.wait_for`` would not do: before Python 3.12 it swallows a cancellation that meets
    the event.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()


class LongTurn:
    """Lets other tasks have their turn after 10 ms of work."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def pause(self) -> None:
        """Let others have their turn if this one was long. Called between small steps."""
        if time.monotonic() - self._began >= _TURN_S:
            await asyncio.sleep(0)
            self._began = time.monotonic()


def trace_of(error: BaseException) -> str:
    """Return the last calls that led to an error, as text.

    Not left to the renderer of the log: with all their variables it would take seconds of the
    event loop for one error, and show what no log should.
    """
    return "".join(traceback.format_exception(error, limit=-_MOST_CALLS))


class ErrorBackoff:
    """Logs the errors of one loop, with a pause after each that grows while they go on."""

    def __init__(self, loop: str) -> None:
        self._loop = loop
        self._times = 0  # in a row
        self._logged = ""  # the last error whose trace was logged

    def succeeded(self) -> None:
        """Begin with the shortest pause again."""
        self._times = 0

    async def failed(self, error: Exception) -> None:
        """Log an error, and pause. Raises ``error`` if the master cannot work at all."""
        if isinstance(error, _FINAL):
            raise error
        reason = reason_of(error)
        is_known = reason == self._logged or (isinstance(error, ShoalError) and error.retriable)
        self._logged = reason
        log.warning(
            "not done; trying again",
            loop=self._loop,
            error=reason,
            times=self._times + 1,
            trace=None if is_known else trace_of(error),
        )
        pause_s = min(_FIRST_PAUSE_S * 2.0 ** min(self._times, 20), _LONGEST_PAUSE_S)
        self._times += 1
        await asyncio.sleep(pause_s)


def is_shortage(error: BaseException) -> bool:
    """Whether this process had no memory or thread left: no run or row is to blame for that."""
    # Python has no error of its own for threads.
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    )


class Background:
    """Runs tasks for the life of an ``async with`` block, which cancels those that are left."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Start ``work``. An error that it raises is logged, and ends nothing else."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background task failed", task=task.get_name(), trace=trace_of(error))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
