"""psycopg's connection, for a server that answers sooner than the event loop could turn.

A server nearby answers most statements in a fraction of a millisecond. To register the socket, go
through the event loop and unregister it again costs more than that, for each statement.
"""

import select
import time
from typing import Any, TypeVar

from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

from shoal.sql.pause import Pause

T = TypeVar("T")

# For so long the event loop waits for an answer.
_ANSWER_S = 0.0004
# After an answer that took longer so many are left to the event loop, twice as many after each
# try that fails: a server that is far away is hardly ever waited for.
_MOST_LEFT = 256
_DESCRIPTORS = 1024  # that select can watch


class QuickConnection(AsyncConnection[Any]):
    """Waits a moment for each answer before it leaves the waiting to the event loop."""

    is_slow = False  # set while an answer takes long as a rule: that to a commit
    _to_leave = 0
    _left_after_next = 1
    _pause = Pause()

    async def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Carry on with ``gen``, which says what it waits for, to its end."""
        if self.is_slow or self.pgconn.socket >= _DESCRIPTORS:
            return await self._wait_long(gen, interval, timeout)
        if self._to_leave > 0:
            self._to_leave -= 1
            return await self._wait_long(gen, interval, timeout)
        await self._pause.if_due()
        deadline_s = time.monotonic() + _ANSWER_S
        try:
            state = next(gen)
            while ready := _ready(self.pgconn.socket, state, deadline_s - time.monotonic()):
                state = gen.send(ready)
        except StopIteration as end:
            self._left_after_next = 1
            answer: T = end.value
            return answer
        self._to_leave = self._left_after_next
        self._left_after_next = min(2 * self._left_after_next, _MOST_LEFT)
        return await self._wait_long(_resumed(gen, state), interval, timeout)

    async def _wait_long(self, gen: PQGen[T], interval: float, timeout: float | None) -> T:
        try:
            return await super().wait(gen, interval, timeout)
        finally:
            self._pause.made()


def _ready(descriptor: int, state: Wait, timeout_s: float) -> int:
    """Return what of ``state`` is there within the time; 0: nothing."""
    reading = [descriptor] if state & Wait.R else []
    writing = [descriptor] if state & Wait.W else []
    readable, writable, _ = select.select(reading, writing, [], max(timeout_s, 0.0))
    return (Ready.R if readable else 0) | (Ready.W if writable else 0)


def _resumed(gen: PQGen[T], state: Wait) -> PQGen[T]:
    """Return a generator that goes on with ``gen``, which has come to wait for ``state``."""
    try:
        while True:
            state = gen.send((yield state))
    except StopIteration as end:
        answer: T = end.value
        return answer
