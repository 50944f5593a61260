"""Sessions over TLS with SASL, and what is refused."""

import asyncio
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import HOST, free_port
from shoal.coordination import CannotConnect, CredentialRefused, Tls, ZkSession
from shoal.coordination.errors import (
    BadCertificate,
    ClearServer,
    TlsServer,
    UntrustedClient,
    UntrustedServer,
)
from shoal.coordination.session import obstacles
from tests.integration.coordination.conftest import connect
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, START_S
from tests.support.zookeeper.secure import (
    CREDENTIAL,
    OTHERS,
    SecureServer,
    Security,
    access,
    stock_client,
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may be slow to answer."""
    monkeypatch.setattr(obstacles, "PROBE_S", DEADLINE_S)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureServer]:
    folder = tmp_path_factory.mktemp("secure")
    server = SecureServer(folder, free_port(), find_java(), Security(folder / "security"))
    server.start()
    try:
        server.wait_ready(START_S)
        yield server
    finally:
        server.stop()


def to(server: SecureServer, **options: object) -> ZkSession:
    return connect(server.address, **(access(server.address) | options))


async def test_a_session_works_and_comes_back_after_a_broken_connection(
    secure: SecureServer,
) -> None:
    async with to(secure) as session:
        nodes = {f"/works-{number}": bytes([number]) * 300_000 for number in range(5)}
        await asyncio.gather(*(session.create(path, data) for path, data in nodes.items()))
        before = session.session_id
        for _ in range(5):
            session.drop_connection()
            for path, data in nodes.items():
                assert (await session.retry(partial(session.get, path))).data == data
        assert session.session_id == before
        # Many small ones: several of them in each record of TLS, and the reverse.
        await asyncio.gather(*(session.create(f"/works-0/{number}") for number in range(3000)))
        assert len((await session.children("/works-0")).names) == 3000


async def test_what_it_makes_is_closed_to_other_users(secure: SecureServer) -> None:
    async with to(secure) as session:
        await session.create("/closed", b"ours")
    client = stock_client(secure.address)
    await asyncio.to_thread(client.start)
    try:
        entries, _ = await asyncio.to_thread(client.get_acls, "/closed")
        assert [(entry.id.scheme, entry.id.id, entry.perms) for entry in entries] == [
            ("sasl", "shoal", 31)
        ]
    finally:
        await asyncio.to_thread(client.stop)
        client.close()


@pytest.mark.parametrize(("user", "password"), OTHERS.items())
async def test_users_and_passwords_of_any_characters(
    secure: SecureServer, user: str, password: str
) -> None:
    async with to(secure, credential=f"sasl:{user}:{password}") as session:
        await session.create("/of-any", ephemeral=True)


@pytest.mark.parametrize("credential", ["sasl:shoal:wrong", "sasl:unknown:x", "sasl:shoal:", ""])
async def test_a_wrong_user_or_password_is_refused_at_once(
    secure: SecureServer, credential: str
) -> None:
    with pytest.raises(CredentialRefused):
        await to(secure, credential=credential).__aenter__()


async def test_a_connection_that_breaks_during_the_exchange_is_no_refusal(
    secure: SecureServer,
) -> None:
    asked = asyncio.Event()

    async def dying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack("!i", await reader.readexactly(4))
        await reader.readexactly(size)
        answer = struct.pack("!iiqi16s?", 0, 10_000, 1, 16, bytes(16), False)
        writer.write(struct.pack("!i", len(answer)) + answer)
        await reader.readexactly(4)
        asked.set()

    async with TcpProxy(HOST, secure.port) as proxy:
        proxy.impostor = dying
        async with connect(proxy.address, credential=CREDENTIAL) as session:
            assert asked.is_set()
            await session.exists("/")


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("another name", UntrustedServer),
        ("another authority", UntrustedServer),
        ("no certificate", UntrustedClient),
        ("in clear", TlsServer),
        ("a server in clear", ClearServer),
    ],
)
async def test_a_server_that_is_not_the_right_one_gets_nothing(
    secure: SecureServer, tmp_path: Path, case: str, kind: type[CannotConnect]
) -> None:
    tls, address = secure.security.tls, secure.address
    options: dict[str, object] = {"tls": tls, "credential": CREDENTIAL}
    if case == "another name":
        address = f"localhost:{secure.secure_port}"
    elif case == "another authority":
        ca = Security(tmp_path).tls.ca
        options["tls"] = Tls(ca, tls.certificate, tls.key)
    elif case == "no certificate":
        options["tls"] = Tls(tls.ca)
    elif case == "in clear":
        options["tls"] = None
    else:
        address = f"{HOST}:{secure.port}"
    for try_s in (1.0, 4.0, DEADLINE_S):  # until there was time to find out what is in the way
        with pytest.raises(CannotConnect) as failure:
            await connect(address, connect_timeout_s=try_s, **options).__aenter__()
        if type(failure.value) is kind:
            break
    assert type(failure.value) is kind
    assert "zookeeper_tls" in str(failure.value)


@pytest.mark.parametrize("what", ["ca", "certificate"])
async def test_a_file_that_cannot_be_used_is_named_at_once(
    secure: SecureServer, tmp_path: Path, what: str
) -> None:
    bad = tmp_path / "bad.pem"
    for content in (None, b"no PEM"):
        with suppress(TypeError):
            bad.write_bytes(content)  # type: ignore[arg-type]
        tls = Tls(bad) if what == "ca" else Tls(secure.security.tls.ca, bad)
        with pytest.raises(BadCertificate, match=re.escape(f"{bad} cannot be used")) as told:
            await to(secure, tls=tls).__aenter__()
        assert f"({what} of Tls)" in str(told.value)
