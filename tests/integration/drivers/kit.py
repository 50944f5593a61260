"""What the tests of drivers share."""

import asyncio
import dataclasses
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from shoal.core.data_sources import DataSource
from shoal.worker.types.sql.drivers import connect
from shoal.worker.types.sql.session import Session
from tests.integration.drivers import peak
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S


def connected(
    source: DataSource,
    *,
    tag: str = "test-tag",
    attempt: int = 1,
    log: Callable[[str], None] = lambda text: None,
    read_only: bool = False,
    statement_timeout_s: float | None = None,
) -> Session:
    return connect(
        source,
        tag=tag,
        attempt=attempt,
        log=log,
        read_only=read_only,
        statement_timeout_s=statement_timeout_s,
    )


def rows(session: Session, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Run a statement and return all its rows."""
    return list(session.execute(statement, values))


def run(session: Session, *statements: str) -> None:
    for statement in statements:
        session.execute(statement).close()


def peak_of(source: DataSource, statement: str) -> tuple[int, float]:
    """Return how many rows a process has read, and how many MiB more it has needed for that."""
    command = [sys.executable, "-m", peak.__name__, statement]
    told = json.dumps(dataclasses.asdict(source))
    done = subprocess.run(command, input=told, capture_output=True, text=True, check=True)
    count, more = done.stdout.split()
    return int(count), float(more)


class Aside:
    """Something that runs in another thread, and what came of it."""

    def __init__(self, do: Callable[[], Any]) -> None:
        self._do = do
        self.value: Any = None
        self.error: BaseException | None = None
        self.ended_at = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.value = self._do()
        except BaseException as error:  # noqa: BLE001 - it is looked at
            self.error = error
        self.ended_at = time.monotonic()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def join(self) -> "Aside":
        self._thread.join(DEADLINE_S)
        assert self.is_over, "it did not end"
        return self


def wait_until(condition: Callable[[], object], timeout_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"still not true after {timeout_s} s"
        time.sleep(0.01)


class Proxied:
    """A way to a server that can be told to misbehave, run by a thread of its own."""

    def __init__(self, source: DataSource) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._original = source

    def __enter__(self) -> "Proxied":
        self._thread.start()
        self.proxy = TcpProxy(self._original.host, self._original.port or 0)
        self._do(self.proxy.__aenter__())
        self.source = dataclasses.replace(self._original, port=self.proxy.port)
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self.proxy.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_S)
        self._loop.close()

    def cut(self) -> None:
        """End all connections, and let none in."""
        self._loop.call_soon_threadsafe(self.proxy.cut)

    @property
    def is_frozen(self) -> bool:
        """Whether the request came that it was to freeze at."""
        return self.proxy.freeze_from is None

    def _do(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(DEADLINE_S)
