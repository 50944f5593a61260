"""Servers and machines that are neither up nor down."""

import resource
from contextlib import suppress
from typing import ClassVar

import psutil

from tests.chaos.cluster.cluster import Cluster
from tests.chaos.cluster.links import Mode
from tests.chaos.cluster.sandbox import FewProcesses, Refused
from tests.chaos.faults.fault import SERVER_ONLY, Fault, Skipped, effects, moved
from tests.chaos.observer import View

_DATABASE = frozenset({"database"})


class FailOverDatabase(Fault):
    """The database's host is gone without a sign; a new one has its address.

    Connections that were open fall silent for ever. New ones are served at once.
    """

    databases = SERVER_ONLY
    name = "silent-failover-database"
    hurts = _DATABASE
    costs_workers = False

    async def begin(self, cluster: Cluster) -> None:
        links = [role.database for role in cluster.roles if role.database is not None]
        self.target = "all connections to postgresql"
        self._silenced = sum(link.silence() for link in links)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(0.5, 1.5))

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._silenced} connections silent for ever"
        return self._silenced > 0, f"{said}; {effects(self.before, after)}"


class SlowDatabase(Fault):
    """Every answer of the database takes seconds, for one master or for everybody."""

    databases = SERVER_ONLY
    name = "slow-database"
    hurts = _DATABASE
    costs_workers = False

    async def begin(self, cluster: Cluster) -> None:
        masters = cluster.of("master")
        chosen = self.dice.choice([[cluster.pick("master", self.dice)], masters])
        self.target = ", ".join(role.name for role in chosen)
        self._links = [role.database for role in chosen if role.database is not None]
        self._by_s = self.dice.uniform(0.5, 3.0)
        for link in self._links:
            link.delay(self._by_s)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(2.0, 5.0))

    async def heal(self, cluster: Cluster) -> None:
        for link in self._links:
            link.delay(0.0)

    def bit(self, after: View) -> tuple[bool, str]:
        return True, f"{self._by_s:.1f} s for each answer; {effects(self.before, after)}"


class SilenceDatabase(Fault):
    """One master's connections to the database carry nothing, old and new, for long."""

    databases = SERVER_ONLY
    name = "master-without-database"
    hurts = frozenset({"masters", "database"})
    costs_workers = False

    async def begin(self, cluster: Cluster) -> None:
        self.role = cluster.pick("master", self.dice)
        self.target = self.role.name
        self._pid = self.role.pid
        assert self.role.database is not None
        self.role.database.set(self.dice.choice((Mode.FROZEN, Mode.REFUSING)))

    async def hold(self, cluster: Cluster) -> None:
        # Others have its partitions while it is cut off.
        await self.note_takeover(cluster, [self._pid])

    async def heal(self, cluster: Cluster) -> None:
        assert self.role.database is not None
        self.role.database.set(Mode.OPEN)

    def bit(self, after: View) -> tuple[bool, str]:
        count = moved(self.before, after)
        return count > 0, f"{count} partitions moved; {effects(self.before, after)}"


class ExhaustDescriptors(Fault):
    """A worker's processes may open no file more."""

    name = "no-descriptors"
    costs_workers: ClassVar[bool] = True

    async def begin(self, cluster: Cluster) -> None:
        self.role = cluster.pick("worker", self.dice)
        self.target = self.role.name
        self._before: dict[int, tuple[int, int]] = {}
        if (pid := self.role.launcher()) is not None:
            with suppress(psutil.Error, OSError):
                open_now = psutil.Process(pid).num_fds()
                limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (open_now, limits[1]))
                self._before[pid] = limits

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.0, 3.0))

    async def heal(self, cluster: Cluster) -> None:
        for pid, limits in self._before.items():
            with suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)

    def bit(self, after: View) -> tuple[bool, str]:
        return bool(self._before), f"{len(self._before)} processes; {effects(self.before, after)}"


class ExhaustProcesses(Fault):
    """A worker's launcher may start no process more."""

    name = "no-processes"
    _group: FewProcesses | None = None
    _refused = 0

    async def begin(self, cluster: Cluster) -> None:
        self.role = cluster.pick("worker", self.dice)
        if (launcher := self.role.launcher()) is None:
            raise Skipped(f"{self.role.name} has no launcher")
        try:
            self._group = FewProcesses(launcher)
        except Refused as error:
            raise Skipped(str(error)) from error
        self.target = self.role.name

    async def hold(self, cluster: Cluster) -> None:
        assert self._group is not None
        await self.for_timeouts(cluster, self.dice.uniform(1.0, 3.0))
        for _ in range(10):  # until somebody has wanted one
            if self._group.refused:
                return
            await self.for_timeouts(cluster, 0.5)

    async def heal(self, cluster: Cluster) -> None:
        if self._group is not None:
            self._refused = self._group.refused
            self._group.free()

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._refused} processes not started; {effects(self.before, after)}"
        return self._refused > 0, said


class ExhaustMemory(Fault):
    """A process gets no more memory than it has: it goes on, or ends and is replaced."""

    name = "no-memory"
    kinds: ClassVar[tuple[str, ...]] = ("master", "api", "worker")

    async def begin(self, cluster: Cluster) -> None:
        self.role = cluster.pick(self.dice.choice(self.kinds), self.dice)
        self.target = self.role.name
        self._pid, self._exits = self.role.pid, len(self.role.exits)
        self._log_start = self.role.log_size()
        self._limit = resource.prlimit(self._pid, resource.RLIMIT_AS)
        most = psutil.Process(self._pid).memory_info().vms
        resource.prlimit(self._pid, resource.RLIMIT_AS, (most, self._limit[1]))

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(2.0, 4.0))
        for _ in range(12):  # until it has wanted more
            if self._effects():
                return
            await self.for_timeouts(cluster, 0.5)

    async def heal(self, cluster: Cluster) -> None:
        with suppress(OSError):  # it has ended
            resource.prlimit(self._pid, resource.RLIMIT_AS, self._limit)

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._effects()} lines about it in its log, or ends of it"
        return self._effects() > 0, f"{said}; {effects(self.before, after)}"

    def _effects(self) -> int:
        words = (b"MemoryError", b"out of memory", b"can't start new thread")
        said = sum(self.role.said(each, self._log_start) for each in words)
        return said + len(self.role.exits) - self._exits
