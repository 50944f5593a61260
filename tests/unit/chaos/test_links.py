"""Links lose, delay and swallow what they should.

A network fault that does nothing makes the run clean for no reason.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.chaos.cluster.links import Link, Mode, Network

BOUND_S = 100


@pytest.fixture
async def echo() -> AsyncIterator[tuple[list[bytes], int]]:
    """A server that answers each line with itself; what arrived there, and its port."""
    arrived: list[bytes] = []
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                arrived.append(line)
                writer.write(line)
                await writer.drain()
        await close(writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    yield arrived, server.sockets[0].getsockname()[1]
    server.close()
    await asyncio.gather(*serving)


@pytest.fixture
def link(echo: tuple[list[bytes], int]) -> Iterator[Link]:
    with Network() as network:
        yield network.link("test", [("127.0.0.1", echo[1])])


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class Client:
    """One connection through the link."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, line: bytes) -> None:
        self.writer.write(line)
        await self.writer.drain()

    async def hear(self) -> bytes:
        """Return the next line; b"" if the connection has broken."""
        try:
            async with asyncio.timeout(BOUND_S):
                return await self.reader.readline()
        except ConnectionError:
            return b""


@contextlib.asynccontextmanager
async def connected(link: Link) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", link.ports[0])
    try:
        yield Client(reader, writer)
    finally:
        await close(writer)


async def until_arrived(arrived: list[bytes], line: bytes) -> None:
    async with asyncio.timeout(BOUND_S):
        while line not in arrived:
            await asyncio.sleep(0.01)


async def test_a_frozen_link_delivers_when_it_thaws(
    link: Link, echo: tuple[list[bytes], int]
) -> None:
    async with connected(link) as client, connected(link) as other:
        await client.say(b"before\n")
        assert await client.hear() == b"before\n"
        link.set(Mode.FROZEN)
        await client.say(b"late\n")
        await other.say(b"later\n")
        link.set(Mode.OPEN)
        assert await client.hear() == b"late\n"
        assert await other.hear() == b"later\n"


async def test_lost_replies_leave_the_request_done(
    link: Link, echo: tuple[list[bytes], int]
) -> None:
    async with connected(link) as client:
        link.set(Mode.LOSING_REPLIES)
        await client.say(b"done\n")
        await until_arrived(echo[0], b"done\n")
        link.set(Mode.OPEN)
        assert await client.hear() == b""  # a stream with a hole in it is broken


async def test_lost_requests_never_arrive(link: Link, echo: tuple[list[bytes], int]) -> None:
    async with connected(link) as client, connected(link) as other:
        await client.say(b"first\n")
        assert await client.hear() == b"first\n"
        link.set(Mode.LOSING_REQUESTS)
        await client.say(b"lost\n")
        link.set(Mode.OPEN)
        assert await client.hear() == b""
        assert await other.hear() == b""
    async with connected(link) as client:
        await client.say(b"last\n")
        assert await client.hear() == b"last\n"
    assert b"lost\n" not in echo[0]


async def test_a_refusing_link_closes_connections(link: Link) -> None:
    async with connected(link) as client:
        await client.say(b"hello\n")
        assert await client.hear() == b"hello\n"
        link.set(Mode.REFUSING)
        assert await client.hear() == b""
        async with connected(link) as another:
            assert await another.hear() == b""
    link.set(Mode.OPEN)
    async with connected(link) as client:
        await client.say(b"again\n")
        assert await client.hear() == b"again\n"


async def test_only_answers_to_chosen_requests_are_swallowed(
    link: Link, echo: tuple[list[bytes], int]
) -> None:
    async with connected(link) as client, connected(link) as other:
        await other.say(b"before\n")
        assert await other.hear() == b"before\n"
        link.swallow(b"COMMIT", 1)
        await client.say(b"COMMIT one\n")
        assert await client.hear() == b""
        assert b"COMMIT one\n" in echo[0]
        await other.say(b"COMMIT two\n")
        assert await other.hear() == b"COMMIT two\n"
    assert link.swallowed == 1
