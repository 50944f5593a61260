"""Wall clocks that jump, on one node or on all, there and back."""

import asyncio
from typing import ClassVar

from tests.chaos.cluster import START_S, Cluster
from tests.chaos.faults.fault import Fault, Skipped, effects, moved
from tests.chaos.faults.processes import RoleFault, ended
from tests.chaos.observer import View
from tests.chaos.role import Role

_JUMPS_S = (3600.0, -3600.0, 30.0, -30.0, 86400.0)


class _Jump(Fault):
    """The clock of some roles shows another time for a while; no other clock does."""

    kinds: ClassVar[tuple[str, ...]]
    costs_workers = False

    def choose(self, cluster: Cluster) -> list[Role]:
        """Return the roles whose clocks jump."""
        return [cluster.pick(kind, self.dice) for kind in self.kinds]

    async def begin(self, cluster: Cluster) -> None:
        if cluster.clocks is None:
            raise Skipped(cluster.clocks_refused)
        self._roles = self.choose(cluster)
        self.target = ", ".join(role.name for role in self._roles)
        self._by_s = self.dice.choice(_JUMPS_S)
        self._shift(cluster, self._by_s)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.0, 4.0))

    async def heal(self, cluster: Cluster) -> None:
        self._shift(cluster, 0.0)

    def bit(self, after: View) -> tuple[bool, str]:
        # That nothing moves is the point: what must not follow is for the checker to find.
        return True, f"{self._by_s:+g} s, {moved(self.before, after)} partitions moved"

    def _shift(self, cluster: Cluster, by_s: float) -> None:
        assert cluster.clocks is not None
        for role in self._roles:
            for process in role.tree():
                cluster.clocks.shift(by_s, process.pid)


class JumpOfMaster(_Jump):
    name = "clock-jump-master"
    hurts = frozenset({"masters"})
    kinds = ("master",)


class JumpOfWorker(_Jump):
    """The worker's and its launcher's: a master must not believe what they say."""

    name = "clock-jump-worker"
    kinds = ("worker",)


class JumpOfApi(_Jump):
    name = "clock-jump-api"
    kinds = ("api",)


class SuspendWorker(RoleFault):
    """Time since boot jumps, all else goes on: so a worker sees that its machine was suspended.

    Its launcher must kill what ran, for the session may be over and the tasks be somebody else's.
    The clock cannot go back, so the worker is restarted in the end.
    """

    name = "suspended-worker"
    kind = "worker"

    async def strike(self, cluster: Cluster) -> None:
        if cluster.clocks is None:
            self.role.held = False
            raise Skipped(cluster.clocks_refused)
        tasks = self.role.tasks()
        self._count = len(tasks)
        by_s = self.dice.uniform(1.0, 3.0) * cluster.timeout_s
        for pid in [self.role.pid, *self.role.supervisors()]:
            cluster.clocks.shift_boot(by_s, pid)
        self._ended = await ended(tasks, len(tasks))
        self.target += f" by {by_s:.1f} s"

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(0.5, 2.0))

    async def heal(self, cluster: Cluster) -> None:
        if cluster.clocks is None:
            return
        await asyncio.to_thread(self.role.stop)
        self.role.start()
        self.role.held = False
        # How long a process takes to start is the machine's figure, not the cluster's.
        await cluster.until_registered(self.role, START_S)

    def bit(self, after: View) -> tuple[bool, str]:
        lost = after.lost > self.before.lost
        return self._count > 0 and lost, f"{self._ended}; {effects(self.before, after)}"
