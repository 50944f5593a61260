"""A session on a good connection, and on connections that break."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import (
    CannotConnect,
    Check,
    ConnectionLoss,
    CoordinationError,
    Create,
    Created,
    Delete,
    NodeExists,
    NoNode,
    SessionClosed,
    SessionLost,
    SessionState,
    SetData,
    TransactionFailed,
    WatchEvent,
    WatchKind,
    ZkSession,
)
from shoal.coordination.errors import BadAddress, BadVersion, NotEmpty, PathError
from shoal.coordination.startup import connect_when_there
from tests.integration.coordination.conftest import TIMEOUT_S, appears, connect
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually
from tests.support.zookeeper.server import expire_session

SHORT_S = 2.0  # the timeout of sessions for which it has to pass, in part or in whole


async def test_calls_made_together_are_done_in_their_order(session: ZkSession) -> None:
    sent = [session.create("/a"), session.create("/a/b"), session.create("/a/c", b"data")]
    created = await asyncio.gather(*sent)
    assert [node.path for node in created] == ["/a", "/a/b", "/a/c"]
    assert created[0].czxid < created[1].czxid < created[2].czxid
    names, stat = await session.children("/a")
    assert sorted(names) == ["b", "c"]
    assert stat.children == 2
    assert await session.get("/a/c") == (b"data", await session.exists("/a/c"))


async def test_each_error_names_its_path(session: ZkSession) -> None:
    await session.create("/parent/child", makepath=True)
    calls: list[tuple[Callable[[], Awaitable[object]], type[PathError]]] = [
        (lambda: session.create("/parent"), NodeExists),
        (lambda: session.create("/none/child"), NoNode),
        (lambda: session.get("/none"), NoNode),
        (lambda: session.delete("/parent"), NotEmpty),
        (lambda: session.set("/parent", b"", version=7), BadVersion),
    ]
    for call, error in calls:
        with pytest.raises(error, match=r"/(parent|none)"):
            await call()
    await session.delete("/none", missing_ok=True)
    assert await session.exists("/none") is None


async def test_sequential_nodes_get_numbers(session: ZkSession) -> None:
    paths = [(await session.create("/n-", sequential=True)).path for _ in range(2)]
    assert paths == ["/n-0000000000", "/n-0000000001"]


async def test_multi_returns_every_outcome(session: ZkSession) -> None:
    await session.create("/old")
    outcomes = await session.multi(
        [Check("/old", 0), Create("/new", b"1", ephemeral=True), SetData("/old", b"2"),
         Delete("/new"), Create("/new")]
    )  # fmt: skip
    created = outcomes[1]
    assert isinstance(created, Created)
    assert created.session_id == session.session_id
    again = outcomes[4]
    assert isinstance(again, Created)
    assert again.session_id == 0
    assert again.czxid == created.czxid == (await session.get("/old")).stat.mzxid


async def test_multi_with_one_bad_operation_does_nothing(session: ZkSession) -> None:
    await session.create("/there")
    with pytest.raises(TransactionFailed, match="/there") as failure:
        await session.multi([Create("/new"), Create("/there"), Delete("/none")])
    assert failure.value.failed_at == 1
    assert isinstance(failure.value.cause, NodeExists)
    assert await session.exists("/new") is None


async def test_nested_chroot_is_made_and_hides_the_rest(zk_chroot: str) -> None:
    async with (
        connect(zk_chroot) as outer,
        connect(f"{zk_chroot}/deep/er") as inner,
    ):
        seen: list[WatchEvent] = []
        await inner.exists("/x", watch=seen.append)
        await outer.create("/deep/er/x")
        await eventually(lambda: seen)
        assert seen == [WatchEvent(WatchKind.CREATED, "/x")]
        assert (await inner.children("/")).names == ["x"]


async def test_watch_fires_once_however_often_it_was_set(session: ZkSession) -> None:
    await session.create("/a")
    seen: list[WatchEvent] = []
    for _ in range(3):
        await session.get("/a", watch=seen.append)
    await session.set("/a", b"1")
    await session.set("/a", b"2")
    await session.sync("/")
    assert seen == [WatchEvent(WatchKind.CHANGED, "/a")]


async def test_ephemeral_node_goes_with_its_session(session: ZkSession, zk_chroot: str) -> None:
    async with connect(zk_chroot) as other:
        await other.create("/mine", ephemeral=True)
        assert await session.exists("/mine")
    await session.sync("/")
    assert await session.exists("/mine") is None


async def test_no_server_is_reported_in_time() -> None:
    with socket.socket() as held:  # bound, but not listening: nobody can be there
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(CannotConnect, match=address) as failure:
            async with asyncio.timeout(DEADLINE_S), ZkSession(address, connect_timeout_s=0.5):
                pass
    assert failure.value.retriable


async def test_call_after_closing_is_refused(zk_chroot: str) -> None:
    async with connect(zk_chroot) as session:
        pass
    assert session.state is SessionState.LOST
    with pytest.raises(SessionClosed):
        await session.get("/")


async def test_retry_that_waits_for_a_connection_ends_when_the_session_is_closed(
    zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    async with connect(zk_proxied, close_timeout_s=0.1) as session:
        zk_proxy.cut()
        waiting = asyncio.create_task(session.retry(lambda: session.get("/")))
        await eventually(lambda: session.state is SessionState.SUSPENDED)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
    await asyncio.wait([waiting], timeout=DEADLINE_S)
    assert waiting.done()
    with pytest.raises(SessionClosed):
        waiting.result()


async def test_create_whose_reply_was_lost_is_recognised_as_ours(
    session: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    zk_proxy.swallow_replies = True
    create = proxied.create("/mine", ephemeral=True)
    await appears(session, "/mine")
    zk_proxy.drop()
    with pytest.raises(ConnectionLoss):
        await create
    zk_proxy.heal()
    with pytest.raises(NodeExists):
        await proxied.retry(lambda: proxied.create("/mine", ephemeral=True))
    assert (await proxied.get("/mine")).stat.session_id == proxied.session_id
    assert proxied.generation == 1


async def test_server_that_says_nothing_does_not_cost_the_session(
    proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    # As a server may while it starts, and as a connection does whose route is cut one way.
    await proxied.create("/mine", ephemeral=True)
    zk_proxy.ignoring = 2
    zk_proxy.drop()
    await eventually(lambda: not zk_proxy.ignoring)
    assert (await proxied.retry(lambda: proxied.get("/mine"))).stat.session_id
    assert proxied.generation == 1


async def test_answer_to_no_request_costs_the_connection_and_nothing_else(
    proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    await proxied.create("/mine", ephemeral=True)
    zk_proxy.spoil_reply = True
    with suppress(CoordinationError):  # its own answer, or that to a heartbeat before it
        await proxied.get("/mine")
    await eventually(lambda: not zk_proxy.spoil_reply)
    again = await proxied.retry(lambda: proxied.get("/mine"), timeout_s=DEADLINE_S)
    assert again.stat.session_id
    assert proxied.generation == 1


async def test_numbers_of_requests_go_on_after_a_reconnect(
    proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    zk_proxy.heard = []
    await proxied.create("/before")
    zk_proxy.drop()
    await eventually(lambda: proxied.state is not SessionState.CONNECTED)
    first, zk_proxy.heard = zk_proxy.heard, []
    await proxied.retry(lambda: proxied.create("/after"))

    def number(path: bytes, sent: list[bytes]) -> int:
        """Return the number of the create of ``path``, which stands in front of kind and length."""
        stream = b"".join(sent)
        at = stream.index(path) - 12 - len(proxied._chroot)
        return int.from_bytes(stream[at : at + 4], "big")

    assert number(b"/after", zk_proxy.heard) > number(b"/before", first) > 1


async def test_lost_connection_ends_calls_and_watches_but_not_the_session(
    proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    await proxied.create("/mine", ephemeral=True)
    seen: list[WatchEvent] = []
    states: list[SessionState] = []
    proxied.on_state(states.append)
    await proxied.get("/mine", watch=seen.append)
    zk_proxy.cut()
    await eventually(lambda: proxied.state is SessionState.SUSPENDED)
    assert seen == [WatchEvent(WatchKind.NONE, "")]
    with pytest.raises(ConnectionLoss):  # it does not wait for the connection
        async with asyncio.timeout(DEADLINE_S):
            await proxied.get("/mine")
    zk_proxy.heal()
    assert (await proxied.retry(lambda: proxied.get("/mine"))).stat.session_id
    assert states == [SessionState.SUSPENDED, SessionState.CONNECTED]
    assert proxied.generation == 1


async def test_calls_never_block_the_loop_however_many_wait(
    proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    zk_proxy.freeze()  # it lives in this loop: if a call waited for it, both would wait for ever
    calls = [proxied.set("/", b"x" * 1000) for _ in range(5000)]  # more than any socket buffers
    zk_proxy.cut()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(result, ConnectionLoss) for result in results)


async def test_retry_gives_up_at_its_deadline(proxied: ZkSession, zk_proxy: TcpProxy) -> None:
    zk_proxy.cut()
    await eventually(lambda: proxied.state is SessionState.SUSPENDED)
    with pytest.raises(ConnectionLoss):
        await proxied.retry(lambda: proxied.get("/"), timeout_s=0.2)


async def test_expired_session_is_lost_and_replaced(
    session: ZkSession, zookeeper: ZooKeeperServer
) -> None:
    await session.create("/mine", ephemeral=True)
    states: list[SessionState] = []
    session.on_state(states.append)
    lost = asyncio.create_task(session.lost())
    unproven = asyncio.create_task(session.unproven())
    first_id = session.session_id
    await expire_session(session, zookeeper)
    async with asyncio.timeout(DEADLINE_S):
        await lost
        await unproven
        await session.proven()
    assert states[-2:] == [SessionState.LOST, SessionState.CONNECTED]
    assert session.generation == 2
    assert session.session_id != first_id
    assert await session.exists("/mine") is None


async def test_call_that_the_end_of_the_session_overtakes_is_told(
    proxied: ZkSession, zk_proxy: TcpProxy, zookeeper: ZooKeeperServer
) -> None:
    zk_proxy.cut()
    await eventually(lambda: proxied.state is SessionState.SUSPENDED)
    await expire_session(proxied, zookeeper)
    # Sent in the belief that the old session lives: must not be done by the new one.
    old_id = proxied.session_id
    zk_proxy.heal()
    await eventually(lambda: proxied.generation == 2)
    proxied.session_id, new_id = old_id, proxied.session_id
    with pytest.raises(SessionLost):
        await proxied.create("/late", ephemeral=True)
    proxied.session_id = new_id
    assert await proxied.exists("/late") is None


async def test_proof_advances_while_the_server_answers(zk_chroot: str) -> None:
    async with connect(zk_chroot, session_timeout_s=6.0) as session:
        assert session.is_proven
        first = session.proven_until
        await eventually(lambda: session.proven_until > first)
        assert session.proven_until <= time.monotonic() + 0.7 * session.timeout_s


async def test_proof_counts_from_the_sending_of_a_request_not_from_its_late_answer(
    zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    async with connect(zk_proxied) as session:
        zk_proxy.freeze()  # long before the next heartbeat
        call = session.sync("/")
        await asyncio.wait([call], timeout=0.4)  # a slow network
        assert not call.done()
        healed_at = time.monotonic()
        zk_proxy.heal()
        await call
        assert session.proven_until - 0.7 * session.timeout_s < healed_at


async def test_proof_stops_when_the_connection_is_cut(zk_proxied: str, zk_proxy: TcpProxy) -> None:
    async with connect(zk_proxied, session_timeout_s=SHORT_S) as session:
        zk_proxy.freeze()
        frozen_at = time.monotonic()
        async with asyncio.timeout(DEADLINE_S):
            await session.unproven()
        # Never later than 0.7 T after the last request that could be answered: before the server
        # may end the session.
        assert session.proven_until <= frozen_at + 0.7 * session.timeout_s
        assert not session.is_proven
        assert session.state is not SessionState.LOST  # nobody can know yet
        zk_proxy.heal()
        async with asyncio.timeout(DEADLINE_S):
            await session.proven()


async def test_silent_connection_is_broken_even_under_traffic(
    zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    async with connect(zk_proxied, session_timeout_s=SHORT_S, close_timeout_s=1.0) as session:
        zk_proxy.freeze()
        calls = []
        async with asyncio.timeout(DEADLINE_S):
            # Requests keep going out; kazoo alone takes them for signs of life, for ever.
            while session.state is SessionState.CONNECTED:
                calls.append(session.exists("/"))
                await asyncio.sleep(0.02)
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(result, ConnectionLoss) for result in results)


async def test_closing_is_bounded_when_the_server_is_silent(
    zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    async with connect(zk_proxied, session_timeout_s=60.0, close_timeout_s=0.3) as session:
        zk_proxy.freeze()
        began = time.monotonic()
    assert time.monotonic() - began < session.timeout_s / 2  # kazoo would wait for the timeout


async def test_who_starts_before_zookeeper_waits_for_it_and_says_so_once(
    zk_proxy: TcpProxy, zk_proxied: str
) -> None:
    zk_proxy.cut()
    made: list[ZkSession] = []

    def make() -> ZkSession:
        made.append(
            connect(zk_proxied, session_timeout_s=TIMEOUT_S, connect_timeout_s=0.5, name="early")
        )
        return made[-1]

    with capture_logs() as logs:
        starting = asyncio.create_task(connect_when_there(make))
        await eventually(lambda: len(made) > 2)
        assert not starting.done()
        told = [line for line in logs if line["event"].startswith("waiting for ZooKeeper")]
        assert [line["zookeeper"] for line in told] == [zk_proxied.partition("/")[0]]
        starting.cancel()  # as a process that is stopped does
        await asyncio.wait({starting}, timeout=DEADLINE_S)
        assert starting.cancelled()
        starting = asyncio.create_task(connect_when_there(make))
        zk_proxy.heal()
        async with asyncio.timeout(DEADLINE_S):
            session = await starting
        assert session.state is SessionState.CONNECTED
        await session.__aexit__(None, None, None)


@pytest.mark.parametrize("hosts", ["host:notaport"])
async def test_what_is_no_address_is_refused_at_once(hosts: str) -> None:
    with pytest.raises(BadAddress, match="host:notaport"):
        await connect_when_there(lambda: ZkSession(hosts))


@pytest.mark.parametrize("hosts", ["a:2181/shoal,b:2181/shoal", "a:2181/shoal,b:2181", "a:1/b:2"])
async def test_path_behind_each_server_is_refused(hosts: str) -> None:
    """It would be part of one path, which nobody has meant."""
    with pytest.raises(BadAddress, match="the path stands once, behind the last server"):
        async with ZkSession(hosts):
            pass
