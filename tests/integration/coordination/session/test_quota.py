"""A quota that is used up is told, and is not final: it may be raised while processes wait."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.coordination import Election, ElectionListener, ZkSession
from shoal.coordination.errors import QuotaExceeded
from tests.integration.coordination.conftest import connect
from tests.support.waiting import START_S, eventually


class EnforcingServer(ZooKeeperServer):
    """A server that enforces quotas."""

    def _config(self) -> str:
        return super()._config() + "enforceQuota=true\n"


@pytest.fixture
async def enforced(tmp_path: Path) -> AsyncIterator[ZkSession]:
    """A session on a server that enforces quotas."""
    server = EnforcingServer(tmp_path / "zookeeper", free_port(), find_java(), heap_mb=128)
    server.start()
    try:
        await asyncio.to_thread(server.wait_ready, START_S)
        async with connect(server.address) as session:
            yield session
    finally:
        server.stop()


async def set_quota(session: ZkSession, path: str, *, count: int = -1, size: int = -1) -> None:
    """Set hard limits, as zkCli's ``setquota -N`` and ``-B`` do."""
    limits = f"count=-1,bytes=-1=;byteHardLimit={size};countHardLimit={count}".encode()
    quota = f"/zookeeper/quota{path}"
    if await session.exists(f"{quota}/zookeeper_limits"):
        await session.set(f"{quota}/zookeeper_limits", limits)
        return
    await session.ensure(quota)
    await session.create(f"{quota}/zookeeper_limits", limits)
    await session.create(f"{quota}/zookeeper_stats", b"count=0,bytes=0")


async def test_a_quota_of_nodes_and_of_bytes(enforced: ZkSession) -> None:
    await enforced.create("/few")
    await set_quota(enforced, "/few", count=2)
    await enforced.create("/few/1")
    with pytest.raises(QuotaExceeded, match=r"znode /few/2: .*quota.*setquota") as failure:
        await enforced.create("/few/2")
    assert not failure.value.is_final
    assert not failure.value.retriable
    await enforced.create("/small", b"1")
    await set_quota(enforced, "/small", size=10)
    with pytest.raises(QuotaExceeded, match="znode /small: "):
        await enforced.set("/small", b"1" * 11)


async def test_a_candidate_waits_until_the_quota_is_raised(enforced: ZkSession) -> None:
    await enforced.create("/elections/a", makepath=True)
    await set_quota(enforced, "/elections/a", count=1)
    async with Election(enforced, "a", "me", ElectionListener()) as election:
        waiting = asyncio.create_task(election.wait())
        with pytest.raises(QuotaExceeded):  # as the candidate has it
            await enforced.create("/elections/a/other")
        await set_quota(enforced, "/elections/a", count=10)
        await eventually(lambda: election.epoch is not None)
        assert not waiting.done()
    await waiting
