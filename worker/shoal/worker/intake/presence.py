"""What this worker publishes of itself in ZooKeeper: where it is, how busy, why it is paused."""

import asyncio
from collections.abc import Mapping
from typing import Any

from shoal.coordination import Membership
from shoal.coordination.session.loop_lag import LoopLag
from shoal.worker.attempts.held import HeldAttempts
from shoal.worker.intake.readiness import Readiness
from shoal.worker.logs.retention import LogKeeper

LOAD_EVERY_S = 1.0  # how often the load may change


class Presence:
    """The data of the worker's membership. ``about``: what never changes of it."""

    def __init__(
        self,
        about: Mapping[str, Any],
        attempts: HeldAttempts,
        readiness: Readiness,
        log_keeper: LogKeeper,
    ) -> None:
        self._about, self._attempts = about, attempts
        self._readiness, self._log_keeper = readiness, log_keeper
        self._lag = LoopLag()
        self._news = asyncio.Event()  # the data has changed, the load apart
        readiness.subscribe(self.publish_soon)

    @property
    def data(self) -> dict[str, Any]:
        """What is published."""
        data = {**self._about, "running": self._attempts.occupied, **self._log_keeper.published}
        if reason := self._readiness.pause_reason:
            data["paused"] = reason
        if masters := self._readiness.reachability.masters:
            data["unreachable"] = masters
        return data | self._lag.published

    async def measure_lag(self) -> None:
        """Publish how late the event loop is when that changes, for ever."""
        await self._lag.run(self.publish_soon)

    def publish_soon(self) -> None:
        """Publish soon: something has changed."""
        self._news.set()

    async def publish_news(self, member: Membership) -> None:
        """Publish what has changed, for ever."""
        while True:
            await self._news.wait()
            self._news.clear()
            await member.update(self.data)

    async def publish_load(self, member: Membership) -> None:
        """Keep ``running`` true, at most a second late, for ever."""
        shown = 0
        while True:
            while self._attempts.occupied == shown:
                await self._attempts.changed()
            shown = self._attempts.occupied
            await member.update(self.data)
            await asyncio.sleep(LOAD_EVERY_S)  # a limit of the rate
