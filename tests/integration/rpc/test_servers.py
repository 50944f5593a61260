"""S20: nobody talks to a master or worker that cannot show who it is."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from shoal.proto import server
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels, call
from shoal.proto.errors import PeerUnavailable
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2_grpc import (
    ProgressServiceServicer,
    add_ProgressServiceServicer_to_server,
)
from shoal.proto.tls import TlsFiles
from tests.support.servers.authority import Authority
from tests.support.waiting import DEADLINE_S


class Listening(ProgressServiceServicer):
    """Notes that it was called."""

    def __init__(self) -> None:
        self.calls = 0

    async def Read(  # noqa: N802 - the name is the contract's
        self, request: pb.ProgressRequest, context: Any
    ) -> pb.ProgressResponse:
        self.calls += 1
        return pb.ProgressResponse()


async def ask(serving: TlsFiles, client: TlsFiles, service: Listening) -> None:
    """Call a server with one identity as a client with another. Raises PeerUnavailable."""
    running, address = await start_server(
        serving, lambda one: add_ProgressServiceServicer_to_server(service, one)
    )
    try:
        async with Channels(client) as channels:
            asked = channels.progress(address).Read(pb.ProgressRequest(), timeout=DEADLINE_S)
            await call(address, asked)
    finally:
        await running.stop(None)


def identity(authority: Authority, folder: Path, kind: str) -> TlsFiles:
    match kind:
        case "another authority":
            return Authority().identity(folder, ca=authority.pem)
        case "another name":
            return authority.identity(folder, "node.elsewhere.internal")
        case _:
            return authority.identity(folder)


@pytest.mark.parametrize("kind", ["another authority", "another name"])
async def test_a_server_of_others_is_not_told_anything(kind: str, tmp_path: Path) -> None:
    authority, service = Authority(), Listening()
    client = authority.identity(tmp_path / "client")
    await ask(identity(authority, tmp_path / "good", "own"), client, service)
    assert service.calls == 1
    with pytest.raises(PeerUnavailable):
        await ask(identity(authority, tmp_path / "bad", kind), client, service)
    assert service.calls == 1


async def test_a_server_whose_certificate_has_expired_is_not_told_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, service = Authority(), Listening()
    old = authority.identity(tmp_path / "old", expired=True)
    contents = old.key.read_bytes(), old.cert.read_bytes()
    credentials = grpc.ssl_server_credentials([contents], authority.pem, require_client_auth=True)
    # A server of ours does not start with it.
    monkeypatch.setattr(TlsFiles, "server_credentials", lambda _: credentials)
    with pytest.raises(PeerUnavailable):
        await ask(old, authority.identity(tmp_path / "client"), service)
    assert service.calls == 0


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"])
async def test_connection_that_shows_no_certificate_is_closed(
    sent: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are heard in the meantime."""
    monkeypatch.setattr(server, "HANDSHAKE_S", 0.5)
    authority, service = Authority(), Listening()
    running, address = await start_server(
        authority.identity(tmp_path / "server"),
        lambda one: add_ProgressServiceServicer_to_server(service, one),
    )
    host, _, port = address.rpartition(":")
    silent = [await asyncio.open_connection(host, int(port)) for _ in range(100)]
    try:
        for _, writer in silent:
            writer.write(sent)
        async with Channels(authority.identity(tmp_path / "client")) as channels:
            asked = channels.progress(address).Read(pb.ProgressRequest(), timeout=DEADLINE_S)
            await call(address, asked)
        assert service.calls == 1
        async with asyncio.timeout(DEADLINE_S):
            for reader, _ in silent:
                with suppress(ConnectionError):
                    await reader.read()
    finally:
        for _, writer in silent:
            writer.transport.abort()
        await running.stop(None)
