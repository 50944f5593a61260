"""Sessions that end, cut connections, lost answers, and names that do not resolve."""

import asyncio
import re
from collections.abc import Sequence
from typing import ClassVar

from tests.chaos.cluster.cluster import Cluster
from tests.chaos.cluster.links import Link, Mode
from tests.chaos.cluster.names import DATABASE, ZOOKEEPER
from tests.chaos.cluster.role import Role
from tests.chaos.faults.fault import SERVER_ONLY, Fault, Skipped, effects, moved, new_session
from tests.chaos.observer import View

_WAIT_S = 20.0  # for requests whose answers shall be lost
_LOOK_S = 0.1
_ASIDE_S = 2.0  # for clients to try the addresses that they have resolved before


class LinkFault(Fault):
    """Hurts one role's connections, not the role."""

    kind: ClassVar[str]
    role: Role

    def __init_subclass__(cls) -> None:
        if getattr(cls, "kind", "") == "master":
            cls.hurts = frozenset({"masters"})

    async def begin(self, cluster: Cluster) -> None:
        self.role = cluster.pick(self.kind, self.dice)
        self.target = self.role.name
        self.pid = self.role.pid
        self.exits = len(self.role.exits)
        self._log_start = self.role.log_size()
        await self.strike(cluster)

    async def strike(self, cluster: Cluster) -> None:
        """Do it to the connections of ``role``."""
        raise NotImplementedError

    def bit(self, after: View) -> tuple[bool, str]:
        new = new_session(self.before, after, self.pid)
        said = "new session" if new else "session kept"
        if len(self.role.exits) > self.exits:
            new, said = True, "the role ended and was restarted"
        elif gave_up := self.role.said(b'"partitions lost"', self._log_start):
            new, said = True, f"{said}, partitions given up in doubt {gave_up} times"
        bit = new or moved(self.before, after) > 0 or after.lost > self.before.lost
        return bit, f"{said}; {effects(self.before, after)}"


class _Expire(LinkFault):
    """The session ends at the servers, as if they had heard nothing for its timeout."""

    async def strike(self, cluster: Cluster) -> None:
        await cluster.ensemble.expire(self.before.members[self.pid].session)


class ExpireMaster(_Expire):
    name = "expire-session-master"
    costs_workers = False
    kind = "master"


class ExpireWorker(_Expire):
    name = "expire-session-worker"
    kind = "worker"


class _Cut(LinkFault):
    mode: ClassVar[Mode] = Mode.FROZEN

    async def strike(self, cluster: Cluster) -> None:
        self.role.zookeeper.set(self.mode)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.5, 3.0))

    async def heal(self, cluster: Cluster) -> None:
        self.role.zookeeper.set(Mode.OPEN)


class CutMaster(_Cut):
    """The master reaches workers and the database, not ZooKeeper."""

    name = "cut-zookeeper-master"
    costs_workers = False
    kind = "master"


class CutWorker(_Cut):
    name = "cut-zookeeper-worker"
    kind = "worker"


class LoseRepliesToMaster(_Cut):
    """One way only: what the master writes arrives, no answer does."""

    name = "cut-zookeeper-replies"
    costs_workers = False
    kind = "master"
    mode = Mode.LOSING_REPLIES


class LoseRequestsOfWorker(_Cut):
    """One way only: the worker hears ZooKeeper, but is not heard."""

    name = "cut-zookeeper-requests"
    kind = "worker"
    mode = Mode.LOSING_REQUESTS


class ExpireWorkerInTheDark(_Cut):
    """The session ends at the servers before its time, while the worker cannot hear of it.

    Servers do that when an operator ends a session. Only the worker knows that its tasks run.
    """

    name = "expire-session-in-the-dark"
    kind = "worker"

    async def strike(self, cluster: Cluster) -> None:
        await super().strike(cluster)
        await cluster.ensemble.expire(self.before.members[self.pid].session)


class _Flap(_Cut):
    """The connection comes and goes, each time for about one session timeout."""

    async def hold(self, cluster: Cluster) -> None:
        for _ in range(3):
            await self.for_timeouts(cluster, self.dice.uniform(0.7, 1.3))
            self.role.zookeeper.set(Mode.OPEN)
            await self.for_timeouts(cluster, self.dice.uniform(0.1, 0.6))
            self.role.zookeeper.set(Mode.FROZEN)

    def bit(self, after: View) -> tuple[bool, str]:
        new, said = super().bit(after)
        return True, said if new else f"cut three times; {said}"


class FlapMaster(_Flap):
    name = "flap-zookeeper-master"
    costs_workers = False
    kind = "master"


class FlapWorker(_Flap):
    name = "flap-zookeeper-worker"
    kind = "worker"


class CutMasterFromDatabase(LinkFault):
    """The master keeps its session and its partitions, but can store nothing."""

    databases = SERVER_ONLY
    name = "cut-database"
    costs_workers = False
    kind = "master"
    modes = (Mode.FROZEN, Mode.REFUSING)

    async def strike(self, cluster: Cluster) -> None:
        self._mode = self.dice.choice(self.modes)
        self._link().set(self._mode)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.5, 4.0))

    async def heal(self, cluster: Cluster) -> None:
        self._link().set(Mode.OPEN)

    def _link(self) -> Link:
        assert self.role.database is not None
        return self.role.database

    def bit(self, after: View) -> tuple[bool, str]:
        return True, f"{self._mode.name.lower()}; {effects(self.before, after)}"


class _Swallow(LinkFault):
    """Requests with ``pattern`` arrive, their answers do not, and the connection breaks."""

    pattern: ClassVar[bytes | re.Pattern[bytes]]
    times = 3
    away: ClassVar[float] = 0.0  # session timeouts until there is another connection

    async def strike(self, cluster: Cluster) -> None:
        self._before = self.link.swallowed
        self.link.swallow(self.pattern, self.times, away_s=self.away * cluster.timeout_s)

    @property
    def link(self) -> Link:
        return self.role.zookeeper

    @property
    def swallowed(self) -> int:
        return self.link.swallowed - self._before

    async def hold(self, cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _WAIT_S
        while self.swallowed < self.times and loop.time() < deadline:
            await asyncio.sleep(_LOOK_S)

    async def heal(self, cluster: Cluster) -> None:
        self.link.swallow(b"", 0)

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self.swallowed} answers swallowed; {effects(self.before, after)}"
        return self.swallowed > 0, said


class SwallowClaim(_Swallow):
    """Claims, and their releases."""

    name = "swallow-claim"
    kind = "worker"
    pattern = b"/claims/"


class SwallowRequeue(_Swallow):
    """Claims that are requeued: while the worker is away, another one claims the same tasks."""

    name = "swallow-requeue"
    kind = "worker"
    # A multi that deletes a claim (of any version) and creates an entry behind it.
    pattern = re.compile(
        rb"/claims/[0-9a-f]{2}/[0-9]+\xff{4}\0\0\0\x0f\0\xff{4}.{4}/queue/", re.DOTALL
    )
    away = 0.4


class SwallowDispatch(_Swallow):
    """Entries that are put into the queue."""

    name = "swallow-dispatch"
    costs_workers = False
    kind = "master"
    pattern = b"/queue/"


class SwallowCommit(_Swallow):
    """Commits: the master cannot know whether they happened."""

    databases = SERVER_ONLY
    name = "swallow-commit"
    costs_workers = False
    kind = "master"
    pattern = b"COMMIT"
    times = 5

    @property
    def link(self) -> Link:
        assert self.role.database is not None
        return self.role.database


class _ForgetNames(Fault):
    """Connections to a service break, and its name is unknown to all roles who would open new ones.

    Connections that are open need no name, so without the first the second would show nothing.
    """

    service: ClassVar[str]
    alone: ClassVar[bool] = True  # no role reaches the service
    _connected = -1

    def links(self, cluster: Cluster) -> Sequence[Link]:
        """Return the roles' ways to the service."""
        raise NotImplementedError

    async def begin(self, cluster: Cluster) -> None:
        if cluster.names is None:
            raise Skipped(cluster.names_refused)
        self._names = cluster.names
        self.target = f"{self._names.forget(self.service)} names of {self.service}"
        for mode in (Mode.REFUSING, Mode.OPEN):
            for link in self.links(cluster):
                link.set(mode)
            if mode is Mode.REFUSING:
                await asyncio.sleep(_ASIDE_S)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(0.5, 5.0))
        links = await asyncio.to_thread(self.links, cluster)
        self._connected = sum(link.carries_any for link in links)

    async def heal(self, cluster: Cluster) -> None:
        self._names.remember()

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._connected} roles found it all the same; {effects(self.before, after)}"
        return self._connected == 0, said


class ForgetDatabase(_ForgetNames):
    name = "names-of-database"
    hurts = frozenset({"database"})
    databases = SERVER_ONLY
    costs_workers = False
    service = DATABASE

    def links(self, cluster: Cluster) -> Sequence[Link]:
        return [role.database for role in cluster.roles if role.database is not None]


class ForgetZooKeeper(_ForgetNames):
    name = "names-of-zookeeper"
    hurts = frozenset({"zookeeper"})
    service = ZOOKEEPER

    def links(self, cluster: Cluster) -> Sequence[Link]:
        return [role.zookeeper for role in cluster.roles]
