"""A refused credential is told as one, at the start and later, and never as a lost session."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.coordination import CredentialRefused
from shoal.coordination.errors import AccessDenied
from tests.integration.coordination.conftest import connect
from tests.support.waiting import DEADLINE_S, START_S

CREDENTIAL = "digest:team:secret"
DEMANDS_DIGEST = {"enforce.auth.enabled": "true", "enforce.auth.schemes": "digest"}
DEMANDS_SASL = {
    "enforce.auth.enabled": "true",
    "enforce.auth.schemes": "sasl",
    "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
}
KNOWS_NO_DIGEST = {"DigestAuthenticationProvider.enabled": "false"}


class StrictServer(ZooKeeperServer):
    """A server with further settings, which may change between two starts."""

    extra: dict[str, str]

    def _config(self) -> str:
        return super()._config() + "".join(f"{key}={self.extra[key]}\n" for key in self.extra)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StrictServer]:
    server = StrictServer(tmp_path / "zookeeper", free_port(), find_java(), heap_mb=128)
    server.extra = {}
    try:
        yield server
    finally:
        server.stop()


async def start(server: StrictServer, extra: dict[str, str]) -> None:
    """Start the server anew with these settings."""
    server.stop()
    server.extra = extra
    server.start()
    await asyncio.to_thread(server.wait_ready, START_S)


@pytest.mark.parametrize(
    ("extra", "credential", "message"),
    [
        (DEMANDS_DIGEST, "", "serves only clients that show a credential"),
        (DEMANDS_SASL, CREDENTIAL, "refused the credential of the scheme 'digest'"),
        (KNOWS_NO_DIGEST, CREDENTIAL, "refused the credential of the scheme 'digest'"),
        ({}, "kerberos:me", "refused the credential of the scheme 'kerberos'"),
    ],
)
async def test_a_refused_credential_is_told_at_the_start(
    server: StrictServer, extra: dict[str, str], credential: str, message: str
) -> None:
    await start(server, extra)
    with pytest.raises(CredentialRefused, match=message) as refused:
        await connect(server.address, credential=credential).__aenter__()
    assert refused.value.is_final
    assert not refused.value.retriable
    assert server.address in str(refused.value)
    assert "`zookeeper_credential` (credential of ZkSession)" in str(refused.value)
    assert "secret" not in str(refused.value).replace("scheme:secret", "")


@pytest.mark.parametrize(
    ("extra", "credential"), [(DEMANDS_DIGEST, ""), (KNOWS_NO_DIGEST, CREDENTIAL)]
)
async def test_a_credential_that_is_refused_later_ends_the_session_for_good(
    server: StrictServer, extra: dict[str, str], credential: str
) -> None:
    await start(server, {})
    async with connect(server.address, credential=credential) as session:
        await session.create("/kept")
        repeating = asyncio.create_task(session.retry(lambda: repeat(session.sync)))
        proving = asyncio.create_task(session.failed())
        await start(server, extra)
        for waiting in (repeating, proving):
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(CredentialRefused):
                    await waiting
        for call in (session.connected(), session.proven(), session.get("/kept")):
            with pytest.raises(CredentialRefused):
                await call


async def repeat(call: object) -> None:
    """Call again and again, until it fails."""
    assert callable(call)
    while True:
        await call()
        await asyncio.sleep(0.01)


async def test_a_wrong_password_is_told_at_the_node(zk_chroot: str) -> None:
    """A server takes any digest; whose the nodes are shows at each of them."""
    async with connect(zk_chroot, credential=CREDENTIAL) as owner:
        await owner.create("/closed")
    async with connect(zk_chroot, credential="digest:team:wrong") as stranger:
        with pytest.raises(AccessDenied, match=r"/closed.*`zookeeper_credential`") as denied:
            await stranger.get("/closed")
    assert denied.value.is_final
