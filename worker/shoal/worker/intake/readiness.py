"""Whether this worker can run more tasks: its disks, its room for processes, its masters."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from shoal.worker.home.disk import DiskGuard
from shoal.worker.intake.reachability import Reachability
from shoal.worker.intake.starts import StartGuard

SILENCE_PAUSE_S = 0.5  # between claims while masters do not answer: others go first


@dataclass
class Readiness:
    """What each guard of the worker says. ``stop``, once set: it takes nothing any longer."""

    disk: DiskGuard
    starts: StartGuard
    reachability: Reachability
    stop: asyncio.Event

    def subscribe(self, on_change: Callable[[], None]) -> None:
        """Have ``on_change`` called when one of them has changed its mind."""
        for guard in (self.disk, self.starts, self.reachability):
            guard.subscribe(on_change)

    @property
    def takes_tasks(self) -> bool:
        """Whether a task can be taken in right now."""
        return not (self.stop.is_set() or self.shortage)

    @property
    def shortage(self) -> str | None:
        """What this machine lacks for another task, in words; None: nothing."""
        return self.disk.shortage or self.starts.shortage

    @property
    def pause_reason(self) -> str | None:
        """Why the worker claims nothing now, in words; None: it claims."""
        return self.shortage or self.reachability.unreachable_reason

    async def wait(self) -> bool:
        """Return True if the worker can run another task; else return False after a while."""
        if await self.disk.is_short():
            await self.disk.enough()
        elif self.reachability.unreachable_reason:
            await self.reachability.changed(SILENCE_PAUSE_S)
        elif self.starts.shortage:
            await self.starts.possible()
        else:
            return True
        return False
