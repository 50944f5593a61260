"""The contract of a master's services, the loop that most of them share, and periodic jobs."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import ClassVar

import structlog
from apscheduler.triggers.base import BaseTrigger

from shoal.core.errors import ShoalError
from shoal.master.engine.engine import Engine
from shoal.master.engine.held_runs import Clock
from shoal.master.engine.listeners import Listener
from shoal.master.errors import PartitionNotOwned
from shoal.master.loops import ErrorBackoff, Wakeup, is_shortage
from shoal.master.settings import MasterSettings, UpkeepTimes
from shoal.runtime.periodic_jobs import PeriodicJobs, Work
from shoal.runtime.storage import StorageError
from shoal.sql import Database
from shoal.sql.errors import Fenced, StaleRow

log = structlog.get_logger()

# Another master, or the next poll, gets over these: no reason to pause.
PASSING: tuple[type[Exception], ...] = (Fenced, PartitionNotOwned, StaleRow)


def is_passing(error: Exception) -> bool:
    """Whether another try may get over it, here or at another master."""
    if isinstance(error, ShoalError) and error.retriable:
        return True
    return isinstance(error, (*PASSING, OSError)) or is_shortage(error)


class UpkeepFailed(ShoalError):
    """A job of upkeep has failed; its next regular run repeats it."""


class UpkeepJobs(PeriodicJobs):
    """The periodic jobs of a master: what is due by time alone, and not by notifications.

    A job is repeated after an error, with pauses that grow: no error ends the master that another
    try may get over. After those in ``_NEXT_TIME`` its next regular run repeats it.
    """

    _NEXT_TIME = (*PASSING, UpkeepFailed, StorageError)

    def _add(self, name: str, work: Work, trigger: BaseTrigger, first: datetime | None) -> None:
        super()._add(name, partial(self._until_done, name, work), trigger, first)

    async def _until_done(self, name: str, work: Work) -> None:
        backoff = ErrorBackoff(name)
        while not await _attempt(name, work(), self._NEXT_TIME, backoff):
            pass


async def _attempt(
    name: str, work: Awaitable[None], passing: tuple[type[Exception], ...], backoff: ErrorBackoff
) -> bool:
    """Do the work of one turn. False, after a pause: it failed, and another try may succeed."""
    try:
        await work
    except passing as error:
        log.warning("not done; the next poll repeats it", loop=name, error=str(error))
    except Exception as error:  # noqa: BLE001 - raised again if no retry gets over it
        await backoff.failed(error)
        return False
    else:
        backoff.succeeded()
    return True


@dataclass(frozen=True)
class MasterContext:
    """What all services of a master work with."""

    database: Database
    engine: Engine
    clock: Clock
    partitions: int  # of the cluster
    settings: MasterSettings
    jobs: UpkeepJobs
    # Notifies the owners of partitions, this master's own services among them. A hint.
    notify_owners: Callable[[Iterable[int]], None]
    upkeep: UpkeepTimes = field(default_factory=UpkeepTimes)
    # Whether a worker group has workers.
    is_served: Callable[[str], bool] = lambda _group: True


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
            await _attempt(self.name, self.poll(is_regular), self.passing, backoff)
            if (pause_s := self.pause_s(time.monotonic() - began_s)) > 0:
                await asyncio.sleep(pause_s)

    @abstractmethod
    async def poll(self, is_regular: bool) -> None:
        """See to what may have changed: since the last poll, or (``is_regular``) at any time."""

    def pause_s(self, took_s: float) -> float:
        """Return how long to pause after a poll of ``took_s`` seconds, whatever notifies."""
        return 0.0
