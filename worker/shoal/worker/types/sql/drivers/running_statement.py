"""The statement that a session runs, which other threads can end, and calls with a deadline."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shoal.worker.types.sql.drivers.failures import StatementCancelled

# A cancellation that comes just before the statement reaches the database meets nothing there.
_CANCEL_AGAIN_AFTER_S = (0.1, 0.2, 0.4, 0.8)


class RunningStatement:
    """What the main thread has running, for the threads that cancel it.

    ``interrupt`` cancels in the database whatever runs there; it is called from other threads.
    With ``limit_s`` that is done to each statement that takes longer, its rows included; for
    databases that have no such limit themselves.
    """

    def __init__(self, interrupt: Callable[[], object], limit_s: float | None = None) -> None:
        self._interrupt, self._limit_s = interrupt, limit_s
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._timer: threading.Timer | None = None
        self._number, self._count = 0, 0
        self.is_cancelled = False
        self.has_timed_out = False  # the statement under way, or the last one

    def begin(self) -> None:
        """Say that a statement begins. Raises StatementCancelled if nothing may begin."""
        with self._lock:
            if self.is_cancelled:
                raise StatementCancelled
            self._count += 1
            self._number = self._count
            self.has_timed_out = False
            if self._limit_s is not None:
                self._timer = threading.Timer(self._limit_s, self._time_out, [self._number])
                self._timer.daemon = True
                self._timer.start()

    def end(self) -> None:
        """Say that it has ended, its rows included. Harmless when none is under way."""
        with self._lock:
            self._number = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._idle.notify_all()

    @property
    def number(self) -> int:
        """The number of the statement that is under way; 0: none is."""
        return self._number

    @property
    def is_busy(self) -> bool:
        """Whether a statement is under way."""
        return self._number != 0

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Say so for a statement that is over at the end of the block."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def cancel(self) -> None:
        """Cancel the statement that is under way, and let no other begin. For other threads.

        Returns when it has ended, or has had its chances to.
        """
        with self._lock:
            self.is_cancelled = True
        for pause_s in _CANCEL_AGAIN_AFTER_S:
            if self._number == 0:
                return
            self._interrupt()
            with self._idle:
                self._idle.wait_for(lambda: self._number == 0, pause_s)

    def _time_out(self, number: int) -> None:
        for pause_s in _CANCEL_AGAIN_AFTER_S:
            with self._lock:
                if self._number != number:
                    return
                self.has_timed_out = True
            self._interrupt()
            with self._idle:
                self._idle.wait_for(lambda: self._number != number, pause_s)


def within(limit_s: float, call: Callable[[], object]) -> None:
    """Call it; raise TimeoutError if it takes longer, and what it raises."""
    failures: list[BaseException] = []

    def attempt() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that waits
            failures.append(error)

    # A daemon: a call that does not come back keeps no process from its end.
    thread = threading.Thread(target=attempt, name="call with a deadline", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        raise TimeoutError(f"no answer within {limit_s:g} s")
    if failures:
        raise failures[0]
