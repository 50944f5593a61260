"""Processes that die, stand still, or are restarted."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from typing import ClassVar

import psutil

from tests.chaos.cluster.cluster import Cluster
from tests.chaos.cluster.role import Role, signal_all, still_alive
from tests.chaos.faults.fault import Fault, effects, moved, new_session
from tests.chaos.observer import View
from tests.chaos.records import now_s

_LOOK_S = 0.01
_DEATH_S = 20.0  # far more than a process below a dead supervisor may live


class RoleFault(Fault):
    """Hurts one role."""

    kind: ClassVar[str]
    role: Role

    def __init_subclass__(cls) -> None:
        # Some faults take two masters; with a third one gone there is nobody to take over.
        if getattr(cls, "kind", "") == "master":
            cls.hurts = frozenset({"masters"})

    async def begin(self, cluster: Cluster) -> None:
        self.role = cluster.pick(self.kind, self.dice)
        self.role.held = True
        self.target = self.role.name
        self.pid = self.role.pid
        await self.strike(cluster)

    async def strike(self, cluster: Cluster) -> None:
        """Do it to ``role``."""
        raise NotImplementedError


class KillMaster(RoleFault):
    name = "kill-master"
    costs_workers = False
    kind = "master"

    async def strike(self, cluster: Cluster) -> None:
        self.role.kill()

    async def hold(self, cluster: Cluster) -> None:
        await self.note_takeover(cluster, [self.pid])

    async def heal(self, cluster: Cluster) -> None:
        self.role.start()
        self.role.held = False

    def bit(self, after: View) -> tuple[bool, str]:
        count = moved(self.before, after)
        return count > 0, f"process {self.pid} killed; {effects(self.before, after)}"


class KillTwoMasters(KillMaster):
    """The first one dies, then one of those that are taking its partitions over."""

    name = "kill-master-and-rescuer"
    second: Role

    async def strike(self, cluster: Cluster) -> None:
        self.role.kill()
        await asyncio.sleep(self.dice.uniform(0.3, 1.5) * cluster.timeout_s)
        self.second = cluster.pick("master", self.dice)
        self.second.held = True
        self.second.kill()
        self.target += f", {self.second.name}"

    async def hold(self, cluster: Cluster) -> None:
        await self.note_takeover(cluster, [self.pid, self.second.pid])
        self.taken_over_s = None  # of two deaths: no figure for one

    async def heal(self, cluster: Cluster) -> None:
        self.second.start()
        self.second.held = False
        await super().heal(cluster)


class KillApi(RoleFault):
    name = "kill-api"
    costs_workers = False
    kind = "api"

    async def strike(self, cluster: Cluster) -> None:
        self.role.kill()

    async def heal(self, cluster: Cluster) -> None:
        self.role.start()
        self.role.held = False

    def bit(self, after: View) -> tuple[bool, str]:
        return self.role.pid != self.pid, f"process {self.pid} killed"


class KillAlertServer(KillApi):
    """Another one, or the next, sends again what it was sending."""

    name = "kill-alert-server"
    kind = "alert"


class PauseAlertServer(RoleFault):
    """It stands still until others have its jobs, and goes on with what it was about to write."""

    name = "pause-alert-server"
    costs_workers = False
    kind = "alert"

    async def strike(self, cluster: Cluster) -> None:
        self.role.signal(signal.SIGSTOP)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, 2.5)

    async def heal(self, cluster: Cluster) -> None:
        self.role.signal(signal.SIGCONT)
        self.role.held = False

    def bit(self, after: View) -> tuple[bool, str]:
        return self.role.running, f"process {self.pid} stood still"


class KillWorker(RoleFault):
    """The agent dies; its launcher must kill everything at once."""

    name = "kill-worker"
    kind = "worker"

    async def strike(self, cluster: Cluster) -> None:
        tasks, below = self.role.tasks(), self.role.tree()[1:]
        self.role.kill()
        self.ended = await ended(below, len(tasks))

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(0.0, 1.5))

    async def heal(self, cluster: Cluster) -> None:
        self.role.start()
        self.role.held = False

    def bit(self, after: View) -> tuple[bool, str]:
        return self.role.pid != self.pid, f"{self.ended}; {effects(self.before, after)}"


class _KillBelow(RoleFault):
    """Something between the agent and its tasks dies; the agent replaces it."""

    kind = "worker"

    def victims(self, supervisors: list[int]) -> list[int]:
        raise NotImplementedError

    async def strike(self, cluster: Cluster) -> None:
        tasks = self.role.tasks()
        self.killed = self.victims(self.role.supervisors())
        for pid in self.killed:
            with suppress(ProcessLookupError):  # it ended when the one before it was killed
                os.kill(pid, signal.SIGKILL)
        self.ended = await ended(tasks, len(tasks))

    async def heal(self, cluster: Cluster) -> None:
        self.role.held = False

    def bit(self, after: View) -> tuple[bool, str]:
        alive = [pid for pid in self.killed if pid in self.role.supervisors()]
        return bool(self.killed) and not alive, f"{self.ended}; {effects(self.before, after)}"


class KillLauncher(_KillBelow):
    name = "kill-launcher"

    def victims(self, supervisors: list[int]) -> list[int]:
        return supervisors[-1:]


class KillWatchdog(_KillBelow):
    name = "kill-watchdog"

    def victims(self, supervisors: list[int]) -> list[int]:
        return supervisors[:-1]


class KillSupervision(_KillBelow):
    """Launcher and watchdog die together: only the agent is left."""

    name = "kill-launcher-and-watchdog"

    def victims(self, supervisors: list[int]) -> list[int]:
        return supervisors


class _PauseMaster(RoleFault):
    costs_workers = False
    kind = "master"
    factor: ClassVar[float]  # of the session timeout

    async def strike(self, cluster: Cluster) -> None:
        self.role.signal(signal.SIGSTOP)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.factor)

    async def heal(self, cluster: Cluster) -> None:
        self.role.signal(signal.SIGCONT)
        self.role.held = False

    def bit(self, after: View) -> tuple[bool, str]:
        new = new_session(self.before, after, self.pid)
        said = f"session {'ended' if new else 'kept'}; {effects(self.before, after)}"
        return new or self.factor < 1, said


class PauseMasterBriefly(_PauseMaster):
    """Shorter than the session: nothing should move."""

    name = "pause-master-0.5T"
    factor = 0.5


class PauseMasterAlmost(_PauseMaster):
    """Nearly as long as the session lasts: it wakes up in doubt about everything."""

    name = "pause-master-0.9T"
    factor = 0.9


class PauseMaster(_PauseMaster):
    name = "pause-master-1.5T"
    factor = 1.5


class PauseMasterLong(_PauseMaster):
    """Long enough for a whole takeover: who wakes up is a zombie."""

    name = "pause-master-3T"
    factor = 3.0

    async def hold(self, cluster: Cluster) -> None:
        await asyncio.gather(super().hold(cluster), self.note_takeover(cluster, [self.pid]))


class PauseWorker(RoleFault):
    """Only the agent stands still: the launcher must kill by its own clock."""

    name = "pause-worker"
    kind = "worker"

    async def strike(self, cluster: Cluster) -> None:
        tasks = self.role.tasks()
        self.role.signal(signal.SIGSTOP)
        begun = now_s()
        self.ended = await ended(tasks, len(tasks))
        self._held_s = now_s() - begun

    async def hold(self, cluster: Cluster) -> None:
        await asyncio.sleep(max(0.0, 2 * cluster.timeout_s - self._held_s))

    async def heal(self, cluster: Cluster) -> None:
        self.role.signal(signal.SIGCONT)
        self.role.held = False

    def bit(self, after: View) -> tuple[bool, str]:
        new = new_session(self.before, after, self.pid)
        return new, f"{self.ended}; {effects(self.before, after)}"


class FreezeWorker(RoleFault):
    """A whole node stands still: agent, launcher and tasks. Nobody can kill what is frozen."""

    name = "freeze-worker"
    kind = "worker"

    async def strike(self, cluster: Cluster) -> None:
        # From the top: what is stopped forks no more.
        frozen: dict[int, psutil.Process] = {}
        while new := [p for p in self.role.tree() if p.pid not in frozen]:
            signal_all(new, signal.SIGSTOP)
            frozen |= {process.pid: process for process in new}
        self._frozen = list(frozen.values())
        self._tasks = [p for p in self.role.tasks() if p.pid in frozen]
        self.frozen_pids = frozenset(frozen)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.5, 2.5))

    async def heal(self, cluster: Cluster) -> None:
        signal_all(self._frozen, signal.SIGCONT)
        self.ended = await ended(self._tasks, len(self._tasks))
        self.role.held = False

    def bit(self, after: View) -> tuple[bool, str]:
        new = new_session(self.before, after, self.pid)
        return new, f"after the thaw: {self.ended}; {effects(self.before, after)}"


class _Restart(RoleFault):
    async def strike(self, cluster: Cluster) -> None:
        await asyncio.to_thread(self.role.stop)

    async def heal(self, cluster: Cluster) -> None:
        self.role.start()
        self.role.held = False

    def bit(self, after: View) -> tuple[bool, str]:
        return self.role.pid != self.pid, f"left in order; {effects(self.before, after)}"


class RestartMaster(_Restart):
    name = "restart-master"
    costs_workers = False
    kind = "master"


class RestartWorker(_Restart):
    name = "restart-worker"
    kind = "worker"


async def ended(processes: list[psutil.Process], tasks: int) -> str:
    """Wait until none of the processes is alive; return how long that took, in words."""
    begun = time.monotonic()
    while (left := still_alive(processes)) and time.monotonic() - begun < _DEATH_S:
        await asyncio.sleep(_LOOK_S)
    took = f"{time.monotonic() - begun:.2f} s"
    if left:
        return f"{len(left)} of {tasks} task processes ALIVE after {took}"
    return f"{tasks} task processes dead after {took}"
