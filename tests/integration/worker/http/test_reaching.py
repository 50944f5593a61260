"""Which servers are reached: by the guard, by TLS, and through the worker's proxy."""

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import httpcore
import pytest

from shoal.proto.tls import TlsFiles, create_identity
from shoal.runtime.outbound.addresses import AddressPolicy, read_networks
from shoal.runtime.outbound.guard import AddressRefused, GuardedBackend
from tests.integration.worker.http.kit import LOOPBACK, run
from tests.support.servers.authority import Authority
from tests.support.servers.http_server import HttpServer, answer, says

NOTHING: dict[str, str] = {}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f.1",
        "017700000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:0:0:1]",
        "0",
        "0.0.0.0",
        "[::]",
        "169.254.169.254",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
    ],
)
async def test_own_machine_and_its_link_are_refused_however_they_are_written(
    server: HttpServer, tmp_path: Path, host: str
) -> None:
    url = f"http://{host}:{server.port}/"
    done = await run(tmp_path, {"url": url, "method": "POST"}, settings=NOTHING)
    assert done.code == 65
    assert "may not be reached from this machine" in str(done.reason)
    assert "http_allow" in str(done.reason)
    assert server.received == []


async def test_administrator_may_allow_and_deny(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer())
    for number, (settings, code) in enumerate(
        [
            ({"http_allow": "127.0.0.1"}, 0),
            ({"http_allow": "127.0.0.2/31"}, 65),
            ({"http_deny": "0.0.0.0/0"}, 65),
            ({"http_deny": "0.0.0.0/0 ::/0", "http_allow": "127.0.0.1"}, 0),
        ]
    ):
        params = {"url": server.url}
        done = await run(tmp_path / str(number), params, settings=settings)
        assert done.code == code, settings


async def connected(backend: GuardedBackend, host: str, port: int) -> tuple[str, int]:
    stream = await backend.connect_tcp(host, port)
    try:
        return tuple(stream.get_extra_info("server_addr")[:2])
    finally:
        await stream.aclose()


async def test_address_that_was_judged_is_the_one_that_is_connected_to(server: HttpServer) -> None:
    """A name server that answers differently the second time is not asked a second time."""
    asked = 0

    async def rebinding(host: str, port: int) -> Sequence[str]:
        nonlocal asked
        asked += 1
        return ["127.0.0.1"] if asked == 1 else ["127.0.0.2"]

    backend = GuardedBackend(AddressPolicy(allowed=read_networks("127.0.0.1")), resolve=rebinding)
    assert await connected(backend, "rebind.example.org", server.port) == (
        "127.0.0.1",
        server.port,
    )
    assert asked == 1
    with pytest.raises(AddressRefused, match=r"rebind.example.org \(127.0.0.2\)"):
        await connected(backend, "rebind.example.org", server.port)


async def test_host_is_refused_for_any_of_its_addresses(server: HttpServer) -> None:
    async def both(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1", "169.254.169.254"]

    backend = GuardedBackend(AddressPolicy(allowed=read_networks("127.0.0.1")), resolve=both)
    with pytest.raises(AddressRefused, match="link-local"):
        await connected(backend, "both.example.org", server.port)


async def test_next_address_is_tried_when_one_does_not_answer(server: HttpServer) -> None:
    async def several(host: str, port: int) -> Sequence[str]:
        return ["::1", "127.0.0.2", "127.0.0.1"]

    backend = GuardedBackend(
        AddressPolicy(allowed=read_networks("127.0.0.0/8,::1")), resolve=several
    )
    assert (await connected(backend, "several.example.org", server.port))[0] == "127.0.0.1"


async def test_host_without_addresses_is_a_connection_that_failed() -> None:
    async def none(host: str, port: int) -> Sequence[str]:
        return []

    with pytest.raises(httpcore.ConnectError):
        await connected(GuardedBackend(AddressPolicy(), resolve=none), "none.example.org", 80)


# -- TLS --------------------------------------------------------------------------------------


@pytest.fixture
def identity(tmp_path: Path) -> TlsFiles:
    """A certificate for 127.0.0.1, and the authority that has signed it."""
    return create_identity(tmp_path / "tls")


def tls_of(identity: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.cert, identity.key)
    return context


async def test_certificate_is_verified(identity: TlsFiles, tmp_path: Path) -> None:
    authority = identity.ca.read_text()
    async with HttpServer({"/": says(answer(200, "hello"))}, tls=tls_of(identity)) as server:
        unknown = await run(tmp_path / "1", {"url": server.url, "method": "POST"})
        known = await run(tmp_path / "2", {"url": server.url, "ca_certificate": authority})
        name = server.url.replace("127.0.0.1", "localhost")
        other = await run(tmp_path / "3", {"url": name, "ca_certificate": authority})
        assert len(server.received) == 1
    assert known.code == 0
    assert unknown.code == 65
    assert "127.0.0.1: its certificate is not trusted: " in str(unknown.reason)
    assert "ca_certificate" in str(unknown.reason)
    assert other.code == 65
    assert "Hostname mismatch" in str(other.reason)


async def test_certificate_that_has_expired_is_refused(tmp_path: Path) -> None:
    authority = Authority()
    old = authority.identity(tmp_path / "tls", "localhost", expired=True)
    async with HttpServer({"/": says(answer(200, "hello"))}, tls=tls_of(old)) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        done = await run(tmp_path / "1", {"url": url, "ca_certificate": authority.pem.decode()})
        assert not server.received
    assert done.code == 65
    assert "certificate has expired" in str(done.reason)


async def test_what_speaks_no_tls_is_named(tmp_path: Path) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(400))
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as plain:
        url = f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}/"
        done = await run(tmp_path / "1", {"url": url, "method": "POST"})
    assert done.code == 1  # nothing of the request was sent
    assert "127.0.0.1: no TLS connection: WRONG_VERSION_NUMBER" in str(done.reason)


async def test_authority_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    odd = "-----BEGIN CERTIFICATE-----\nodd\n-----END CERTIFICATE-----\n"
    params = {"url": "https://127.0.0.1:1/", "ca_certificate": odd}
    bad = await run(tmp_path / "2", params)
    assert bad.code == 65
    assert "no certificate can be read" in str(bad.reason)


async def test_nothing_leads_from_https_to_http(
    server: HttpServer, identity: TlsFiles, tmp_path: Path
) -> None:
    handlers = {"/": says(answer(302, Location=server.url))}
    async with HttpServer(handlers, tls=tls_of(identity)) as secure:
        params = {"url": secure.url, "ca_certificate": identity.ca.read_text()}
        done = await run(tmp_path, {**params, "follow_redirects": 3})
    assert done.code == 65
    assert "from https to http" in str(done.reason)
    assert server.received == []


# -- proxy ------------------------------------------------------------------------------------


class Tunnels(HttpServer):
    """A proxy: says itself what http requests get, and connects https requests through."""

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._through(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
            self.heads.append(head.decode())
            if method != "CONNECT":
                writer.write(answer(200, "by the proxy"))
                writer.close()
                return
            _, _, port = target.rpartition(":")
            there = await asyncio.open_connection("127.0.0.1", int(port))
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))

    async def __aenter__(self) -> "Tunnels":
        self.heads: list[str] = []
        await super().__aenter__()
        return self


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def test_requests_go_through_the_worker_s_proxy(identity: TlsFiles, tmp_path: Path) -> None:
    outputs = {"body": "body"}
    async with (
        Tunnels() as proxy,
        HttpServer({"/": says(answer(200, "hello"))}, tls=tls_of(identity)) as server,
    ):
        settings = {
            "http_proxy": f"http://ada:p%40ss@127.0.0.1:{proxy.port}",
            "http_no_proxy": "direct.example.org .inside.example.org",
        }
        params = {"url": "http://no-such-host.invalid/x?y=1", "outputs": outputs}
        plain = await run(tmp_path / "1", params, settings=settings)
        assert plain.outputs == {"body": "by the proxy"}
        assert proxy.heads[0].startswith("GET http://no-such-host.invalid/x?y=1 HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic YWRhOnBAc3M=\r\n" in proxy.heads[0]

        ca = identity.ca.read_text()
        params = {"url": server.url, "ca_certificate": ca, "outputs": outputs}
        refused = await run(tmp_path / "2", params, settings=settings)
        assert refused.code == 65
        assert "loopback" in str(refused.reason)
        tunnelled = await run(tmp_path / "3", params, settings={**settings, **LOOPBACK})
        assert tunnelled.outputs == {"body": "hello"}
        assert proxy.heads[1].startswith(f"CONNECT 127.0.0.1:{server.port} ")
        assert "proxy-authorization" not in server.received[0].headers

        for number, host in enumerate(("direct.example.org", "a.inside.example.org")):
            done = await run(tmp_path / f"d{number}", {"url": f"http://{host}/"}, settings=settings)
            assert "cannot look its name up" in str(done.reason)
        assert len(proxy.heads) == 2


@pytest.mark.parametrize("host", ["127.1", "2130706433", "[::ffff:127.0.0.1]", "localhost"])
async def test_proxy_is_not_asked_for_what_is_refused(tmp_path: Path, host: str) -> None:
    async with Tunnels() as proxy:
        settings = {"http_proxy": f"http://127.0.0.1:{proxy.port}"}
        done = await run(tmp_path, {"url": f"http://{host}/"}, settings=settings)
        assert done.code == 65
        assert "may not be reached" in str(done.reason)
        assert proxy.heads == []
