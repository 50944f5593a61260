"""Notifications reach their subscribers, also after trouble."""

import asyncio

import pytest

from shoal.coordination import Notifications, ZkSession, notify
from shoal.coordination.session.nodes import Node, WatchCallback
from tests.integration.coordination.conftest import get_request
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import eventually


async def test_notify_is_heard_again_and_again(tree: ZkSession, proxied: ZkSession) -> None:
    heard: list[int] = []
    async with Notifications(proxied, heard.append) as notifications:
        notifications.subscribe({1, 2})
        await eventually(lambda: sorted(heard) == [1, 2])  # the first look
        for _ in range(3):
            heard.clear()
            await notify(tree, [1, 3])
            await eventually(lambda: heard == [1])


async def test_notifications_no_longer_listened_to_are_silent(
    tree: ZkSession, proxied: ZkSession
) -> None:
    heard: list[int] = []
    async with Notifications(proxied, heard.append) as notifications:
        notifications.subscribe({1, 2})
        await eventually(lambda: sorted(heard) == [1, 2])
        notifications.subscribe({2})
        heard.clear()
        await notify(tree, [1, 2])
        await eventually(lambda: heard)
        await notify(tree, [1, 2])
        await eventually(lambda: len(heard) == 2)
        assert set(heard) == {2}


async def test_lost_connection_counts_as_a_notify(
    tree: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    heard: list[int] = []
    async with Notifications(proxied, heard.append) as notifications:
        notifications.subscribe({1})
        await eventually(lambda: heard == [1])
        zk_proxy.cut()
        await notify(tree, [1])  # nobody hears it now
        zk_proxy.heal()
        await eventually(lambda: len(heard) == 2)


async def test_listening_survives_a_connection_that_breaks_while_it_is_renewed(
    tree: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy, zk_chroot: str
) -> None:
    heard: list[int] = []
    async with Notifications(proxied, heard.append) as notifications:
        notifications.subscribe({1})
        await eventually(lambda: heard == [1])
        zk_proxy.swallow_from = get_request(zk_chroot, "/partitions/001/bell")
        await notify(tree, [1])
        await eventually(lambda: zk_proxy.swallow_replies)
        assert heard == [1, 1]  # before the notification is armed again
        zk_proxy.drop()
        zk_proxy.heal()
        for _ in range(3):
            heard.clear()
            await notify(tree, [1])
            await eventually(lambda: heard)


async def test_notify_before_the_notification_is_armed_again_is_heard_as_well(
    tree: ZkSession, proxied: ZkSession
) -> None:
    heard: list[int] = []
    again: list[asyncio.Task[None]] = []

    def listener(partition: int) -> None:
        heard.append(partition)
        if len(heard) == 2:  # on the watch's event, before anything is sent to arm it again
            again.append(asyncio.create_task(notify(tree, [1])))

    async with Notifications(proxied, listener) as notifications:
        notifications.subscribe({1})
        await eventually(lambda: heard == [1])
        await notify(tree, [1])
        await eventually(lambda: len(heard) >= 3)
        await asyncio.gather(*again)


async def test_one_notify_is_told_once(tree: ZkSession, proxied: ZkSession) -> None:
    heard: list[int] = []
    async with Notifications(proxied, heard.append) as notifications:
        notifications.subscribe({1, 2})
        await eventually(lambda: sorted(heard) == [1, 2])
        heard.clear()
        for _ in range(5):
            await notify(tree, [1])
            await eventually(lambda: heard)
            await notify(tree, [2])
            await eventually(lambda: 2 in heard)
            assert sorted(heard) == [1, 2]
            heard.clear()


async def test_failing_listener_does_not_end_the_listening(
    tree: ZkSession, proxied: ZkSession
) -> None:
    heard: list[int] = []

    def listener(partition: int) -> None:
        heard.append(partition)
        raise RuntimeError("not today")

    async with Notifications(proxied, listener) as notifications:
        notifications.subscribe({1})
        await eventually(lambda: heard == [1])
        await notify(tree, [1])
        await eventually(lambda: heard == [1, 1])


async def test_waiter_goes_on_before_the_watch_is_set_again(
    tree: ZkSession, proxied: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    notified = asyncio.Event()

    async def wait_for_a_notification() -> None:
        await notified.wait()
        done.append("woken")

    async with Notifications(proxied, lambda _: notified.set()) as notifications:
        notifications.subscribe({1})
        await eventually(notified.is_set)
        notified.clear()
        get = proxied.get

        def arm(path: str, *, watch: WatchCallback | None = None) -> asyncio.Future[Node]:
            done.append("armed")
            return get(path, watch=watch)

        monkeypatch.setattr(proxied, "get", arm)
        waiter = asyncio.create_task(wait_for_a_notification())
        await notify(tree, [1])
        await waiter
        await eventually(lambda: "armed" in done)
    assert done == ["woken", "armed"]
