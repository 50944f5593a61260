"""Count what roles that run in this process ask of others: the cost of tasks without a clock."""

import contextvars
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import sqlalchemy.event
from grpc.aio._channel import UnaryUnaryMultiCallable
from sqlalchemy.engine import Engine

from shoal.coordination import ZkSession
from shoal.worker import launching

_ours = contextvars.ContextVar("ours", default=False)
# In place of the launcher's start file; leaves a byte in a file for each process that it starts.
_LAUNCHER = """
import os, runpy, sys

def note(event, _):
    if event in ("os.fork", "os.posix_spawn"):  # its helpers close what they do not know
        with open({forks!r}, "ab") as file:
            file.write(b".")

sys.addaudithook(note)
runpy.run_path({main!r}, run_name="__main__")
"""
STATEMENTS, COMMITS, REQUESTS, CALLS, PROCESSES = (
    "statements",
    "commits",
    "ZooKeeper requests",
    "gRPC calls",
    "processes",
)


@contextmanager
def uncounted() -> Iterator[None]:
    """Leave out the database's work for who measures."""
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


class Counts:
    """What has been asked for so far, as it grows."""

    def __init__(self, forks: Path) -> None:
        self.found: Counter[str] = Counter()
        self._forks = forks  # a byte for each process that launchers have started

    def now(self) -> Counter[str]:
        """Return the counts of everything since the start."""
        forks = self._forks.stat().st_size if self._forks.exists() else 0
        return Counter({**self.found, PROCESSES: forks})


@contextmanager
def counting(folder: Path) -> Iterator[Counts]:
    """Count all that roles do that are started in the block, each kind of request by its name too.

    Processes are those that launchers and their helpers start; programs that tasks start are not
    known.
    """
    counts = Counts(folder / "forks")
    with ExitStack() as stack:
        _count_statements(stack, counts.found)
        _count_requests(stack, counts.found)
        _count_calls(stack, counts.found)
        launcher = folder / "launcher.py"
        real = {"forks": str(folder / "forks"), "main": str(launching.LAUNCHER_MAIN)}
        launcher.write_text(_LAUNCHER.format(**real), encoding="utf-8")
        stack.enter_context(mock.patch.object(launching, "LAUNCHER_MAIN", launcher))
        yield counts


def _count_statements(stack: ExitStack, found: Counter[str]) -> None:
    def statement(*_: Any) -> None:
        if not _ours.get():
            found[STATEMENTS] += 1

    def commit(*_: Any) -> None:
        if not _ours.get():
            found[COMMITS] += 1

    for name, listener in (("before_cursor_execute", statement), ("commit", commit)):
        sqlalchemy.event.listen(Engine, name, listener)
        stack.callback(sqlalchemy.event.remove, Engine, name, listener)


def _count_requests(stack: ExitStack, found: Counter[str]) -> None:
    ask: Callable[..., Any] = ZkSession._request

    def counted(session: ZkSession, verb: str, *rest: Any, **options: Any) -> Any:
        found[REQUESTS] += 1
        found[f"{REQUESTS}: {verb}"] += 1
        return ask(session, verb, *rest, **options)

    stack.enter_context(mock.patch.object(ZkSession, "_request", counted))


def _count_calls(stack: ExitStack, found: Counter[str]) -> None:
    call: Callable[..., Any] = UnaryUnaryMultiCallable.__call__

    def counted(stub: Any, *request: Any, **options: Any) -> Any:
        found[CALLS] += 1
        found[f"{CALLS}: {stub._method.decode().rpartition('/')[2]}"] += 1
        return call(stub, *request, **options)

    stack.enter_context(mock.patch.object(UnaryUnaryMultiCallable, "__call__", counted))
