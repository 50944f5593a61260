"""ZooKeeper and PostgreSQL crash, and come back with their data."""

import asyncio
import signal
from collections.abc import Awaitable, Callable

from tests.chaos.cluster.cluster import Cluster
from tests.chaos.cluster.role import signal_all
from tests.chaos.faults.fault import SERVER_ONLY, Fault, Skipped, effects, moved
from tests.chaos.observer import View

_ZOOKEEPER = frozenset({"zookeeper"})
_DATABASE = frozenset({"database"})


class _ZooKeeperFault(Fault):
    hurts = _ZOOKEEPER
    gap_s = 0.0  # until ZooKeeper took a write again

    async def heal(self, cluster: Cluster) -> None:
        await cluster.ensemble.start_all()

    def bit(self, after: View) -> tuple[bool, str]:
        return True, f"writes again after {self.gap_s:.2f} s; {effects(self.before, after)}"


class KillZooKeeperLeader(_ZooKeeperFault):
    name = "kill-zookeeper-leader"

    async def begin(self, cluster: Cluster) -> None:
        leader = await asyncio.to_thread(cluster.ensemble.leader)
        if leader is None:
            raise Skipped("the ensemble has no leader at this moment")
        self.target = f"zookeeper-{leader.number}"
        leader.kill()
        self.gap_s = await cluster.observer.writes()


class KillZooKeeperFollower(_ZooKeeperFault):
    name = "kill-zookeeper-follower"

    async def begin(self, cluster: Cluster) -> None:
        followers = await asyncio.to_thread(cluster.ensemble.followers)
        follower = self.dice.choice(followers)
        self.target = f"zookeeper-{follower.number}"
        follower.kill()
        self.gap_s = await cluster.observer.writes()


class RollZooKeeper(_ZooKeeperFault):
    """Every server is restarted, one after the other, the next when all serve again."""

    name = "roll-zookeeper"

    async def begin(self, cluster: Cluster) -> None:
        self.target = "all servers"
        for member in self.dice.sample(cluster.ensemble.members, len(cluster.ensemble.members)):
            member.kill()
            self.gap_s = max(self.gap_s, await cluster.observer.writes())
            await cluster.ensemble.start_all()


class LoseQuorum(_ZooKeeperFault):
    """Two of three servers are gone for five session timeouts."""

    name = "quorum-loss"

    async def begin(self, cluster: Cluster) -> None:
        victims = self.dice.sample(cluster.ensemble.members, 2)
        self.target = ", ".join(f"zookeeper-{member.number}" for member in victims)
        for member in victims:
            member.kill()

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, 5)

    async def heal(self, cluster: Cluster) -> None:
        await super().heal(cluster)
        self.gap_s = await cluster.observer.writes()


class _DatabaseFault(Fault):
    databases = SERVER_ONLY
    hurts = _DATABASE
    costs_workers = False

    async def begin(self, cluster: Cluster) -> None:
        self.target = "postgresql"
        await asyncio.to_thread(cluster.postgres.crash)

    async def heal(self, cluster: Cluster) -> None:
        await cluster.postgres.start()

    def bit(self, after: View) -> tuple[bool, str]:
        return True, effects(self.before, after)


class RestartDatabase(_DatabaseFault):
    name = "restart-postgresql"


class FlapDatabase(_DatabaseFault):
    """Several crashes, each a moment after the recovery from the one before."""

    name = "restart-postgresql-again-and-again"

    async def hold(self, cluster: Cluster) -> None:
        for _ in range(3):
            await cluster.postgres.start()
            await asyncio.sleep(self.dice.uniform(0.5, 4.0))
            await asyncio.to_thread(cluster.postgres.crash)


class StopDatabase(_DatabaseFault):
    """The database is away for 20 to 30 s; results must wait for it."""

    name = "postgresql-down"

    async def hold(self, cluster: Cluster) -> None:
        await asyncio.sleep(self.dice.uniform(20.0, 30.0))


class PowerCut(Fault):
    """Everything dies at the same moment, and comes back in any order."""

    name = "power-cut"
    alone = True

    async def begin(self, cluster: Cluster) -> None:
        self.target = "everything"
        for role in cluster.roles:
            role.held = True
            signal_all(role.tree(), signal.SIGKILL)
        for member in cluster.ensemble.members:
            member.kill()
        await asyncio.to_thread(cluster.database.crash)
        for role in cluster.roles:
            role.kill()

    async def heal(self, cluster: Cluster) -> None:
        starts: list[Callable[[], Awaitable[None] | None]] = [cluster.database.start]
        starts += [member.start for member in cluster.ensemble.members]
        starts += [role.start for role in cluster.roles]
        for start in self.dice.sample(starts, len(starts)):
            if (started := start()) is not None:
                await started
        await cluster.ensemble.start_all()
        for role in cluster.roles:
            role.held = False

    def bit(self, after: View) -> tuple[bool, str]:
        return moved(self.before, after) > 0, effects(self.before, after)
