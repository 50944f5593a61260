"""Connections that send nothing, half of something or too much, beside those of everybody else."""

import asyncio
import socket
import ssl
import tracemalloc
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from shoal.api.server import Server
from shoal.api.web.connections import (
    BODY_S,
    BYTES_PER_S,
    HEAD_S,
    LEAST_CONNECTIONS,
    MOST_REFUSALS,
    WRITE_S,
    Connections,
    Networks,
)
from shoal.proto.tls import TlsFiles, create_identity
from tests.support.waiting import DEADLINE_S

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
ANSWER = b"x" * 40
LARGE = 16 * 2**20  # more than the kernel takes from us at once
SMALL = 2**16


@pytest.fixture
def tls(tmp_path: Path) -> TlsFiles:
    return create_identity(tmp_path)


class World:
    """A server with an application that answers, waits for ``go``, or sends without end."""

    def __init__(self, connections: Connections, address: tuple[str, int]) -> None:
        self.connections, self.address = connections, address
        self.tls: ssl.SSLContext | None = None  # of its clients
        self.go = asyncio.Event()
        self.peers: list[Peer] = []

    async def connect(self, data: bytes = b"", host: str = "127.0.0.1") -> "Peer":
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(SMALL)
        protocol = asyncio.StreamReaderProtocol(reader)
        if self.tls is None:
            transport, _ = await loop.create_connection(
                lambda: protocol, *self.address, local_addr=(host, 0)
            )
        else:
            # TLS by asyncio on each loop: uvloop's loses the last 256 KiB of what is read slowly.
            is_up = loop.create_future()
            layer = SSLProtocol(loop, protocol, self.tls, is_up)
            await loop.create_connection(lambda: layer, *self.address, local_addr=(host, 0))
            await is_up
            transport = layer._app_transport
        peer = Peer(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
        self.peers.append(peer)
        if data:
            await peer.send(data)
        return peer

    async def connected(self, count: int) -> None:
        """Return when the server has so many connections."""
        async with asyncio.timeout(DEADLINE_S):
            while len(self.connections) != count:
                await asyncio.sleep(0.005)

    def later(self, seconds: float) -> None:
        """Have the deadlines checked as of ``seconds`` from now."""
        self.connections.expire(asyncio.get_running_loop().time() + seconds)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/wait":
            await self.go.wait()
        while scope["method"] == "POST" and (await receive()).get("more_body"):
            pass
        if scope["path"] == "/large":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": bytes(LARGE)})
            return
        headers = [(b"content-length", b"%d" % len(ANSWER))] if scope["path"] != "/flood" else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while scope["path"] == "/flood" and not self.go.is_set():
            await asyncio.sleep(0)  # what is sent to a client that has gone does not wait
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        await send({"type": "http.response.body", "body": ANSWER})


class Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def begin_tls(self, context: ssl.SSLContext) -> None:
        await self._writer.start_tls(context)

    async def answer(self) -> bytes:
        """Return the head of an answer and its body."""
        async with asyncio.timeout(DEADLINE_S):
            head = await self._reader.readuntil(b"\r\n\r\n")
            return head + await self._reader.readexactly(len(ANSWER))

    async def read(self, count: int) -> int:
        """Read as much, or all that is left; return how much it was."""
        found = 0
        async with asyncio.timeout(DEADLINE_S):
            while found < count and (piece := await self._reader.read(SMALL)):
                found += len(piece)
        return found

    async def rest(self) -> bytes:
        """Return what comes until the connection ends; an end by force counts as one."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await self._reader.read()
            except ConnectionError:
                return b""

    def close(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def serving(
    per_address: int = 1000,
    total: int = 1000,
    proxies: Networks | None = None,
    tls: TlsFiles | None = None,
    keep_alive_s: int = 60,
) -> AsyncIterator[World]:
    connections = Connections(per_address, proxies or Networks(), total)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        world = World(connections, listener.getsockname())
        config = uvicorn.Config(
            world.app,
            http=connections.protocol,  # type: ignore[arg-type]
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            timeout_keep_alive=keep_alive_s,
            ssl_certfile=tls.cert if tls else None,
            ssl_keyfile=tls.key if tls else None,
            timeout_graceful_shutdown=1,
        )
        if tls is not None:
            world.tls = ssl.create_default_context(cafile=tls.ca)
            world.tls.check_hostname = False
        server = Server(config, connections)
        running = asyncio.create_task(server.serve([listener]))
        await server.has_started(running)
        try:
            yield world
        finally:
            world.go.set()
            for peer in world.peers:
                peer.close()
            server.stop()
            await running


@pytest.mark.parametrize(
    ("sent", "seconds", "said"),
    [
        (b"", HEAD_S, b""),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", HEAD_S, b"408 Request Timeout"),
        (POST + b"x", BODY_S, b"408 Request Timeout"),
        (POST, BODY_S, b"408 Request Timeout"),
    ],
)
async def test_half_a_request_is_given_up_at_its_deadline(
    sent: bytes, seconds: float, said: bytes
) -> None:
    async with serving() as world:
        peer = await world.connect(sent)
        await world.connected(1)
        await asyncio.sleep(0.05)
        world.later(seconds - 1)
        await asyncio.sleep(0.05)
        assert len(world.connections) == 1
        world.later(seconds + 0.1)
        rest = await peer.rest()
        assert said in rest
        assert bool(rest) is bool(said)
        await world.connected(0)


@pytest.mark.parametrize("more", [b"\r\n", b"GET /"])
async def test_second_request_has_the_deadline_of_the_first(more: bytes) -> None:
    async with serving() as world:
        peer = await world.connect(HEAD)
        assert b"200 OK" in await peer.answer()
        world.later(HEAD_S + 1)  # idle: that deadline is uvicorn's
        await asyncio.sleep(0.05)
        await peer.send(more)
        await asyncio.sleep(0.05)
        world.later(HEAD_S + 0.1)
        await peer.rest()
        await world.connected(0)


async def test_body_that_arrives_fast_enough_may_take_long() -> None:
    async with serving() as world:
        peer = await world.connect(POST)
        await peer.send(b"x" * (100 * BYTES_PER_S))
        await world.connected(1)
        await asyncio.sleep(0.1)
        world.later(BODY_S + 90)
        await asyncio.sleep(0.05)
        assert len(world.connections) == 1
        world.later(BODY_S + 101)
        assert b"408" in await peer.rest()


async def test_work_of_the_server_has_no_deadline_and_neither_has_a_body_it_does_not_read() -> None:
    async with serving() as world:
        waiting = await world.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        full = await world.connect(
            b"POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"
        )
        await full.send(b"x" * 150_000)
        await world.connected(2)
        await asyncio.sleep(0.1)
        for _ in range(3):
            world.later(BODY_S + 200)
        assert len(world.connections) == 2
        world.go.set()
        await full.send(b"x" * 50_000)
        assert b"200 OK" in await waiting.answer()
        assert b"200 OK" in await full.answer()


async def test_client_that_does_not_read_is_cut_off() -> None:
    async with serving() as world:
        await world.connect(b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
        await world.connected(1)
        await asyncio.sleep(0.3)
        world.later(0)
        world.later(WRITE_S - 1)
        assert len(world.connections) == 1
        world.later(WRITE_S + 0.1)
        await world.connected(0)


@pytest.mark.parametrize("has_tls", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("more", ["", "Connection: close\r\n"], ids=["kept", "closed"])
async def test_client_that_reads_slowly_gets_all_of_a_large_answer(
    tls: TlsFiles, has_tls: bool, more: str
) -> None:
    async with serving(tls=tls if has_tls else None, keep_alive_s=1) as world:
        peer = await world.connect(f"GET /large HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())
        await world.connected(1)
        found, seconds = await peer.read(2**20), 0.0
        while found < LARGE - 2**20:
            piece = await peer.read(2**20)
            assert piece, f"cut off after {found} bytes"
            found += piece
            await asyncio.sleep(0.05)
            seconds += WRITE_S / 3
            world.later(seconds)
        assert found + await peer.read(LARGE - found) >= LARGE


@pytest.mark.parametrize("has_tls", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("more", ["", "Connection: close\r\n"], ids=["kept", "closed"])
async def test_large_answer_that_is_no_longer_read_is_given_up(
    tls: TlsFiles, has_tls: bool, more: str
) -> None:
    async with serving(tls=tls if has_tls else None) as world:
        peer = await world.connect(f"GET /large HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())
        await world.connected(1)
        await peer.read(2**20)
        await asyncio.sleep(0.3)
        world.later(0)
        world.later(WRITE_S - 1)
        assert len(world.connections) == 1
        world.later(2 * WRITE_S)
        await world.connected(0)


async def test_client_that_does_not_begin_tls_is_cut_off(
    tls: TlsFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.api.server.HEAD_S", 0.2)
    async with serving(tls=tls) as world:
        silent, half = [
            await asyncio.open_connection(*world.address),
            await asyncio.open_connection(*world.address),
        ]
        half[1].write(b"\x16\x03\x01\x02\x00\x01")
        async with asyncio.timeout(DEADLINE_S):
            for reader, writer in (silent, half):
                with suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()
        assert b"200 OK" in await (await world.connect(HEAD)).answer()


async def begun_handshakes(world: World, count: int, host: str = "127.0.0.1") -> list[Peer]:
    """Open connections that send the first bytes of a TLS handshake and no more."""
    plain, world.tls = world.tls, None
    try:
        return [await world.connect(b"\x16\x03\x01\x02\x00\x01", host) for _ in range(count)]
    finally:
        world.tls = plain


async def test_unfinished_handshakes_count_and_make_room_for_others_of_their_address(
    tls: TlsFiles,
) -> None:
    async with serving(per_address=10, tls=tls) as world:
        kept = await world.connect(HEAD)
        await kept.answer()
        half = await begun_handshakes(world, 9)
        await world.connected(10)
        half += await begun_handshakes(world, 20)
        await half[19].rest()  # the oldest make room for the newest
        assert len(world.connections) == 10
        for _ in range(9):
            assert b"200 OK" in await (await world.connect(HEAD)).answer()
        for one in half:
            assert await one.rest() == b""
        await kept.send(HEAD)
        assert b"200 OK" in await kept.answer(), "a connection with a request is closed last"


async def test_unfinished_handshakes_of_many_addresses_are_limited_in_total(tls: TlsFiles) -> None:
    async with serving(total=20, tls=tls) as world:
        for number in range(2, 12):
            await begun_handshakes(world, 5, f"127.0.0.{number}")
        await world.connected(20)
        assert b"200 OK" in await (await world.connect(HEAD, host="127.0.0.99")).answer()
        assert len(world.connections) <= 20


async def test_handshake_that_ends_or_fails_is_no_longer_counted(tls: TlsFiles) -> None:
    async with serving(tls=tls) as world:
        for one in await begun_handshakes(world, 5):
            one.close()
        await world.connected(0)
        plain, world.tls = world.tls, None
        spoken_clear = [await world.connect(HEAD) for _ in range(5)]
        world.tls = plain
        for one in spoken_clear:
            await one.rest()
        await world.connected(0)
        peer = await world.connect(HEAD)
        await peer.answer()
        await world.connected(1)  # counted once, not for its handshake as well
        peer.close()
        await world.connected(0)


async def test_refused_tls_connections_get_an_answer_up_to_a_limit(tls: TlsFiles) -> None:
    async with serving(per_address=3, tls=tls) as world:
        wait = b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
        busy = [await world.connect(wait) for _ in range(3)]
        await world.connected(3)
        await asyncio.sleep(0.05)
        assert b"429 Too Many Requests" in await (await world.connect(HEAD)).rest()
        async with asyncio.timeout(DEADLINE_S):
            while world.connections._refusals:
                await asyncio.sleep(0.005)
        half = await begun_handshakes(world, MOST_REFUSALS + 20)
        for one in half[MOST_REFUSALS:]:
            assert await one.rest() == b"", "closed at once"
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await world.connect(HEAD)
        assert len(world.connections) == len(busy)
        for one in (*half, busy[0]):
            one.close()
        await world.connected(2)
        assert b"200 OK" in await (await world.connect(HEAD)).answer()


async def test_connection_that_finds_room_during_its_handshake_is_no_longer_a_refusal(
    tls: TlsFiles,
) -> None:
    async with serving(per_address=1, tls=tls) as world:
        busy = await world.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        await world.connected(1)
        await asyncio.sleep(0.05)
        context, world.tls = world.tls, None
        late = await world.connect()
        assert context is not None
        async with asyncio.timeout(DEADLINE_S):
            while not world.connections._refusals:
                await asyncio.sleep(0.005)
        busy.close()
        await world.connected(0)
        await late.begin_tls(context)
        await late.send(HEAD)
        assert b"200 OK" in await late.answer()
        assert len(world.connections) == 1
        assert not world.connections._refusals


async def test_handshakes_take_little_memory(tls: TlsFiles) -> None:
    async with serving(tls=tls) as world:
        tracemalloc.start()
        try:
            await begun_handshakes(world, 20)
            await world.connected(20)
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert taken / 20 < 2**17  # 256 KiB for asyncio's buffer alone, if it is left as it is


async def test_idle_connections_make_room_for_new_ones_of_their_address() -> None:
    async with serving(per_address=10) as world:
        kept = await world.connect(HEAD)
        await kept.answer()
        idle = [await world.connect() for _ in range(9)]
        await world.connected(10)
        for _ in range(9):
            peer = await world.connect(HEAD)
            assert b"200 OK" in await peer.answer()
        for one in idle:
            assert await one.rest() == b""  # before the one that has had a request
        await kept.send(HEAD)
        assert b"200 OK" in await kept.answer()


async def test_address_with_all_its_connections_at_work_is_refused_until_one_is_over() -> None:
    async with serving(per_address=3) as world:
        busy = [await world.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(3)]
        await world.connected(3)
        await asyncio.sleep(0.05)
        refused = await (await world.connect(HEAD)).rest()
        assert b"429 Too Many Requests" in refused
        assert b"Retry-After: 5" in refused
        busy[0].close()
        await world.connected(2)
        assert b"200 OK" in await (await world.connect(HEAD)).answer()


async def test_proxies_may_have_any_number_but_the_process_has_a_limit() -> None:
    async with serving(per_address=1, total=3, proxies=Networks.of(["127.0.0.0/8"])) as world:
        busy = [await world.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(3)]
        await world.connected(3)
        await asyncio.sleep(0.05)
        assert b"429" in await (await world.connect(HEAD)).rest()
        assert len(busy) == len(world.connections)


async def test_process_at_its_limit_closes_an_idle_connection_of_any_address() -> None:
    async with serving(total=4) as world:
        wait = b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
        for _ in range(3):
            await world.connect(wait)
        idle = await world.connect(host="127.0.0.2")
        await world.connected(4)
        await asyncio.sleep(0.05)
        assert b"200 OK" in await (await world.connect(HEAD, host="127.0.0.3")).answer()
        assert await idle.rest() == b""


def test_process_with_few_descriptors_takes_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.api.web.connections.descriptor_limit", lambda: 256)
    assert Connections(1000).total == LEAST_CONNECTIONS


async def test_server_with_thousands_of_half_open_connections_answers_everybody_else() -> None:
    async with serving(per_address=300) as world:
        half = [await world.connect(b"GET / HT") for _ in range(600)]
        await world.connected(300)
        url = f"http://{world.address[0]}:{world.address[1]}/"
        async with httpx.AsyncClient(trust_env=False) as client:
            answers = [(await client.get(url)).status_code for _ in range(50)]
        assert answers == [200] * 50
        assert len(half) == 2 * world.connections.per_address


@pytest.mark.parametrize(
    ("words", "address", "is_in"),
    [
        ((), "127.0.0.1", False),
        (("10.0.0.0/8",), "10.1.2.3", True),
        (("10.0.0.1",), "10.0.0.2", False),
        (("::1",), "::1", True),
        (("*",), "", True),
        (("proxy.example",), "10.0.0.1", False),
    ],
)
def test_networks_hold_addresses(words: tuple[str, ...], address: str, is_in: bool) -> None:
    assert (address in Networks.of(words)) is is_in
