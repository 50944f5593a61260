"""An HTTP server on loopback that does exactly what a test says, also what no server should do."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Received:
    """One request as it came. Header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


Handler = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


def answer(status: int = 200, body: bytes | str = b"", **headers: str) -> bytes:
    """Return a well-formed answer. ``_`` in names of headers is written as a dash."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Status-{status}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if not {name.lower() for name in headers} & {"content_length", "transfer_encoding"}:
        lines.append(f"Content-Length: {len(content)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


def says(*answers: bytes) -> Handler:
    """Return a handler that sends these answers one after the other, and the last one for ever."""
    left = list(answers)

    async def handle(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()

    return handle


@dataclass
class HttpServer:
    """Serves ``handlers`` by path; keeps what it ``received``. Leaving its block ends all of it."""

    handlers: dict[str, Handler] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    received: list[Received] = field(default_factory=list)
    open: int = 0  # connections
    port: int = 0  # 0: a free one

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, ssl=self.tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """Of its root, without a slash at the end."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                received = await _read(reader)
                self.received.append(received)
                handler = self.handlers.get(received.target.partition("?")[0])
                handling = handler or says(answer(404, "nothing here"))
                await _until_gone(reader, _whole(handling, received, writer))
        finally:
            self.open -= 1
            writer.close()


async def _until_gone(reader: asyncio.StreamReader, doing: Coroutine[Any, Any, None]) -> None:
    """Do it, but no longer than the client is there: clients send nothing more."""
    work, gone = asyncio.ensure_future(doing), asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait([gone, work], return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        work.cancel()
        await asyncio.gather(gone, work, return_exceptions=True)


async def _whole(handler: Handler, received: Received, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):  # the client has had enough
        await handler(received, writer)


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {name.lower(): value for name, _, value in (h.partition(": ") for h in head[1:-2])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body)
