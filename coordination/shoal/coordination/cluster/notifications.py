"""Notifications: wake the owner of a partition.

Each partition has a znode whose data is set when its owner has work. A notification is a hint: the
work itself is in the database, and owners poll as well.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Self

import structlog

from shoal.coordination import background
from shoal.coordination.cluster import layout
from shoal.coordination.errors import CoordinationError, NoNode
from shoal.coordination.session.nodes import WatchEvent, WatchKind
from shoal.coordination.session.session import ZkSession
from shoal.coordination.session.wire import Stat

log = structlog.get_logger()

RETRY_S = 0.5  # pause after a znode could not be created


def notify(session: ZkSession, partitions: Iterable[int]) -> Coroutine[Any, Any, None]:
    """Notify the owners of ``partitions`` at once. A repetition does no harm.

    The returned coroutine waits for the answers; it raises ConnectionLoss.
    """
    return _send_all([session.set(layout.notification(number), b"") for number in set(partitions)])


async def _send_all(notifications: "Iterable[asyncio.Future[Stat]]") -> None:
    for error in await asyncio.gather(*notifications, return_exceptions=True):
        if isinstance(error, BaseException) and not isinstance(error, NoNode):
            raise error


class _Subscription:
    """The znode of one partition that is watched."""

    def __init__(
        self, number: int, notified: "Callable[[_Subscription, WatchEvent], None]"
    ) -> None:
        self.number = number
        self.version: int | None = None  # of the znode, the last one passed on; None: unknown
        self._notified = notified

    def watch(self, event: WatchEvent) -> None:
        """Called at most once for each watch that was set."""
        self._notified(self, event)


class Notifications:
    """Calls ``on_notified(partition)`` on the loop when a subscribed partition is notified.

    A notification is passed on before the watch is set again; several that come close together may
    arrive as one. A lost connection counts as a notification of every partition. One can still be
    missed, so subscribers poll now and then.
    """

    def __init__(self, session: ZkSession, on_notified: Callable[[int], None]) -> None:
        self._session, self._on_notified = session, on_notified
        self._subscriptions: dict[int, _Subscription] = {}
        self._unarmed: set[int] = set()
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = background.keep_running(self._run, "notifications")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._subscriptions.clear()
        await background.stop(self._task)

    async def wait(self) -> None:
        """Return when the block has been left. Raises an error that no repetition helps."""
        await background.ended(self._task)

    def subscribe(self, partitions: Iterable[int]) -> None:
        """Subscribe to exactly these partitions. Each new one is notified once at the start."""
        wanted = set(partitions)
        for number in self._subscriptions.keys() - wanted:
            del self._subscriptions[number]
        for number in wanted - self._subscriptions.keys():
            self._subscriptions[number] = _Subscription(number, self._notified)
            self._unarmed.add(number)
        self._work.set()

    def _notified(self, subscription: _Subscription, event: WatchEvent) -> None:
        if self._subscriptions.get(subscription.number) is not subscription:
            return
        self._unarmed.add(subscription.number)
        if event.kind is WatchKind.CHANGED and subscription.version is not None:
            subscription.version += 1
            self._call(subscription)
        else:
            subscription.version = None
        self._work.set()  # after the call, so that the subscriber runs before the watch is set

    async def _run(self) -> None:
        self._unarmed |= self._subscriptions.keys()  # after a failure, which are is unknown
        self._work.set()
        while True:
            await self._work.wait()
            await self._session.connected()
            self._work.clear()
            numbers, self._unarmed = self._unarmed & self._subscriptions.keys(), set()
            subscriptions = [self._subscriptions[number] for number in numbers]
            gets = [
                self._session.get(layout.notification(one.number), watch=one.watch)
                for one in subscriptions
            ]
            results = await asyncio.gather(*gets, return_exceptions=True)
            is_refused = False
            for subscription, result in zip(subscriptions, results, strict=True):
                if self._subscriptions.get(subscription.number) is not subscription:
                    continue
                if isinstance(result, NoNode):
                    await self._recreate(subscription)
                elif isinstance(result, CoordinationError):
                    if result.is_final:
                        raise result
                    subscription.version = None
                    self._unarmed.add(subscription.number)
                    self._work.set()
                    is_refused = is_refused or not result.retriable
                elif isinstance(result, BaseException):
                    raise result
                else:
                    # The event of a later notification can arrive before this answer.
                    if subscription.version is None or subscription.version < result.stat.version:
                        subscription.version = result.stat.version
                        self._call(subscription)
            if is_refused:
                await asyncio.sleep(RETRY_S)

    async def _recreate(self, subscription: _Subscription) -> None:
        """The znode is missing: create it and watch it again."""
        try:
            await self._session.ensure(layout.notification(subscription.number))
        except CoordinationError as error:
            if error.is_final:
                raise
            log.info(
                "notification node not created", partition=subscription.number, error=str(error)
            )
            await asyncio.sleep(RETRY_S)
        self._unarmed.add(subscription.number)
        self._work.set()
        self._call(subscription)

    def _call(self, subscription: _Subscription) -> None:
        try:
            self._on_notified(subscription.number)
        except Exception:
            log.exception("subscriber failed", partition=subscription.number)
