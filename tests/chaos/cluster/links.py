"""The network between the roles and their servers: TCP proxies that can be told to misbehave.

Each role has a ``Link`` of its own to ZooKeeper and to the database. All proxies run on one
thread with its own event loop, so that nothing the suite does keeps bytes waiting.
"""

import asyncio
import concurrent.futures
import contextlib
import re
import threading
from collections.abc import Callable, Coroutine, Sequence
from enum import Enum, auto
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")

_ANSWER_S = 30.0  # for the proxies' loop to do what it is told
_FAILING_S = 0.2  # how long a connection lives on after its answers have begun to vanish


class Mode(Enum):
    """What a link does with what it carries."""

    OPEN = auto()
    FROZEN = auto()  # nothing passes; what waits is delivered when the link opens again
    REFUSING = auto()  # connections are closed, and new ones, too
    LOSING_REPLIES = auto()  # requests arrive, answers do not
    LOSING_REQUESTS = auto()  # requests do not arrive


class Link:
    """One role's way to some servers: one proxy, with one port, for each server.

    Use it from any thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, at: str) -> None:
        self.name = name
        self._at = at
        self.ports: list[int] = []
        self.swallowed = 0  # answers thrown away on purpose; read by any thread
        self._loop = loop
        self._mode = Mode.OPEN
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._pattern: re.Pattern[bytes] | None = None
        self._left = 0
        self._delay_s = 0.0
        self._away_s = 0.0
        self._away_until = 0.0
        self._servers: list[asyncio.Server] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._carried: set[_Carried] = set()

    def set(self, mode: Mode) -> None:
        """Change the mode. Connections that were cheated are broken when the link opens."""
        self._do(lambda: self._set(mode))

    def swallow(
        self, pattern: bytes | re.Pattern[bytes], times: int, *, away_s: float = 0.0
    ) -> None:
        """Lose the answers to the next ``times`` requests with ``pattern`` in them.

        The request arrives; a moment later the connection breaks, and for ``away_s`` there is no
        other. 0 times end it.
        """
        wanted = re.compile(re.escape(pattern)) if isinstance(pattern, bytes) else pattern
        self._do(lambda: self._expect(wanted, times, away_s))

    def silence(self) -> int:
        """Let the connections that are open now carry nothing any more, for ever, unbroken.

        New ones are carried. Returns how many have fallen silent.
        """
        silenced = 0

        def act() -> None:
            nonlocal silenced
            for carried in self._carried:
                carried.silent = True
                silenced += 1

        self._do(act)
        return silenced

    def delay(self, by_s: float) -> None:
        """Let every answer take so much longer from now on; 0 ends it."""

        def act() -> None:
            self._delay_s = by_s

        self._do(act)

    def carries(self, number: int) -> bool:
        """Whether a connection to the server of this number, from 0, is open."""
        found = False

        def act() -> None:
            nonlocal found
            found = any(carried.number == number for carried in self._carried)

        self._do(act)
        return found

    @property
    def carries_any(self) -> bool:
        """Whether a connection to any server is open."""
        return any(self.carries(number) for number in range(len(self.ports)))

    def _do(self, action: Callable[[], None]) -> None:
        """Return when the proxies' loop has done it: from then on it holds."""
        done: concurrent.futures.Future[None] = concurrent.futures.Future()

        def act() -> None:
            action()
            done.set_result(None)

        self._loop.call_soon_threadsafe(act)
        done.result(_ANSWER_S)

    # -- on the proxies' own loop --------------------------------------------------------------

    def _set(self, mode: Mode) -> None:
        before, self._mode = self._mode, mode
        (self._thawed.clear if mode is Mode.FROZEN else self._thawed.set)()
        if mode is Mode.REFUSING or before in (Mode.LOSING_REPLIES, Mode.LOSING_REQUESTS):
            self._drop()

    def _expect(self, pattern: re.Pattern[bytes], times: int, away_s: float) -> None:
        self._pattern, self._left, self._away_s = pattern, times, away_s

    def _drop(self) -> None:
        for carried in self._carried:
            carried.abort()
        for task in self._serving:
            task.cancel()

    async def open(self, host: str, port: int) -> None:
        """Add a proxy to a server."""
        number = len(self.ports)

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._serve(_Carried(reader, writer, number), host, port))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

        server = await asyncio.start_server(accept, self._at, 0)
        self._servers.append(server)
        self.ports.append(server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        self._drop()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await asyncio.sleep(0)  # the turn of the loop in which aborted transports close

    async def _serve(self, carried: "_Carried", host: str, port: int) -> None:
        reader, writer = carried.client
        self._carried.add(carried)
        pumps: list[asyncio.Task[None]] = []
        try:
            await self._thawed.wait()
            if self._mode is Mode.REFUSING or self._loop.time() < self._away_until:
                return
            there_reader, there = await asyncio.open_connection(host, port)
            carried.ends.append(there)
            pumps.append(asyncio.create_task(self._requests(carried, reader, there)))
            pumps.append(asyncio.create_task(self._replies(carried, there_reader, writer)))
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            return  # the server is down: the client sees a connection that breaks at once
        finally:
            for pump in pumps:
                pump.cancel()
            carried.abort()
            self._carried.discard(carried)

    async def _requests(
        self, carried: "_Carried", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._thawed.wait()
                if carried.broken:
                    return
                if carried.silent or self._mode is Mode.LOSING_REQUESTS:
                    continue
                if self._left and self._pattern and self._pattern.search(data):
                    self._left -= 1
                    if self._away_s:
                        self._away_until = self._loop.time() + _FAILING_S + self._away_s
                    self.swallowed += 1
                    carried.failing = True
                    self._loop.call_later(_FAILING_S, carried.abort)
                writer.write(data)
                await writer.drain()
            await self._thawed.wait()  # nor does the end of a connection get through

    async def _replies(
        self, carried: "_Carried", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._thawed.wait()
                if carried.broken:
                    return
                if carried.silent or carried.failing or self._mode is Mode.LOSING_REPLIES:
                    continue
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                writer.write(data)
                await writer.drain()
            await self._thawed.wait()
        if carried.silent:
            await asyncio.Event().wait()  # a server that is gone does not say so


class _Carried:
    """One connection through a link, to the server of this number."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        self.client, self.number = (reader, writer), number
        self.ends = [writer]
        self.failing = False  # its answers are thrown away
        self.silent = False  # nothing passes, in either direction, and nobody is told
        self.broken = False  # nothing more passes: a stream with a hole in it must not go on

    def abort(self) -> None:
        self.broken = True
        for end in self.ends:
            end.transport.abort()


class Network:
    """All links, and the thread that carries their bytes; a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self.links: list[Link] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for link in self.links:
            self._run(link.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def link(self, name: str, servers: Sequence[tuple[str, int]], at: str = "127.0.0.1") -> Link:
        """Return a new link to ``servers``, open. ``at``: the address of its own ports."""
        link = Link(self._loop, name, at)
        for host, port in servers:
            self._run(link.open(host, port))
        self.links.append(link)
        return link

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_ANSWER_S)
