"""What proves a session, and what does not."""

import asyncio

from shoal.coordination import ZkSession
from tests.integration.coordination.conftest import connect
from tests.waiting import DEADLINE_S


async def _silence(session: ZkSession) -> None:
    """End the heartbeat, which would prove the session while we look."""
    assert session._heartbeat is not None
    session._heartbeat.cancel()
    await asyncio.wait([session._heartbeat])


async def test_connection_alone_proves_nothing(zk_chroot: str) -> None:
    """The server may have ended a session whose client still believes to be connected."""
    async with connect(zk_chroot, session_timeout_s=2.0) as session:
        await _silence(session)
        async with asyncio.timeout(DEADLINE_S):
            await session.unproven()
        assert not session.is_proven


async def test_read_proves_nothing(zk_chroot: str) -> None:
    """A follower that is cut off from its leader goes on answering reads."""
    async with connect(zk_chroot) as session:
        await _silence(session)
        await session.sync("/")
        before = session.proven_until
        await session.get("/")
        await session.exists("/")
        await session.children("/")
        assert session.proven_until == before
        await session.sync("/")
        assert session.proven_until > before
