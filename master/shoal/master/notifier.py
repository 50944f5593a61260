"""Notifications: masters wake each other when there is something new in a partition."""

from collections.abc import Collection, Iterable

import structlog

from shoal.coordination import ZkSession
from shoal.coordination.cluster.notifications import notify
from shoal.core.errors import ShoalError
from shoal.master.engine.listeners import Listener, Listeners
from shoal.master.loops import Background

log = structlog.get_logger()


class Notifier(Listener):
    """Notifies the owners of partitions. A hint: owners poll besides, and no caller waits."""

    def __init__(
        self,
        session: ZkSession,
        ours: Collection[int],
        listeners: Listeners,
        background: Background,
    ) -> None:
        """``ours``: the partitions of this master, at any time; ``listeners`` hear about them."""
        self._session, self._background = session, background
        self._ours, self._listeners = ours, listeners

    def notify_owners(self, partitions: Iterable[int]) -> None:
        """Notify for these partitions: this master directly, others through ZooKeeper."""
        others = set()
        for partition in set(partitions):
            if partition in self._ours:
                self._listeners.notify(partition)
            else:
                others.add(partition)
        if others:
            self._background.spawn(self._notify(others), "notify")

    def on_commands(self, partitions: Collection[int]) -> None:
        self.notify_owners(partitions)

    async def _notify(self, partitions: Collection[int]) -> None:
        try:
            await notify(self._session, partitions)
        except ShoalError as error:
            log.debug("owners not notified; they poll besides", error=str(error))
