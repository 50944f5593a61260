"""Bells: wake the owner of a partition. A bell is a hint; what it stands for is elsewhere."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Self

import structlog

from shoal.coordination import background, layout
from shoal.coordination.errors import CoordinationError, NoNode
from shoal.coordination.nodes import WatchCallback, WatchEvent
from shoal.coordination.session import ZkSession

log = structlog.get_logger()


async def ring(session: ZkSession, partitions: Iterable[int]) -> None:
    """Ring the bells of ``partitions``. Raises ConnectionLoss; ringing twice does no harm."""
    bells = [session.set(layout.bell(number), b"") for number in set(partitions)]
    for error in await asyncio.gather(*bells, return_exceptions=True):
        if isinstance(error, BaseException) and not isinstance(error, NoNode):
            raise error


class Bells:
    """Call ``on_ring(partition)`` on the loop when one of the bells listened to is rung.

    Rings that come close together may arrive as one. After a lost connection every bell
    "rings", for it may have. A ring can still be missed; who listens also looks by itself now
    and then.
    """

    def __init__(self, session: ZkSession, on_ring: Callable[[int], None]) -> None:
        self._session, self._on_ring = session, on_ring
        self._listening: dict[int, WatchCallback] = {}
        self._unarmed: set[int] = set()
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = background.start(self._run(), "bells")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._listening.clear()
        await background.stop(self._task)

    def listen(self, partitions: Iterable[int]) -> None:
        """Listen to exactly these from now on. Each new one rings once, when it is listened to."""
        wanted = set(partitions)
        for number in self._listening.keys() - wanted:
            del self._listening[number]
        for number in wanted - self._listening.keys():
            self._listening[number] = partial(self._rung, number)
            self._unarmed.add(number)
        self._work.set()

    def _rung(self, number: int, _: WatchEvent) -> None:
        self._unarmed.add(number)
        self._work.set()

    async def _run(self) -> None:
        while True:
            await self._work.wait()
            await self._session.connected()
            self._work.clear()
            unarmed, self._unarmed = self._unarmed & self._listening.keys(), set()
            # Armed first, rung then: what happens in between is seen by the one or the other.
            gets = [
                self._session.get(layout.bell(number), watch=self._listening[number])
                for number in unarmed
            ]
            results = await asyncio.gather(*gets, return_exceptions=True)
            for number, result in zip(unarmed, results, strict=True):
                if isinstance(result, CoordinationError) and not isinstance(result, NoNode):
                    self._unarmed.add(number)
                    self._work.set()
                elif isinstance(result, BaseException):
                    raise result
                elif number in self._listening:
                    self._call(number)

    def _call(self, number: int) -> None:
        try:
            self._on_ring(number)
        except Exception:
            log.exception("listener of a bell failed", partition=number)
