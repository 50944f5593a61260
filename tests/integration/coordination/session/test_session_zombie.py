"""A connection that has outlived its session: nothing rests on it, and it is left."""

import asyncio

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import Check, SessionState, ZkSession
from shoal.coordination.errors import Obstacle, SessionLost
from shoal.coordination.session import obstacles
from shoal.coordination.session.boottime import boottime
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually
from tests.support.zookeeper.server import expire_session
from tests.support.zookeeper.zombie import zombie


@pytest.fixture(autouse=True)
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is asked why it gives no session: the zombie serves one connection only."""
    monkeypatch.setattr(obstacles, "probe", lambda *_: Obstacle.REFUSES)


async def outlive(session: ZkSession, proxy: TcpProxy, server: ZooKeeperServer) -> float:
    """End the session at the server while it reconnects; return when that was (boottime)."""
    proxy.refusing = True
    proxy.drop()
    await expire_session(session, server)
    ended = boottime()
    proxy.impostor = zombie
    proxy.refusing = False
    await eventually(lambda: proxy.impostor is None)
    return ended


@pytest.mark.parametrize("call", ["create", "multi", "nothing"])
async def test_connection_without_a_session_is_left(
    proxied: ZkSession, zk_proxy: TcpProxy, zookeeper: ZooKeeperServer, call: str
) -> None:
    """By what a call is told, which hears of it, too, or by the heartbeat."""
    await proxied.create("/mine", ephemeral=True)
    if call != "nothing":
        proxied._heartbeat.stop()
        await asyncio.to_thread(proxied._heartbeat._thread.join)
    states: list[SessionState] = []
    proxied.on_state(states.append)
    await outlive(proxied, zk_proxy, zookeeper)
    await eventually(lambda: SessionState.CONNECTED in states)
    if call == "create":
        with pytest.raises(SessionLost):
            await proxied.create("/other")
    elif call == "multi":
        with pytest.raises(SessionLost):
            await proxied.multi([Check("/mine", -1)])
    async with asyncio.timeout(DEADLINE_S):
        while proxied.generation < 2:
            await asyncio.sleep(0.02)
        if call != "nothing":
            await proxied.retry(lambda: proxied.multi([Check("/", -1)]))
        await proxied.proven()
    assert await proxied.exists("/mine") is None


async def test_sync_alone_proves_no_session_on_a_new_connection(
    proxied: ZkSession,
    zk_proxy: TcpProxy,
    zookeeper: ZooKeeperServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states: list[SessionState] = []
    proxied.on_state(states.append)
    monkeypatch.setattr(type(proxied._client), "doubt", lambda *_: None)  # it stays there
    ended = await outlive(proxied, zk_proxy, zookeeper)
    await eventually(lambda: SessionState.CONNECTED in states)
    for _ in range(5):
        await proxied.sync("/")
        assert proxied._heartbeat.proof[1] < ended
    async with asyncio.timeout(DEADLINE_S):
        await proxied.unproven()
    assert proxied.generation == 1


async def test_callback_that_fails_keeps_nothing_else(session: ZkSession) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("a listener broke")

    remove = session.on_state(fail)
    behind = asyncio.Event()
    # In one turn of the loop: after the next answer of the server there would be another one.
    session._inbox.extend([(fail, (None,)), (behind.set, ())])
    session._drain()
    assert behind.is_set()
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(session.exists("/") for _ in range(5)))
    remove()
