"""Wall clocks that jump, on one node or on all, there and back."""

import asyncio
import time
from typing import ClassVar

from tests.chaos.cluster.cluster import Cluster
from tests.chaos.cluster.machine import Machine
from tests.chaos.cluster.queries import fetch
from tests.chaos.cluster.role import Role
from tests.chaos.faults.fault import SERVER_ONLY, Fault, Skipped, moved
from tests.chaos.observer import View

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
    """The agent's, whose environment the launcher does not get: no master may believe it."""

    name = "clock-jump-worker"
    kinds = ("worker",)


class JumpOfApi(_Jump):
    name = "clock-jump-api"
    kinds = ("api",)


class JumpOfEverybody(_Jump):
    """All roles' clocks jump together; those of the database and of ZooKeeper do not."""

    name = "clock-jump-everybody"
    hurts = frozenset({"masters"})
    alone = True
    kinds = ("master", "worker", "api", "alert")

    def choose(self, cluster: Cluster) -> list[Role]:
        return [role for role in cluster.roles if role.kind in self.kinds]


class _JumpOfServer(Fault):
    """The clock of one server shows another time for a while; no other clock does."""

    costs_workers = False
    _shown_s = 0.0  # how far it was off, by its own word

    async def choose(self, cluster: Cluster) -> Machine:
        """Return the server's machine. Sets ``target``. Raises Skipped."""
        raise NotImplementedError

    async def shown(self, cluster: Cluster) -> float:
        """Return what the server says it is, in seconds since 1970."""
        raise NotImplementedError

    async def begin(self, cluster: Cluster) -> None:
        machine = await self.choose(cluster)
        if machine.clock is None:
            raise Skipped(machine.libraries_refused)
        self._clock, self._by_s = machine.clock, self.dice.choice(_JUMPS_S)
        self._clock.shift(self._by_s)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.0, 8.0))
        self._shown_s = await self.shown(cluster) - time.time()

    async def heal(self, cluster: Cluster) -> None:
        self._clock.shift(0.0)

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._shown_s:+.0f} s, {moved(self.before, after)} partitions moved"
        return abs(self._shown_s - self._by_s) < abs(self._by_s) / 2, said


class JumpOfDatabase(_JumpOfServer):
    name = "clock-jump-database"
    hurts = frozenset({"database"})
    databases = SERVER_ONLY

    async def choose(self, cluster: Cluster) -> Machine:
        self.target = "postgresql"
        return cluster.postgres.machine

    async def shown(self, cluster: Cluster) -> float:
        [(now,)] = await fetch(cluster.database.url, "SELECT clock_timestamp()")
        return float(now.timestamp())


class JumpOfLeader(_JumpOfServer):
    """The ensemble stamps every znode with its leader's clock."""

    name = "clock-jump-zookeeper"
    hurts = frozenset({"zookeeper"})

    async def choose(self, cluster: Cluster) -> Machine:
        leader = await asyncio.to_thread(cluster.ensemble.leader)
        if leader is None:
            raise Skipped("the ensemble has no leader at this moment")
        self.target = f"the leader, zookeeper-{leader.number}"
        return leader.machine

    async def shown(self, cluster: Cluster) -> float:
        return await cluster.observer.stamped()
