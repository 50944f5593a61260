"""Count what roles that run in this process ask of others: the cost of tasks without a clock.

What they do themselves: ``loop.py``.
"""

import contextvars
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import sqlalchemy.event
from grpc.aio._channel import UnaryUnaryMultiCallable
from kazoo.protocol.connection import ConnectionHandler
from sqlalchemy.engine import Engine

from bench.counts.loop import LoopCounts, counting_turns, of_nobody
from shoal.coordination import ZkSession
from shoal.worker.processes import launcher as agent_side

_ours = contextvars.ContextVar("ours", default=False)
# In place of the launcher's start file; leaves a byte in a file for each process that it starts,
# and in another one for each time that it or one of its helpers wakes up.
_LAUNCHER = """
import os, runpy, select, sys

def note(path):
    with open(path, "ab") as file:  # each time: its helpers close what they do not know
        file.write(b".")

def audit(event, _):
    if event in ("os.fork", "os.posix_spawn"):
        note({forks!r})

class Poll:
    def __init__(self):
        self._real = real_poll()
        self.register, self.modify = self._real.register, self._real.modify
        self.unregister = self._real.unregister

    def poll(self, *timeout):
        found = self._real.poll(*timeout)
        note({wakes!r})
        return found

real_poll, select.poll = select.poll, Poll
sys.addaudithook(audit)
runpy.run_path({main!r}, run_name="__main__")
"""
STATEMENTS, COMMITS, REQUESTS, CALLS, PROCESSES = (
    "statements",
    "commits",
    "ZooKeeper requests",
    "gRPC calls",
    "processes",
)
VALUE_BYTES, REQUEST_BYTES, CALL_BYTES = (
    "bytes of values for the database",
    "bytes to and from ZooKeeper",
    "bytes of gRPC messages",
)
LAUNCHER_WAKE_UPS = "wake-ups: launcher"


@contextmanager
def uncounted() -> Iterator[None]:
    """Leave out the database's work and the loop's for who measures."""
    token = _ours.set(True)
    try:
        with of_nobody():
            yield
    finally:
        _ours.reset(token)


class Counts:
    """What has been asked for so far, as it grows."""

    def __init__(self, folder: Path, turns: LoopCounts) -> None:
        self.found: Counter[str] = Counter()
        self.values: list[Any] = []  # of statements; the caller computes their size
        self._turns = turns
        # A byte for each process that launchers have started, and for each time they woke up.
        self._files = {PROCESSES: folder / "forks", LAUNCHER_WAKE_UPS: folder / "wakes"}

    def now(self) -> Counter[str]:
        """Return the counts of everything since the start."""
        self.found[VALUE_BYTES] += sum(map(_size, self.values))
        self.values.clear()
        noted = {
            kind: file.stat().st_size if file.exists() else 0 for kind, file in self._files.items()
        }
        return Counter({**self.found, **self._turns.now(), **noted})

    @property
    def launcher_program(self) -> str:
        """A start file for launchers that notes what they do."""
        forks, wakes = (str(self._files[kind]) for kind in (PROCESSES, LAUNCHER_WAKE_UPS))
        return _LAUNCHER.format(forks=forks, wakes=wakes, main=str(agent_side.LAUNCHER_MAIN))


@contextmanager
def counting(folder: Path) -> Iterator[Counts]:
    """Count all that roles do that are started in the block, each kind of request by its name too.

    Processes are those that launchers and their helpers start; programs that tasks start are not
    known.
    """
    with ExitStack() as stack:
        counts = Counts(folder, stack.enter_context(counting_turns()))
        _count_statements(stack, counts)
        _count_requests(stack, counts.found)
        _count_calls(stack, counts.found)
        launcher = folder / "launcher.py"
        launcher.write_text(counts.launcher_program, encoding="utf-8")
        stack.enter_context(mock.patch.object(agent_side, "LAUNCHER_MAIN", launcher))
        yield counts


def _count_statements(stack: ExitStack, counts: Counts) -> None:
    found = counts.found

    def statement(_connection: Any, _cursor: Any, _text: str, values: Any, *_: Any) -> None:
        if not _ours.get():
            found[STATEMENTS] += 1
            counts.values.append(values)

    def commit(*_: Any) -> None:
        if not _ours.get():
            found[COMMITS] += 1

    for name, listener in (("before_cursor_execute", statement), ("commit", commit)):
        sqlalchemy.event.listen(Engine, name, listener)
        stack.callback(sqlalchemy.event.remove, Engine, name, listener)


def _size(values: Any) -> int:
    """Return the bytes of all values of a statement; of numbers and times 8 each."""
    match values:
        case None:
            return 0
        case str() | bytes():
            return len(values)
        case Mapping():
            return sum(map(_size, values.values()))
        case Iterable():
            return sum(map(_size, values))
    return 8


def _count_requests(stack: ExitStack, found: Counter[str]) -> None:
    ask: Callable[..., Any] = ZkSession._request
    read: Callable[..., Any] = ConnectionHandler._read_response

    def counted(
        session: ZkSession, verb: str, path: str, request: Any, *rest: Any, **options: Any
    ) -> Any:
        found[REQUESTS] += 1
        found[f"{REQUESTS}: {verb}"] += 1
        found[REQUEST_BYTES] += len(request.serialize())
        return ask(session, verb, path, request, *rest, **options)

    def counted_answer(handler: Any, header: Any, answer: Any, offset: int) -> Any:
        found[REQUEST_BYTES] += len(answer)
        return read(handler, header, answer, offset)

    stack.enter_context(mock.patch.object(ZkSession, "_request", counted))
    stack.enter_context(mock.patch.object(ConnectionHandler, "_read_response", counted_answer))


def _count_calls(stack: ExitStack, found: Counter[str]) -> None:
    call: Callable[..., Any] = UnaryUnaryMultiCallable.__call__

    def counted(stub: Any, request: Any, **options: Any) -> Any:
        found[CALLS] += 1
        found[f"{CALLS}: {stub._method.decode().rpartition('/')[2]}"] += 1
        found[CALL_BYTES] += request.ByteSize()
        under_way = call(stub, request, **options)
        read = under_way._response_deserializer

        def counted_answer(answer: bytes) -> Any:
            found[CALL_BYTES] += len(answer)
            return read(answer)

        under_way._response_deserializer = counted_answer
        return under_way

    stack.enter_context(mock.patch.object(UnaryUnaryMultiCallable, "__call__", counted))
