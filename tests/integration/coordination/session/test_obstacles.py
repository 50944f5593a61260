"""A server that gives no session: the error and the log say why, and name the setting."""

import asyncio
import shutil
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from shoal.client.local import zookeeper as server_module
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import HOST, ZooKeeperServer, four_letter_word, free_port
from shoal.coordination import ZkSession
from shoal.coordination.errors import (
    CannotConnect,
    NothingListens,
    NoZooKeeper,
    Obstacle,
    ServerNotServing,
    ServerReadOnly,
    ServerSilent,
    SessionClosed,
    SessionRefused,
    TlsServer,
    TooManyConnections,
    UnknownHost,
)
from shoal.coordination.session import obstacles
from shoal.coordination.startup import connect_when_there
from tests.integration.coordination.conftest import connect
from tests.support.waiting import DEADLINE_S, START_S, STEADY_SESSION_S, eventually
from tests.support.zookeeper.secure import NETTY

UNKNOWN = "no-such-host.invalid:2181"  # by RFC 6761 never a name of anything


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may be slow to answer."""
    monkeypatch.setattr(obstacles, "PROBE_S", DEADLINE_S)


async def failure_of(hosts: str, kind: type[CannotConnect], **options: Any) -> CannotConnect:
    """Return the error, of this kind, of a session that has time to find out what is in the way."""
    for try_s in (1.0, 4.0, DEADLINE_S):
        patient = {"session_timeout_s": STEADY_SESSION_S, "connect_timeout_s": try_s}
        session = ZkSession(hosts, **(patient | options))
        with pytest.raises(CannotConnect) as failure:
            await session.__aenter__()
        if type(failure.value) is kind and failure.value.obstacles:
            break
    error = failure.value
    assert type(error) is kind
    assert error.retriable
    assert not error.is_final
    assert "the setting `zookeeper` (hosts of ZkSession)" in str(error)
    assert all(server in str(error) for server in hosts.split(","))
    return error


class ConfiguredServer(ZooKeeperServer):
    """A server with further settings."""

    def __init__(self, folder: Path, extra: dict[str, object]) -> None:
        super().__init__(folder, free_port(), find_java(), heap_mb=128)
        self._extra = extra

    def _config(self) -> str:
        return super()._config() + "".join(f"{key}={self._extra[key]}\n" for key in self._extra)


@pytest.mark.parametrize("host", [UNKNOWN, "a..b:2181"])
async def test_a_name_that_cannot_be_resolved(host: str) -> None:
    error = await failure_of(host, UnknownHost)
    assert error.obstacles == {host: Obstacle.UNKNOWN_HOST}


async def test_one_name_of_several_that_cannot_be_resolved_is_logged(zk_chroot: str) -> None:
    hosts, _, chroot = zk_chroot.partition("/")
    with structlog.testing.capture_logs() as logs:
        async with connect(f"{hosts},{UNKNOWN}/{chroot}"):
            pass
    (found,) = [log for log in logs if log["event"] == "a ZooKeeper server gives no session"]
    assert (found["server"], found["reason"]) == (UNKNOWN, Obstacle.UNKNOWN_HOST)


async def test_several_servers_with_different_obstacles() -> None:
    dead = f"{HOST}:{free_port()}"
    error = await failure_of(f"{dead},{UNKNOWN}", CannotConnect)
    assert error.obstacles == {dead: Obstacle.NOTHING_LISTENS, UNKNOWN: Obstacle.UNKNOWN_HOST}


async def test_nothing_listens() -> None:
    await failure_of(f"{HOST}:{free_port()}", NothingListens)


async def test_a_server_that_says_nothing() -> None:
    with socket.create_server((HOST, 0)) as listener:
        await failure_of(f"{HOST}:{listener.getsockname()[1]}", ServerSilent, session_timeout_s=3.0)


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """A server that says ``answer`` to everything, and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    async with server:
        yield f"{HOST}:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"]
)
async def test_a_server_that_is_no_zookeeper(answer: bytes) -> None:
    async with answering(answer) as address:
        await failure_of(address, NoZooKeeper)


async def test_a_server_that_tells_nothing_of_itself_but_serves_no_session() -> None:
    async with answering(b"srvr is not executed because it is not in the whitelist.\n") as address:
        await failure_of(address, SessionRefused)


async def test_a_server_that_has_too_many_connections(tmp_path: Path) -> None:
    with ConfiguredServer(tmp_path / "zookeeper", {"maxClientCnxns": 1}) as server:
        async with connect(server.address):
            error = await failure_of(server.address, TooManyConnections)
    assert "maxClientCnxns" in str(error)


@pytest.fixture
def silenced(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No question to a server is ever answered; the event tells that one was asked."""
    asked, over = threading.Event(), threading.Event()

    def ask(*_: object) -> Obstacle:
        asked.set()
        over.wait()
        return Obstacle.REFUSES

    monkeypatch.setattr(obstacles, "probe", ask)
    yield asked
    over.set()


async def test_questions_to_servers_hold_up_an_error_for_a_limited_time(
    silenced: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstacles, "PROBE_S", 0.1)
    async with answering(b"") as address, asyncio.timeout(DEADLINE_S):
        while not silenced.is_set():
            with pytest.raises(CannotConnect):
                await connect(address, connect_timeout_s=0.5).__aenter__()


async def test_a_start_that_is_cancelled_while_servers_are_asked_leaves_no_connection(
    silenced: threading.Event,
) -> None:
    async with answering(b"") as address:
        session = connect(address, connect_timeout_s=0.1)
        entering = asyncio.create_task(session.__aenter__())
        await asyncio.to_thread(silenced.wait)
        await asyncio.sleep(0.5)  # if this is too short, it is cancelled while it connects
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        with pytest.raises(SessionClosed):
            await session.get("/")


@pytest.fixture
def identity(tmp_path: Path) -> Path:
    """A key and a certificate, in one file."""
    openssl = shutil.which("openssl")
    assert openssl
    key, certificate, both = (tmp_path / name for name in ("key.pem", "cert.pem", "both.pem"))
    names = ("-keyout", str(key), "-out", str(certificate), "-subj", "/CN=zookeeper")
    command = (openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *names, "-days", "2")
    subprocess.run(command, check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    return both


async def test_a_port_for_tls(
    tmp_path: Path, identity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "JARS", (*server_module.JARS, *NETTY))
    port = free_port()
    settings = {
        "secureClientPort": port,
        "secureClientPortAddress": HOST,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": identity,
        "ssl.trustStore.location": identity.parent / "cert.pem",
    }
    with ConfiguredServer(tmp_path / "zookeeper", settings):
        error = await failure_of(f"{HOST}:{port}", TlsServer)
    assert "`zookeeper_tls` (tls of ZkSession)" in str(error)


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """One of three servers; the other two are away."""
    ports = [free_port() for _ in range(6)]
    peers = {
        f"server.{number}": f"{HOST}:{ports[number - 1]}:{ports[number + 2]}"
        for number in (1, 2, 3)
    }
    folder = tmp_path / "zookeeper"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "myid").write_text("1\n", encoding="ascii")
    server = ConfiguredServer(folder, {"initLimit": 20, "syncLimit": 10, **peers})
    try:
        yield server
    finally:
        server.stop()


async def test_a_server_without_a_majority(lone: ZooKeeperServer) -> None:
    lone.start()
    await eventually(lambda: says(lone, b"not currently serving"), timeout_s=START_S)
    await failure_of(lone.address, ServerNotServing)


async def test_a_server_that_is_read_only(
    lone: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = (*server_module.JVM_FLAGS, "-Dreadonlymode.enabled=true")
    monkeypatch.setattr(server_module, "JVM_FLAGS", flags)
    lone.start()
    await eventually(lambda: says(lone, b"Mode: read-only"), timeout_s=START_S)
    await failure_of(lone.address, ServerReadOnly)


def says(server: ZooKeeperServer, text: bytes) -> bool:
    return text in four_letter_word(HOST, server.port, "srvr", DEADLINE_S)


async def test_a_process_that_waits_logs_the_reason_at_once() -> None:
    with structlog.testing.capture_logs() as logs:
        waiting = asyncio.create_task(
            connect_when_there(lambda: ZkSession(UNKNOWN, connect_timeout_s=DEADLINE_S))
        )
        try:
            await eventually(lambda: any(log.get("server") == UNKNOWN for log in logs))
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
