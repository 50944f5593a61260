"""What no repetition helps ends the object that meets it, tells its waiter, and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from kazoo.security import make_acl, make_digest_acl

from shoal.coordination import (
    BalancedJobs,
    Election,
    ElectionListener,
    Membership,
    Notifications,
    TreeKeeper,
    ZkSession,
)
from shoal.coordination.cluster import layout
from shoal.coordination.errors import AccessDenied
from shoal.coordination.messages import Consumer, Producer
from tests.integration.coordination.conftest import connect
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S, eventually
from tests.support.zookeeper.secure import stock_client


async def close(address: str, path: str, *, readable: bool = True) -> None:
    """Let ``path``, which is made if it is missing, belong to others."""

    def work() -> None:
        hosts, _, chroot = address.partition("/")
        client = stock_client(hosts)
        client.start(DEADLINE_S)
        try:
            client.ensure_path(f"/{chroot}{path}")
            owner = make_digest_acl("others", "secret", all=True)
            world = [make_acl("world", "anyone", read=True)] if readable else []
            client.set_acls(f"/{chroot}{path}", [owner, *world])
        finally:
            client.stop()
            client.close()

    await asyncio.to_thread(work)


async def is_told(waiter: Awaitable[object], match: str) -> None:
    """Check that a waiter is told that access is denied."""
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(AccessDenied, match=match):
            await waiter


class Leads(ElectionListener):
    """A candidate that notes whether it leads."""

    def __init__(self) -> None:
        self.leads = False

    async def on_elected(self, epoch: int) -> None:
        self.leads = True

    async def on_deposed(self) -> None:
        self.leads = False


@pytest.mark.parametrize("closed", ["/elections/a", "/elections/a/fence"])
async def test_a_candidate_ends_and_another_of_its_session_does_not(
    session: ZkSession, zk_chroot: str, closed: str
) -> None:
    """The node of the leader, or the fence that it has to write."""
    await close(zk_chroot, closed)
    other = Leads()
    async with (
        Election(session, "a", "me", ElectionListener()) as election,
        Election(session, "b", "me", other),
    ):
        await is_told(election.wait(), "/elections/a")
        assert election.epoch is None
        await eventually(lambda: other.leads)
    assert not other.leads


async def test_a_share_of_jobs_ends_if_one_may_not_be_held(
    session: ZkSession, zk_chroot: str
) -> None:
    await close(zk_chroot, "/jobs/a/2")
    running: set[tuple[str, str]] = set()

    def runs(name: str) -> Callable[[str, int], Awaitable[None]]:
        async def run(job: str, epoch: int) -> None:
            running.add((name, job))
            try:
                await asyncio.Event().wait()
            finally:
                running.discard((name, job))

        return run

    async with (
        BalancedJobs(session, "a", "me", ["1", "2"], runs("a")) as jobs,
        BalancedJobs(session, "b", "me", ["1", "2"], runs("b")),
    ):
        await is_told(jobs.wait(), "/jobs/a/2/owner")
        await eventually(lambda: running == {("b", "1"), ("b", "2")})


@pytest.mark.parametrize("is_running", [False, True])
async def test_a_consumer_and_a_producer_end_at_what_they_may_not_read(
    session: ZkSession, zk_chroot: str, is_running: bool
) -> None:
    """At its beginning, and when the access list changes while it runs."""
    async with Producer(session, "mail", partitions=1) as producer:
        await producer.put("key", b"text", message_id="1")
        if not is_running:
            await close(zk_chroot, "/messages/mail/000/tail", readable=False)
        async with Consumer(session, "mail", "me", partitions=1) as consumer:
            if is_running:
                await (await anext(consumer)).ack()
                await close(zk_chroot, "/messages/mail/000/tail", readable=False)
            await is_told(anext(consumer), "/messages/mail/000/tail")
            await eventually(lambda: not consumer.partitions)
        await is_told(producer.put("key", b"text", message_id="2"), "/messages/mail/000/tail")


async def test_a_member_that_may_not_come_back_ends(session: ZkSession, zk_chroot: str) -> None:
    async with (
        Membership(session, "/workers", "a", {}, reread_s=0.05) as member,
        Membership(session, "/masters", "a", {}) as other,
    ):
        await session.delete("/workers/a")
        await close(zk_chroot, "/workers")
        # It may have been quicker, and is registered again: then it goes once more.
        waiting = asyncio.create_task(member.wait())
        hosts, _, chroot = zk_chroot.partition("/")
        async with connect(f"{hosts}/{chroot}", credential="digest:others:secret") as owner:
            while not waiting.done():
                await owner.delete("/workers/a", missing_ok=True)
                await asyncio.sleep(0.01)
        await is_told(waiting, "/workers/a")
        assert await session.exists("/masters/a")
        assert other.epoch


async def test_an_unexpected_error_costs_a_member_only_time(
    session: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.coordination.cluster.membership.RETRY_S", 0.01)
    member = Membership(session, "/workers", "a", {})
    register, tries = member._register, 0

    async def fail_twice() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise RuntimeError("no thread")
        await register()

    monkeypatch.setattr(member, "_register", fail_twice)
    async with asyncio.timeout(DEADLINE_S), member:
        assert await session.exists("/workers/a")


async def test_a_member_that_leaves_in_doubt_leaves_no_node_behind(
    session: ZkSession, zk_proxy: TcpProxy, zk_proxied: str
) -> None:
    async with connect(zk_proxied, session_timeout_s=STEADY_SESSION_S) as behind:
        async with Membership(behind, "/workers", "a", {}):
            before = behind.session_id
            zk_proxy.cut()
            await eventually(lambda: behind.state != "CONNECTED")
        assert await session.exists("/workers/a")
        zk_proxy.heal()
        await behind.connected()
        await eventually_gone(session, "/workers/a")
        assert behind.session_id == before
        async with Membership(behind, "/workers", "a", {}):  # it gets the turn
            assert await session.exists("/workers/a")


async def eventually_gone(session: ZkSession, path: str) -> None:
    """Return when ``path`` is gone."""
    async with asyncio.timeout(DEADLINE_S):
        while await session.exists(path):
            await asyncio.sleep(0.01)


async def test_notifications_that_may_not_be_read_end(tree: ZkSession, zk_chroot: str) -> None:
    await close(zk_chroot, layout.notification(1), readable=False)
    async with Notifications(tree, lambda _: None) as notifications:
        notifications.subscribe([1])
        await is_told(notifications.wait(), layout.notification(1))


async def test_a_tree_that_is_closed_while_we_run_ends_its_keeper(
    tree: ZkSession, zk_chroot: str
) -> None:
    async with TreeKeeper(tree, 4, reread_s=0.05) as keeper:
        await close(zk_chroot, layout.CONFIG, readable=False)
        await is_told(keeper.until_foreign(), layout.CONFIG)
        await is_told(keeper.bound(), layout.CONFIG)
