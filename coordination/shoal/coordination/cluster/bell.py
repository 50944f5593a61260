"""Bells: wake the owner of a partition. A bell is a hint; what it stands for is elsewhere."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Self

import structlog

from shoal.coordination import background
from shoal.coordination.cluster import layout
from shoal.coordination.errors import CoordinationError, NoNode
from shoal.coordination.session.nodes import EventKind, WatchEvent
from shoal.coordination.session.session import ZkSession
from shoal.coordination.session.wire import Stat

log = structlog.get_logger()

RETRY_S = 0.5  # pause after a bell could not be made


def ring(session: ZkSession, partitions: Iterable[int]) -> Coroutine[Any, Any, None]:
    """Ring the bells of ``partitions``, at once; ringing twice does no harm.

    The coroutine that is returned tells how that went: it raises ConnectionLoss.
    """
    return _rings([session.set(layout.bell(number), b"") for number in set(partitions)])


async def _rings(bells: "Iterable[asyncio.Future[Stat]]") -> None:
    for error in await asyncio.gather(*bells, return_exceptions=True):
        if isinstance(error, BaseException) and not isinstance(error, NoNode):
            raise error


class _Bell:
    """One bell that is listened to."""

    def __init__(self, number: int, rung: "Callable[[_Bell, WatchEvent], None]") -> None:
        self.number = number
        self.rings: int | None = None  # so far, as far as they were told; None: nobody knows
        self._rung = rung

    def watch(self, event: WatchEvent) -> None:
        """Called once for each time that the bell was armed."""
        self._rung(self, event)


class Bells:
    """Call ``on_ring(partition)`` on the loop when one of the bells listened to is rung.

    A ring is passed on at once, before the bell is armed again; rings that come close together
    may arrive as one. After a lost connection every bell "rings", for it may have. A ring can
    still be missed; who listens also looks by itself now and then.
    """

    def __init__(self, session: ZkSession, on_ring: Callable[[int], None]) -> None:
        self._session, self._on_ring = session, on_ring
        self._listening: dict[int, _Bell] = {}
        self._unarmed: set[int] = set()
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = background.keep_running(self._run, "bells")
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
            self._listening[number] = _Bell(number, self._rung)
            self._unarmed.add(number)
        self._work.set()

    def _rung(self, bell: _Bell, event: WatchEvent) -> None:
        if self._listening.get(bell.number) is not bell:
            return
        self._unarmed.add(bell.number)
        if event.kind is EventKind.CHANGED and bell.rings is not None:
            bell.rings += 1
            self._call(bell)
        else:
            bell.rings = None
        self._work.set()  # after the call: whom it wakes goes on before the bell is armed again

    async def _run(self) -> None:
        self._unarmed |= self._listening.keys()  # after a failure nobody knows which ones are armed
        self._work.set()
        while True:
            await self._work.wait()
            await self._session.connected()
            self._work.clear()
            numbers, self._unarmed = self._unarmed & self._listening.keys(), set()
            bells = [self._listening[number] for number in numbers]
            gets = [self._session.get(layout.bell(b.number), watch=b.watch) for b in bells]
            results = await asyncio.gather(*gets, return_exceptions=True)
            for bell, result in zip(bells, results, strict=True):
                if self._listening.get(bell.number) is not bell:
                    continue
                if isinstance(result, NoNode):
                    await self._hang_up(bell)
                elif isinstance(result, CoordinationError):
                    bell.rings = None
                    self._unarmed.add(bell.number)
                    self._work.set()
                elif isinstance(result, BaseException):
                    raise result
                else:
                    self._armed(bell, result.stat.version)

    async def _hang_up(self, bell: _Bell) -> None:
        """A bell is missing: make it again, and arm it."""
        try:
            await self._session.ensure(layout.bell(bell.number))
        except CoordinationError as error:
            log.info("bell not made", partition=bell.number, error=str(error))
            await asyncio.sleep(RETRY_S)
        self._unarmed.add(bell.number)
        self._work.set()
        self._call(bell)

    def _armed(self, bell: _Bell, rings: int) -> None:
        """A bell is armed again: tell what it has rung meanwhile.

        A later ring may have been told already: its event can be quicker than we are.
        """
        if bell.rings is None or bell.rings < rings:
            bell.rings = rings
            self._call(bell)

    def _call(self, bell: _Bell) -> None:
        try:
            self._on_ring(bell.number)
        except Exception:
            log.exception("listener of a bell failed", partition=bell.number)
