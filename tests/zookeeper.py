"""Fixtures: one real ZooKeeper server for the whole test run, a fresh chroot for each test."""

import uuid
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port


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
