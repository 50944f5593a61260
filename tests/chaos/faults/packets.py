"""Packets between hosts that vanish, one way or both, and connections that are refused.

Nobody is told: connections that were open stay so, and what they carry is sent again and again.
"""

import asyncio
import random
from contextlib import suppress
from typing import ClassVar

from shoal.coordination.cluster import layout
from tests.chaos.cluster.cluster import Cluster
from tests.chaos.cluster.ensemble import EnsembleMember
from tests.chaos.cluster.hosts import Cut, Host
from tests.chaos.cluster.role import Role
from tests.chaos.faults.fault import SERVER_ONLY, Skipped
from tests.chaos.faults.network import LinkFault
from tests.chaos.observer import NotVisible, View
from tests.chaos.workload.rest import Api, Refused

_WAIT_S = 30.0  # for something that can be struck
_LOOK_S = 0.1
_INBOUND = "ct direction original"  # of connections that others have opened to this host


class _PacketFault(LinkFault):
    """``cut`` says what shall vanish."""

    longest: ClassVar[float] = 4.0  # session timeouts

    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        self.cuts: list[Cut] = []
        self._heard: list[Cut] = []  # they only count

    async def strike(self, cluster: Cluster) -> None:
        if cluster.hosts.refused:
            raise Skipped(cluster.hosts.refused)
        await self.cut(cluster)

    async def cut(self, cluster: Cluster) -> None:
        """Begin it: all that is cut is in ``cuts``."""
        raise NotImplementedError

    def lose(self, host: Host, *rules: str) -> None:
        """Let packets on their way into ``host`` vanish."""
        self.cuts.append(host.lose(*rules))

    def part(self, one: Host, other: Host) -> None:
        """Let nothing pass between two hosts."""
        self.lose(one, f"ip saddr {other.address}")
        self.lose(other, f"ip saddr {one.address}")

    def count(self, host: Host, *rules: str) -> None:
        """Count packets that still arrive, as evidence."""
        self._heard.append(host.count(*rules))

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.0, self.longest))
        for _ in range(8):  # until there was something to lose
            if self.vanished:
                return
            await self.for_timeouts(cluster, 0.5)

    async def heal(self, cluster: Cluster) -> None:
        for cut in [*self.cuts, *self._heard]:
            cut.heal()

    @property
    def vanished(self) -> int:
        """How many packets have been cut off."""
        return sum(cut.packets for cut in self.cuts)

    def bit(self, after: View) -> tuple[bool, str]:
        _, said = super().bit(after)
        heard = sum(cut.packets for cut in self._heard)
        back = f", {heard} came the other way" if self._heard else ""
        return self.vanished > 0, f"{self.vanished} packets cut off{back}; {said}"


# -- one way ----------------------------------------------------------------------------------


class LoseWorkerToMaster(_PacketFault):
    """What the worker sends to one master vanishes; what the master sends arrives."""

    name = "one-way-worker-to-master"
    kind = "worker"

    async def cut(self, cluster: Cluster) -> None:
        other = cluster.pick("master", self.dice)
        self.target = f"{self.role.name} to {other.name}"
        self.lose(other.host, f"ip saddr {self.role.host.address}")
        self.count(self.role.host, f"ip saddr {other.host.address}")


class LoseMasterToWorker(_PacketFault):
    """The other way round: requests arrive and are carried out, no answer comes."""

    name = "one-way-master-to-worker"
    kind = "worker"

    async def cut(self, cluster: Cluster) -> None:
        other = cluster.pick("master", self.dice)
        self.target = f"{other.name} to {self.role.name}"
        self.lose(self.role.host, f"ip saddr {other.host.address}")
        self.count(other.host, f"ip saddr {self.role.host.address}")


class _OneWayToServer(_PacketFault):
    """Between a role and a server that all share, over all connections of the role."""

    kind = "master"
    kinds: ClassVar[tuple[str, ...]] = ("master", "worker")
    to_server: ClassVar[bool]
    server: ClassVar[str] = "ZooKeeper"

    async def begin(self, cluster: Cluster) -> None:
        # Not the class's: which one it is, is left to chance.
        self.kind = self.dice.choice(self.kinds)  # type: ignore[misc]
        await super().begin(cluster)

    def ports(self) -> list[int]:
        """Return the server's, as the role knows them."""
        return self.role.zookeeper.ports

    async def cut(self, cluster: Cluster) -> None:
        centre, host = cluster.hosts.centre, self.role.host
        ports = ", ".join(map(str, self.ports()))
        there = (centre, f"ip saddr {host.address} tcp dport {{ {ports} }}")
        back = (host, f"ip saddr {centre.address} tcp sport {{ {ports} }}")
        if self.to_server:
            self.target = f"{self.role.name} to {self.server}"
            self.lose(*there)
            self.count(*back)
        else:
            self.target = f"{self.server} to {self.role.name}"
            self.lose(*back)
            self.count(*there)


class LoseToZooKeeper(_OneWayToServer):
    """The role hears ZooKeeper and is not heard."""

    name = "one-way-to-zookeeper"
    to_server = True


class LoseFromZooKeeper(_OneWayToServer):
    """ZooKeeper does what the role asks for and sees it live; the role hears nothing."""

    name = "one-way-from-zookeeper"
    to_server = False


class LoseFromDatabase(_OneWayToServer):
    """The database commits; the master does not hear of it."""

    databases = SERVER_ONLY
    name = "one-way-from-database"
    kinds = ("master",)
    costs_workers = False
    server = "the database"
    to_server = False

    def ports(self) -> list[int]:
        assert self.role.database is not None
        return self.role.database.ports


# -- one role and another ---------------------------------------------------------------------


class PartWorkerAndMasters(_PacketFault):
    """A worker and all masters hear nothing of one another; ZooKeeper hears both."""

    name = "cut-worker-and-masters"
    kind = "worker"

    async def cut(self, cluster: Cluster) -> None:
        for master in cluster.of("master"):
            self.part(self.role.host, master.host)


class PartMasterAndWorker(_PacketFault):
    """One master and one worker hear nothing of one another; both reach everybody else."""

    name = "cut-master-and-worker"
    kind = "worker"

    async def cut(self, cluster: Cluster) -> None:
        other = cluster.pick("master", self.dice)
        self.target = f"{other.name} and {self.role.name}"
        self.part(self.role.host, other.host)


class _PartHostAndServer(_PacketFault):
    """One host and one server of ZooKeeper's three, the one that it is connected to."""

    kind = "master"
    mode: ClassVar[str]

    async def cut(self, cluster: Cluster) -> None:
        """Take the first role, in a random order, that uses such a server."""
        members = cluster.ensemble.members
        chosen = {m.number for m in members if await asyncio.to_thread(_mode, m) == self.mode}
        roles = [*cluster.of("master"), *cluster.of("worker")]
        for role in self.dice.sample(roles, len(roles)):
            used = [n for n in chosen if role.zookeeper.carries(n - 1)]
            if used:
                self._cut(cluster, role, role.zookeeper.ports[used[0] - 1])
                return
        raise Skipped(f"no role is connected to a {self.mode}")

    def _cut(self, cluster: Cluster, role: Role, port: int) -> None:
        self.role, self.pid = role, role.pid
        self.target = f"{role.name} and a {self.mode}"
        centre = cluster.hosts.centre
        self.lose(centre, f"ip saddr {role.host.address} tcp dport {port}")
        self.lose(role.host, f"ip saddr {centre.address} tcp sport {port}")


class PartHostAndLeader(_PartHostAndServer):
    name = "cut-host-and-leader"
    mode = "leader"


class PartHostAndFollower(_PartHostAndServer):
    name = "cut-host-and-follower"
    mode = "follower"


def _mode(member: EnsembleMember) -> str:
    return member.mode


# -- nobody reaches a server ------------------------------------------------------------------


class CutMasterFromWorkers(_PacketFault):
    """It owns its partitions and reaches everybody; no worker can fetch from it or report to it."""

    name = "cut-master-from-workers"
    costs_workers = False
    kind = "master"

    async def cut(self, cluster: Cluster) -> None:
        self.lose(self.role.host, _INBOUND)


class CutWorkerFromMasters(_PacketFault):
    """No master can tell it to kill, nobody can read its logs; it reaches everybody."""

    name = "cut-worker-from-masters"
    costs_workers = False
    kind = "worker"

    async def cut(self, cluster: Cluster) -> None:
        self.lose(self.role.host, _INBOUND)

    async def hold(self, cluster: Cluster) -> None:
        await self._stop_something(cluster)
        await super().hold(cluster)

    async def _stop_something(self, cluster: Cluster) -> None:
        """Stop a run that has a task there, which the worker has to be told."""
        for _ in range(20):
            with suppress(NotVisible, Refused):  # hurt by another fault; over meanwhile
                if found := await cluster.observer.running_on(self.role.name):
                    body = {"type": "STOP", "instance_id": self.dice.choice(found)}
                    key = f"{self.name}-{self.dice.getrandbits(64):x}"
                    async with Api(cluster.url, cluster.token) as api, asyncio.timeout(_WAIT_S):
                        await api.command(key, body)
                    return
            await self.for_timeouts(cluster, 0.2)


class RefuseWorkerToMasters(CutWorkerFromMasters):
    """As if nobody listened on its port: connections to it break, and new ones are refused."""

    name = "refuse-worker-from-masters"

    async def cut(self, cluster: Cluster) -> None:
        self.cuts.append(self.role.host.refuse(f"meta l4proto tcp {_INBOUND}"))


class DeleteClaimsOutOfReach(CutWorkerFromMasters):
    """Somebody deletes the claims of a worker that no master can ask what it runs."""

    name = "delete-claims-out-of-reach"
    costs_workers = True
    hurts = frozenset({"masters", "znodes"})
    _deleted = 0

    async def cut(self, cluster: Cluster) -> None:
        buckets = [layout.claim_bucket(number) for number in range(layout.CLAIM_BUCKETS)]
        session = self.before.members[self.pid].session
        deadline = asyncio.get_running_loop().time() + _WAIT_S
        claims: list[str] = []
        while not claims:
            if asyncio.get_running_loop().time() > deadline:
                raise Skipped(f"{self.role.name} claims nothing")
            await asyncio.sleep(_LOOK_S)
            with suppress(NotVisible):  # hurt by another fault; over meanwhile
                claims = await cluster.observer.held_by(session, buckets)
        await super().cut(cluster)
        self._deleted = await cluster.observer.delete(claims)

    def bit(self, after: View) -> tuple[bool, str]:
        _, said = super().bit(after)
        return self._deleted > 0, f"{self._deleted} claims deleted; {said}"
