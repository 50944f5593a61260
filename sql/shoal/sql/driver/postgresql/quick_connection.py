"""psycopg's connection, for a server that answers sooner than the event loop could turn.

A server nearby answers most statements in a fraction of a millisecond. To register the socket, go
through the event loop and unregister it again costs more than that, for each statement.

What takes longer is watched (``silence.py``): a connection whose answers will never come is given
up, and connecting goes on only as long as the server answers.
"""

import os
import select
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar

from psycopg import AsyncConnection, OperationalError
from psycopg.abc import PQGen, PQGenConn
from psycopg.errors import ConnectionTimeout
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait

from shoal.sql.driver.patience import Patience
from shoal.sql.driver.postgresql.cursor import Carry, Converter, StatementCursor, checked
from shoal.sql.driver.postgresql.pipeline import Pipeline, PipelineStatement
from shoal.sql.driver.silence import Session, SilenceWatch
from shoal.sql.driver.turns import Pause

T = TypeVar("T")

# Longest blocking wait of the event loop for an answer, seconds.
_ANSWER_S = 0.0004
# After an answer that took longer, the next ones are left to the event loop: twice as many after
# each try that fails, up to this number. So there is hardly any wait for a distant server.
_MOST_LEFT = 256
_DESCRIPTORS = 1024  # that select can watch
_CANCEL_S = 2.0  # to send the server the cancellation of a statement


class Silent(OperationalError):
    """The connection was given up, since nothing came from the server."""

    is_silence = True  # for the translation of errors of all drivers


class QuickConnection(AsyncConnection[Any]):
    """Waits a moment for each answer before it leaves the waiting to the event loop."""

    is_slow = False  # set while an answer takes long as a rule: that to a commit
    _to_leave = 0
    _left_after_next = 1
    _pause = Pause()

    # As ``silence.Waiting`` says. Written here and by the watch, in one event loop.
    silence: SilenceWatch | None = None  # the watch; None: there is none
    session: Session | None = None
    is_waiting = False
    exchange = 0
    begun_s = heard_s = at_work_s = 0.0
    limit_s = Patience.short_s
    _reason = ""  # why it was given up
    _patience = Patience()

    def __init__(self, pgconn: PGconn, *rest: Any, **options: Any) -> None:
        super().__init__(pgconn, *rest, **options)
        self.converter = Converter(self)
        self.carry: Carry = self._carry  # how a cursor's statements go; a link has its own
        self._together = Pipeline(pgconn)
        self.cursor_factory: Any = StatementCursor

    async def exchange_all(self, statements: Sequence[PipelineStatement]) -> list[PGresult]:
        """Return an answer to each statement, or to each until the connection was lost."""
        return await self.wait(self._together.exchange(statements))

    def checked(self, answer: PGresult) -> PGresult:
        """Return an answer that is not an error. Raises psycopg.Error for one that is."""
        return checked(answer, self.info.encoding)

    async def _carry(self, statements: Iterable[PipelineStatement]) -> list[PGresult]:
        return [self.checked(one) for one in await self.exchange_all(list(statements))]

    @classmethod
    def patient(cls, patience: Patience) -> type[Self]:
        """Return the class of connections with other deadlines."""
        return type(cls.__name__, (cls,), {"_patience": patience, "limit_s": patience.short_s})

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
            if self.silence is not None:
                self.silence.answered_s = deadline_s
            answer: T = end.value
            return answer
        self._to_leave = self._left_after_next
        self._left_after_next = min(2 * self._left_after_next, _MOST_LEFT)
        return await self._wait_long(_resumed(gen, state), interval, timeout)

    async def _wait_long(self, gen: PQGen[T], interval: float, timeout: float | None) -> T:
        self.exchange += 1
        self.begun_s = self.heard_s = time.monotonic()
        self.is_waiting = True
        if self.silence is not None:
            self.silence.waits()
        try:
            answer = await super().wait(self._noting(gen), interval, timeout)
        except OperationalError as error:
            raise (Silent(self._reason) if self._reason else error) from error
        finally:
            self.is_waiting = False
            self._pause.made()
        if self.silence is not None:
            self.silence.answered_s = time.monotonic()
        return answer

    def _noting(self, gen: PQGen[T]) -> PQGen[T]:
        """Return a generator that goes on with ``gen`` and notes when something has come."""
        try:
            state = next(gen)
            while True:
                if ready := (yield state):
                    self.heard_s = time.monotonic()
                state = gen.send(ready)
        except StopIteration as end:
            answer: T = end.value
            return answer

    def give_up(self, reason: str) -> None:
        """Shut the socket down; a wait for an answer fails with ``reason``."""
        self._reason = self._reason or reason
        with suppress(OSError, OperationalError), _socket(self.pgconn.socket) as ours:
            ours.shutdown(socket.SHUT_RDWR)

    async def _try_cancel(self, *, timeout: float = _CANCEL_S) -> None:
        """Have the server stop; the driver calls this if the caller is cancelled, and waits on."""
        if self.silence is None or time.monotonic() - self.heard_s > self._patience.doubt_s:
            self.give_up("cancelled while the database was silent")
        else:
            await super()._try_cancel(timeout=min(timeout, _CANCEL_S))

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> PQGenConn[Self]:
        """Connect. To a host that is silent the driver alone would stick for minutes."""
        gen = super()._connect_gen(conninfo)
        since_s = time.monotonic()
        try:
            descriptor, state = next(gen)
            while True:
                ready = yield descriptor, state
                silent_s = time.monotonic() - since_s
                if ready:
                    since_s += silent_s
                    descriptor, state = gen.send(ready)
                    continue
                is_there = state != Wait.W  # until it is, its socket is not writable
                if silent_s >= (cls._patience.answer_s if is_there else cls._patience.connect_s):
                    gen.close()
                    raise ConnectionTimeout(f"no answer from the database for {silent_s:.1f} s")
        except StopIteration as end:
            made: Self = end.value
            return made


def _socket(descriptor: int) -> socket.socket:
    """Return a socket of its own for the connection that ``descriptor`` is one end of."""
    return socket.socket(fileno=os.dup(descriptor))


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
