"""The clock of a process that decides by time: checked against the ensemble's and others."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Self

import structlog

from shoal.coordination import background
from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.session.boottime import boottime
from shoal.coordination.session.ntp_state import is_synchronised
from shoal.coordination.session.session import ZkSession
from shoal.core.errors import ShoalError
from shoal.core.timing.cluster_time import ClockReading, ClusterTime

log = structlog.get_logger()

COMPARE_EVERY_S = 10.0  # a write to ZooKeeper each; a clock that was set counts until then
SUSPICIOUS_EVERY_S = 2.0  # while clocks differ
ANSWER_S = 2.0  # a clock that takes longer to answer is left out

Source = Callable[[], Awaitable[datetime]]


def read_clocks() -> ClockReading:
    """Return what the wall clock and the time since boot are. The latter counts suspended time."""
    return ClockReading(time.time(), boottime())


class ClusterClock:
    """The cluster's time. Compares clocks for the life of the ``async with`` block.

    ``sources`` are clocks beside the ensemble's: name -> a call that returns its time (aware). One
    that raises a ShoalError, or does not answer, is left out of that comparison. The clock itself
    is called for the time, an aware datetime in UTC; ``core.timing.cluster_time`` says what counts.

    The ensemble's time is the stamp that ZooKeeper's leader puts on a write of ours, to ``/clock``.
    """

    def __init__(
        self,
        session: ZkSession,
        sources: Mapping[str, Source] | None = None,
        read: Callable[[], ClockReading] = read_clocks,
        every_s: float = COMPARE_EVERY_S,
        is_synchronised: Callable[[], bool] = is_synchronised,
    ) -> None:
        self._session = session
        self._sources = {"ensemble": self._ensemble, **(sources or {})}
        self._read = read
        self._every_s = every_s
        self._is_synchronised = is_synchronised
        self._time = ClusterTime(read())
        self._logged: frozenset[str] = frozenset()
        self._loop: asyncio.Task[None] | None = None

    def __call__(self) -> datetime:
        return datetime.fromtimestamp(self._time.now_s(self._read()), UTC)

    @property
    def differences(self) -> Mapping[str, float]:
        """Clocks that are off: name ("own" is this node's) -> seconds ahead of the cluster's."""
        return self._time.differences(self._read())

    async def __aenter__(self) -> Self:
        await self.compare()
        self._loop = background.keep_running(self._compare_repeatedly, "cluster clock")
        return self

    async def __aexit__(self, *_: object) -> None:
        await background.stop(self._loop)

    async def compare(self) -> None:
        """Read every clock once, and compare."""
        await asyncio.gather(*(self._ask(name, ask) for name, ask in self._sources.items()))
        self._time.compare(self._read(), is_synchronised=self._is_synchronised())
        self._log_differences()

    async def _compare_repeatedly(self) -> None:
        while True:
            suspicious = bool(self._logged)
            await asyncio.sleep(
                min(SUSPICIOUS_EVERY_S, self._every_s) if suspicious else self._every_s
            )
            await self.compare()

    async def _ask(self, name: str, ask: Source) -> None:
        sent = self._read()
        try:
            async with asyncio.timeout(ANSWER_S):
                moment = await ask()
        except TimeoutError:
            log.debug("a clock does not answer", clock=name)
        except ShoalError as error:
            log.debug("a clock cannot be asked", clock=name, error=str(error))
        else:
            self._time.observe(name, moment.timestamp(), sent, self._read())

    async def _ensemble(self) -> datetime:
        try:
            stat = await self._session.set(layout.CLOCK, b"")
        except NoNode:
            await self._session.ensure(layout.CLOCK)
            stat = await self._session.set(layout.CLOCK, b"")
        return datetime.fromtimestamp(stat.mtime_ms / 1000, UTC)

    def _log_differences(self) -> None:
        off = self.differences
        if off.keys() == self._logged:
            return
        if off:
            log.warning(
                "clocks differ; the time that most of them show counts",
                ahead_s={name: round(by_s, 1) for name, by_s in off.items()},
            )
        else:
            log.info("clocks agree again")
        self._logged = frozenset(off)
