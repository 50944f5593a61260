"""A TCP proxy that can be told to misbehave, between a client and a real server."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from sqlalchemy import make_url

from shoal.runtime.settings import ClusterSettings

Impostor = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class TcpProxy:
    """Forward connections on ``port`` to a server; in the loop that entered it.

    A ``target_host`` that begins with a slash is the path of the server's Unix socket. With
    ``outside`` clients come over TLS, with ``inside`` so does the server: what is between is seen
    in clear.

    - ``freeze()``: nothing passes, in either direction, and nobody is told (a cut cable).
      ``heal()`` lets what waited pass, if the connection is still there. ``freeze_from`` does so
      with the first request that has these bytes in it.
    - ``strand()``: nothing passes on the connections that are open now, for ever, and neither side
      is told (a failover without a farewell); new ones work.
    - ``late``: says before each answer how many seconds it comes late.
    - ``swallow_replies``: requests pass, answers are thrown away. ``swallow_from`` starts that
      with the first request that has these bytes in it.
    - ``refusing``: new connections are closed at once.
    - ``spoil_reply``: the next answer has the number of no request.
    - ``heard``: if it is a list, what is sent to the server is written down there.
    - ``ignoring``: how many of the next connections are accepted and then get no answer.
    - ``impostor``: serves the next connection in the server's place.
    - ``drop()`` closes what is open; ``cut()`` drops and refuses; ``heal()`` ends all of it.
    """

    def __init__(
        self,
        target_host: str,
        target_port: int,
        *,
        outside: ssl.SSLContext | None = None,
        inside: ssl.SSLContext | None = None,
    ) -> None:
        self._target = target_host, target_port
        self._outside, self._inside = outside, inside
        self._server: asyncio.Server
        self._serving: set[asyncio.Task[None]] = set()
        self._thawed = asyncio.Event()
        self._thawed.set()
        self.port = 0
        self.swallow_replies = self.refusing = False
        self.refused = 0  # connections that were closed at once
        self.swallow_from: bytes | None = None
        self.freeze_from: bytes | None = None
        self.late: Callable[[], float] | None = None
        self.ignoring = 0
        self.impostor: Impostor | None = None
        self.spoil_reply = False
        self.heard: list[bytes] | None = None
        self._drops = self._strandings = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._outside)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.close()
        while True:
            self.cut()
            await asyncio.gather(*self._serving, return_exceptions=True)
            await asyncio.sleep(0)  # connections that came at the last moment, and aborted ones
            if not self._serving:
                break
        await asyncio.sleep(0)

    def freeze(self) -> None:
        self._thawed.clear()

    def strand(self) -> None:
        self._strandings += 1

    def drop(self) -> None:
        self._drops += 1
        for task in self._serving:
            task.cancel()

    def cut(self) -> None:
        self.refusing = True
        self.drop()

    def heal(self) -> None:
        self.refusing = self.swallow_replies = False
        self._thawed.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)

        def ended(_: asyncio.Task[None]) -> None:
            self._serving.discard(task)
            writer.transport.abort()  # a task that is cancelled before it begins aborts nothing

        task.add_done_callback(ended)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        pumps: list[asyncio.Task[None]] = []
        try:
            if self.refusing:
                self.refused += 1
                return
            if self.ignoring:
                self.ignoring -= 1
                await asyncio.Event().wait()
            if (impostor := self.impostor) is not None:
                self.impostor = None
                with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                    await impostor(reader, writer)
                return
            there_reader, there_writer = await self._connect()
            ends.append(there_writer)
            pumps.append(asyncio.create_task(self._pump(reader, there_writer, replies=False)))
            pumps.append(asyncio.create_task(self._pump(there_reader, writer, replies=True)))
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            for end in ends:
                end.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._target
        if host.startswith("/"):
            return await asyncio.open_unix_connection(host)
        return await asyncio.open_connection(host, port, ssl=self._inside)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, replies: bool
    ) -> None:
        drops, strandings = self._drops, self._strandings
        with contextlib.suppress(ConnectionError):
            while True:
                data = await reader.read(65536)
                if replies and self.late is not None:
                    await asyncio.sleep(self.late())
                if strandings != self._strandings:
                    await asyncio.Event().wait()
                if not replies and self.freeze_from and self.freeze_from in data:
                    self.freeze_from = None
                    self.freeze()
                await self._thawed.wait()  # nor does the end of a connection get through
                # After a drop nothing passes, even what was read before our cancellation came:
                # an answer that follows swallowed ones would be no fault that TCP can have.
                if not data or drops != self._drops:
                    return
                if not replies and self.swallow_from and self.swallow_from in data:
                    self.swallow_replies, self.swallow_from = True, None
                if self.heard is not None and not replies:
                    self.heard.append(data)
                if replies and self.spoil_reply:
                    self.spoil_reply = False
                    data = data[:4] + b"\x00\x12\xd6\x87" + data[8:]
                if not (replies and self.swallow_replies):
                    writer.write(data)
                    await writer.drain()


def behind(proxy: TcpProxy, cluster: ClusterSettings) -> ClusterSettings:
    """How a master sees the cluster whose way to the database is the proxy."""
    url = make_url(cluster.database)
    there = url.set(host="127.0.0.1", port=proxy.port, query={"sslmode": "disable"})
    return cluster.model_copy(update={"database_url": there.render_as_string(hide_password=False)})
