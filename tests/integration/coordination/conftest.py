"""Sessions for the tests of coordination.

Their timeouts are long: a machine that stands still for some seconds must not end a session that
a test means to keep. Tests in which a timeout has to pass make sessions of their own.
"""

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shoal.coordination import TaskQueue, ZkSession, prepare
from tests.support.waiting import DEADLINE_S, SERVICE_SESSION_S, STEADY_SESSION_S
from tests.support.waiting import eventually as eventually
from tests.support.zookeeper.secure import access

TIMEOUT_S = SERVICE_SESSION_S  # of sessions that tests let die


def connect(hosts: str, **options: Any) -> ZkSession:
    """Return a session to enter; patient where ``options`` do not say otherwise."""
    patient = {
        "session_timeout_s": STEADY_SESSION_S,
        "connect_timeout_s": DEADLINE_S,
        "close_timeout_s": DEADLINE_S,
    }
    return ZkSession(hosts, **(patient | access(hosts) | options))


@pytest.fixture
async def session(zk_chroot: str) -> AsyncIterator[ZkSession]:
    """A session straight to the server."""
    async with connect(zk_chroot, name="straight") as session:
        yield session


@pytest.fixture
async def proxied(zk_proxied: str) -> AsyncIterator[ZkSession]:
    """A session in the same tree whose connection runs through ``zk_proxy``."""
    async with connect(
        zk_proxied, name="proxied", session_timeout_s=TIMEOUT_S, close_timeout_s=1.0
    ) as session:
        yield session


@pytest.fixture
async def tree(session: ZkSession) -> ZkSession:
    """The straight session, with all that a cluster of four partitions needs."""
    await prepare(session, 4)
    return session


@pytest.fixture
async def queue(tree: ZkSession) -> TaskQueue:
    """The task queue of that session."""
    return TaskQueue(tree)


async def appears(session: ZkSession, path: str) -> None:
    """Return when ``path`` exists. Raises TimeoutError after ``DEADLINE_S``."""
    there = asyncio.Event()
    if not await session.exists(path, watch=lambda _: there.set()):
        async with asyncio.timeout(DEADLINE_S):
            await there.wait()


def create_request(chroot_address: str, path: str) -> bytes:
    """Return the bytes by which the proxy knows the creation of ``path``."""
    return _request(15, chroot_address, path)


def get_request(chroot_address: str, path: str) -> bytes:
    """Return the bytes by which the proxy knows the reading of ``path``."""
    return _request(4, chroot_address, path)


def set_request(chroot_address: str, path: str) -> bytes:
    """Return the bytes by which the proxy knows the writing of ``path``."""
    return _request(5, chroot_address, path)


def _request(opcode: int, chroot_address: str, path: str) -> bytes:
    full = f"/{chroot_address.partition('/')[2]}{path}".encode()
    return struct.pack(">ii", opcode, len(full)) + full


def delete_request(chroot_address: str, path: str) -> bytes:
    """Return the bytes by which the proxy knows the deletion of ``path``."""
    return _request(2, chroot_address, path)


def put_request() -> bytes:
    """Return the bytes by which the proxy knows a multi that begins with a create."""
    return struct.pack(">iib", 14, 15, 0)


def claim_request() -> bytes:
    """Return the bytes by which the proxy knows a multi that begins with a delete."""
    return struct.pack(">iib", 14, 2, 0)
