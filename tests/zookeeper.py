"""Fixtures: one real ZooKeeper server for the whole test run, a fresh chroot for each test."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from kazoo.client import KazooClient

from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.coordination import ZkSession
from tests.proxy import TcpProxy


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A running server; started when the first test asks for it."""
    folder = tmp_path_factory.mktemp("zookeeper data")  # the space is on purpose
    with ZooKeeperServer(folder, free_port(), find_java()) as server:
        yield server


@pytest.fixture
def zk_chroot(zookeeper: ZooKeeperServer) -> Iterator[str]:
    """The address of an empty tree of its own, "127.0.0.1:port/test-uuid"."""
    chroot = f"/test-{uuid.uuid4().hex}"
    client = KazooClient(hosts=zookeeper.address)
    client.start()
    try:
        client.create(chroot)
        yield zookeeper.address + chroot
    finally:
        client.stop()
        client.close()


@pytest.fixture
async def zk_proxy(zookeeper: ZooKeeperServer) -> AsyncIterator[TcpProxy]:
    """A proxy to the server that can lose replies, freeze and cut connections."""
    async with TcpProxy("127.0.0.1", zookeeper.port) as proxy:
        yield proxy


@pytest.fixture
def zk_proxied(zk_chroot: str, zk_proxy: TcpProxy) -> str:
    """The address of the same tree as ``zk_chroot``, through ``zk_proxy``."""
    return f"{zk_proxy.address}/{zk_chroot.partition('/')[2]}"


async def expire_session(session: ZkSession, zookeeper: ZooKeeperServer) -> None:
    """End ``session`` at the server, as its timeout would: a second client takes and closes it."""
    credentials = session.credentials

    def take_and_close() -> None:
        client = KazooClient(hosts=zookeeper.address, client_id=credentials)
        client.start()
        client.stop()
        client.close()

    await asyncio.to_thread(take_and_close)
