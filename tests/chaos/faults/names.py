"""Names of servers that are not resolved for a while, as when the service of names is away."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from tests.chaos.cluster.cluster import Cluster
from tests.chaos.cluster.links import Link, Mode
from tests.chaos.cluster.names import DATABASE, ZOOKEEPER
from tests.chaos.faults.fault import SERVER_ONLY, Fault, Skipped, effects
from tests.chaos.observer import View

_ASIDE_S = 2.0  # for clients to try the addresses that they have resolved before


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
