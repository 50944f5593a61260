"""Sessions for the tests of coordination. Short timeouts: the server allows one second and up."""

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Callable

import pytest

from shoal.coordination import ZkSession

TIMEOUT_S = 2.0


@pytest.fixture
async def session(zk_chroot: str) -> AsyncIterator[ZkSession]:
    """A session straight to the server."""
    async with ZkSession(zk_chroot, session_timeout_s=TIMEOUT_S, name="straight") as session:
        yield session


@pytest.fixture
async def proxied(zk_proxied: str) -> AsyncIterator[ZkSession]:
    """A session in the same tree whose connection runs through ``zk_proxy``."""
    async with ZkSession(
        zk_proxied, session_timeout_s=TIMEOUT_S, name="proxied", close_timeout_s=1.0
    ) as session:
        yield session


async def eventually(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Return as soon as ``condition`` holds; fail after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"still not true after {timeout_s} s"
        await asyncio.sleep(0.005)


async def appears(session: ZkSession, path: str) -> None:
    """Return when ``path`` exists; fail after five seconds."""
    there = asyncio.Event()
    if not await session.exists(path, watch=lambda _: there.set()):
        async with asyncio.timeout(5):
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


def put_request() -> bytes:
    """Return the bytes by which the proxy knows a multi that begins with a create."""
    return struct.pack(">iib", 14, 15, 0)


def claim_request() -> bytes:
    """Return the bytes by which the proxy knows a multi that begins with a delete."""
    return struct.pack(">iib", 14, 2, 0)
