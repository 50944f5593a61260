"""The tree is prepared once, by the first process."""

import asyncio

import pytest

from shoal.coordination import Mismatch, ZkSession, prepare
from tests.integration.coordination.conftest import connect


async def test_partition_count_is_fixed_by_the_first(session: ZkSession, zk_chroot: str) -> None:
    counts = [3, 5, 8]
    sessions = [connect(zk_chroot) for _ in counts]
    try:
        await asyncio.gather(*(each.__aenter__() for each in sessions))
        prepared = [prepare(each, n) for each, n in zip(sessions, counts, strict=True)]
        agreed = await asyncio.gather(*prepared)
    finally:
        await asyncio.gather(*(each.__aexit__(None, None, None) for each in sessions))
    assert len(set(agreed)) == 1
    assert agreed[0] in counts
    assert await prepare(session, 99) == agreed[0]
    for number in range(agreed[0]):
        assert await session.exists(f"/partitions/{number:03d}/bell")
    for path in ("/masters", "/workers", "/queue", "/claims"):
        assert await session.exists(path)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"version": 2, "partitions": 4}'])
async def test_foreign_tree_is_refused(session: ZkSession, data: bytes) -> None:
    await session.create("/config", data)
    with pytest.raises(Mismatch):
        await prepare(session)


async def test_absurd_counts_are_refused(session: ZkSession) -> None:
    for count in (0, 1001):
        with pytest.raises(ValueError, match="1 to 1000"):
            await prepare(session, count)


async def test_tree_of_an_earlier_version_is_completed(session: ZkSession) -> None:
    for path in ("/masters", "/workers", "/partitions", "/queue", "/claims"):
        await session.create(path)
    await session.create("/config", b'{"version": 1, "partitions": 3}')
    assert await prepare(session, 5) == 3
    assert await session.exists("/claims/00")
    assert await session.exists("/claims/ff")
