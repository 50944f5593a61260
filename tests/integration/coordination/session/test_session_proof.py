"""What proves a session, and what does not."""

import asyncio
import threading
import time

import pytest

from shoal.coordination import ZkSession, prepare
from shoal.coordination.session.boottime import boottime
from tests.integration.coordination.conftest import connect
from tests.integration.coordination.given import owner
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually


async def _silence(session: ZkSession) -> None:
    """End the heartbeat, which would prove the session while we look."""
    session._heartbeat.stop()
    await asyncio.to_thread(session._heartbeat._thread.join)
    await session.get("/")  # what was under way before is answered


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


async def test_session_stays_proven_while_the_loop_is_blocked(zk_chroot: str) -> None:
    """A long step costs no session: heartbeats and proofs do not wait for the loop."""
    async with connect(zk_chroot, session_timeout_s=6.0) as session:
        await session.proven()
        time.sleep(5.0)  # noqa: ASYNC251 - that is the point: longer than a proof lasts
        assert session.is_proven
        assert session.generation == 1


async def test_session_of_a_loop_that_stands_still_ends_and_a_new_one_follows(
    zk_chroot: str,
) -> None:
    """A process that does nothing any more must not own anything for ever."""
    stand_still, go_on = threading.Event(), threading.Event()

    async def frozen() -> bool:
        async with connect(zk_chroot, session_timeout_s=1.0, name="frozen") as session:
            await session.create("/owner", ephemeral=True)
            stand_still.set()
            go_on.wait()
            was_proven = session.is_proven
            async with asyncio.timeout(DEADLINE_S):
                while session.generation < 2:
                    await asyncio.sleep(0.02)
                await session.proven()
            return was_proven

    async with connect(zk_chroot) as other:
        running = asyncio.create_task(asyncio.to_thread(asyncio.run, frozen()))
        try:
            await asyncio.to_thread(stand_still.wait, DEADLINE_S)
            async with asyncio.timeout(DEADLINE_S):
                while await other.exists("/owner"):
                    await asyncio.sleep(0.05)
        finally:
            go_on.set()
        assert not await running


async def test_server_that_falls_silent_costs_no_proof(zk_proxied: str, zk_proxy: TcpProxy) -> None:
    """Its host is gone, and nobody says so: another server is asked before the proof is over.

    Otherwise a worker would kill its tasks, and a master drop its partitions, for nothing.
    """
    async with connect(zk_proxied, session_timeout_s=20.0) as session:
        await session.proven()
        zk_proxy.strand()
        last = session.proven_until
        async with asyncio.timeout(DEADLINE_S):
            # What was on its way is proven less than a heartbeat later; a new connection, more.
            while session.proven_until < last + session.timeout_s / 4:
                assert session.is_proven
                left_s = last - boottime()
                await asyncio.sleep(0.02)
        # A few servers may be tried until one answers.
        assert left_s > session.timeout_s / 15
        assert session.generation == 1


async def test_suspended_machine_proves_nothing_when_it_goes_on(
    zk_chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All waits go on where they were; the clock of leases has gone on meanwhile."""
    ahead_s = 0.0
    monkeypatch.setattr("shoal.coordination.session.session.boottime", lambda: boottime() + ahead_s)
    async with connect(zk_chroot, session_timeout_s=40.0) as session:
        await _silence(session)
        assert session.is_proven
        unproven = asyncio.create_task(session.unproven())
        assert not (await asyncio.wait([unproven], timeout=0.1))[0]
        ahead_s = session.timeout_s
        assert not session.is_proven
        async with asyncio.timeout(DEADLINE_S):
            await unproven
        assert boottime() < session.proven_until  # the wait has not just run out


async def test_owner_on_a_suspended_machine_stops_when_it_goes_on(
    zk_chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_s = 0.0
    monkeypatch.setattr("shoal.coordination.session.session.boottime", lambda: boottime() + ahead_s)
    async with connect(zk_chroot, session_timeout_s=20.0) as session:
        await prepare(session, 8)
        async with owner(session, "a", [1, 2]) as recorder:
            await eventually(lambda: set(recorder.ownership.owned()) == {1, 2})
            await _silence(session)
            ahead_s = session.timeout_s
            assert not recorder.ownership.owned()  # before anything else happens
            await eventually(lambda: recorder.all("lost"))
            assert recorder.all("lost") == [frozenset({1, 2})]
