"""Fixtures: a real ZooKeeper server and a real ensemble, a fresh chroot for each test."""

import asyncio
import os
import shutil
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError, NotEmptyError

from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.coordination import (
    ZkSession,
)
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, START_S
from tests.support.zookeeper import ENSEMBLE
from tests.support.zookeeper.ensemble import Ensemble, start_ensemble
from tests.support.zookeeper.secure import proxy_to, stock_client


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A running server; started when the first test asks for it.

    With the variable ``ENSEMBLE`` it is a follower of an ensemble of three.
    """
    if os.environ.get(ENSEMBLE):
        with start_ensemble(tmp_path_factory.mktemp("ensemble of all"), find_java()) as ensemble:
            yield ensemble.followers()[0]
        return
    folder = tmp_path_factory.mktemp("zookeeper data")  # the space is on purpose
    server = ZooKeeperServer(folder, free_port(), find_java())
    try:
        server.start()
        server.wait_ready(START_S)
        yield server
    finally:
        server.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A server that the test may wipe."""
    server = ZooKeeperServer(tmp_path / "zookeeper", free_port(), find_java())
    server.start()
    try:
        server.wait_ready(START_S)
        yield server
    finally:
        server.stop()


def wipe(server: ZooKeeperServer) -> None:
    """Let the server come back with nothing."""
    server.stop()
    shutil.rmtree(server.data_dir / "data")
    server.start()
    server.wait_ready(START_S)


@pytest.fixture
def zk_chroot(zookeeper: ZooKeeperServer) -> str:
    """The address of an empty tree of its own, "127.0.0.1:port/test-uuid"."""
    return zookeeper.address + make_chroot(zookeeper.address)


@pytest.fixture(scope="session")
def running_ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three servers; started when the first test asks for them."""
    ensemble = start_ensemble(tmp_path_factory.mktemp("ensemble"), find_java())
    try:
        yield ensemble
    finally:
        ensemble.__exit__(None, None, None)


@pytest.fixture
def ensemble(running_ensemble: Ensemble) -> Ensemble:
    """The ensemble with all its servers at work; hurt it as you like."""
    running_ensemble.repair()
    return running_ensemble


@pytest.fixture
def ensemble_chroot(ensemble: Ensemble) -> str:
    """The address of an empty tree of its own on the ensemble, "h:p,h:p,h:p/test-uuid"."""
    return ensemble.address + make_chroot(ensemble.address)


def make_chroot(address: str) -> str:
    """Create an empty tree at ``address`` and return its path."""
    chroot = f"/test-{uuid.uuid4().hex}"
    client = stock_client(address)
    client.start(DEADLINE_S)
    try:
        client.create(chroot)
    finally:
        client.stop()
        client.close()
    return chroot


@pytest.fixture
async def zk_proxy(zookeeper: ZooKeeperServer) -> AsyncIterator[TcpProxy]:
    """A proxy to the server that can lose replies, freeze and cut connections."""
    async with proxy_to(zookeeper.address) as proxy:
        yield proxy


@pytest.fixture
def zk_proxied(zk_chroot: str, zk_proxy: TcpProxy) -> str:
    """The address of the same tree as ``zk_chroot``, through ``zk_proxy``."""
    return f"{zk_proxy.address}/{zk_chroot.partition('/')[2]}"


async def expire_session(session: ZkSession, zookeeper: ZooKeeperServer) -> None:
    """End ``session`` at the server, as its timeout would: a second client takes and closes it."""
    credentials = session.credentials

    def take_and_close() -> None:
        client = stock_client(zookeeper.address, client_id=credentials)
        client.start(DEADLINE_S)
        client.stop()
        client.close()

    await asyncio.to_thread(take_and_close)


def delete_all(address: str, path: str = "/") -> None:
    """Delete everything below ``path``, as an operator's stray deleteall does."""
    client = stock_client(address)
    client.start(DEADLINE_S)
    try:
        delete_below(client, path)
    finally:
        client.stop()
        client.close()


def delete_below(client: KazooClient, path: str) -> None:
    """Somebody may make anew already what is being deleted."""
    with suppress(NoNodeError):
        for name in client.get_children(path):
            if name != "zookeeper":
                below = f"{path.rstrip('/')}/{name}"
                delete_below(client, below)
                with suppress(NotEmptyError, NoNodeError):
                    client.delete(below)
