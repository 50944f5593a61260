"""The contract of a master's services, and the loop that most of them share."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import structlog

from shoal.master.engine.engine import Engine
from shoal.master.engine.held_runs import Clock
from shoal.master.engine.listeners import Listener
from shoal.master.errors import PartitionNotOwned
from shoal.master.loops import ErrorBackoff, Wakeup
from shoal.master.settings import MasterSettings
from shoal.sql import Database
from shoal.sql.errors import Fenced, StaleRow

log = structlog.get_logger()

# Another master, or the next poll, gets over these: no reason to pause.
PASSING: tuple[type[Exception], ...] = (Fenced, PartitionNotOwned, StaleRow)


@dataclass(frozen=True)
class MasterContext:
    """What all services of a master work with."""

    database: Database
    engine: Engine
    clock: Clock
    partitions: int  # of the cluster
    settings: MasterSettings
    # Notifies the owners of partitions, this master's own services among them. A hint.
    notify_owners: Callable[[Iterable[int]], None]


class Service(Listener, ABC):
    """Sees to one thing for the partitions of a master.

    ``run`` is its life: it is stopped by cancelling it, at any point, so whatever it changes it
    changes in transactions. What wakes it arrives by the methods of ``Listener``.
    """

    name: ClassVar[str]  # for logs

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled. Raises what no retry gets over: it ends the master."""


class PeriodicService(Service):
    """A service that polls when it is notified, and regularly."""

    passing: ClassVar[tuple[type[Exception], ...]] = PASSING

    def __init__(self, interval_s: float, first_s: float = 0.0) -> None:
        """``first_s``: until the first regular poll, seconds."""
        self._wakeup = Wakeup(interval_s, first_s)

    async def run(self) -> None:
        backoff = ErrorBackoff(self.name)
        while True:
            is_regular = await self._wakeup.wait()
            began_s = time.monotonic()
            try:
                await self.poll(is_regular)
            except self.passing as error:
                log.warning("not done; the next poll repeats it", loop=self.name, error=str(error))
            except Exception as error:  # noqa: BLE001 - the next poll repeats it
                await backoff.failed(error)
            else:
                backoff.succeeded()
            if (pause_s := self.pause_s(time.monotonic() - began_s)) > 0:
                await asyncio.sleep(pause_s)

    @abstractmethod
    async def poll(self, is_regular: bool) -> None:
        """See to what may have changed: since the last poll, or (``is_regular``) at any time."""

    def pause_s(self, took_s: float) -> float:
        """Return how long to pause after a poll of ``took_s`` seconds, whatever notifies."""
        return 0.0
