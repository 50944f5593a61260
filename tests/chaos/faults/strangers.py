"""A master that has this cluster's database and another tree in ZooKeeper."""

import asyncio
from typing import ClassVar

from tests.chaos.cluster.cluster import Cluster, NotWhole
from tests.chaos.cluster.queries import fetch
from tests.chaos.cluster.role import Role
from tests.chaos.faults.fault import Fault, effects, moved
from tests.chaos.observer import View

_ENDS_S = 60.0  # for a process to start, compare and end


class StrangerMaster(Fault):
    """One more master is started on a misspelt path: it must end, and have taken nothing."""

    name = "stranger-master"
    alone: ClassVar[bool] = True  # it compares what others would take away
    costs_workers = False
    _stranger: Role | None = None
    _said = ""

    async def begin(self, cluster: Cluster) -> None:
        path = f"/typo-{self.dice.getrandbits(32):x}"
        self.target = f"a master at {path}"
        self._stranger = cluster.stranger(path)
        self._stranger.start()

    async def hold(self, cluster: Cluster) -> None:
        assert self._stranger is not None
        async with asyncio.timeout(_ENDS_S):
            while self._stranger.running:
                await asyncio.sleep(0.1)
        self._said = self._stranger.last_line()
        if self._stranger.returncode != 1 or not self._stranger.said(b"is bound to tree", 0):
            raise NotWhole(
                f"a master in another tree ended with status {self._stranger.returncode}: "
                f"{self._said}"
            )

    async def heal(self, cluster: Cluster) -> None:
        if self._stranger is not None:
            self._stranger.kill()

    def bit(self, after: View) -> tuple[bool, str]:
        taken = [
            number
            for number, (owner, _) in after.rows.items()
            if owner not in {one.id for one in after.members.values()}
        ]
        return bool(self._said) and not taken, f"refused; {effects(self.before, after)}"


class RaiseEpochs(Fault):
    """The database gives every partition to an owner that nobody knows.

    So does a master of a version that knows no binding, in another tree. The owner znodes stand.
    """

    name = "stranger-epochs"
    alone: ClassVar[bool] = True  # it hurts all masters, by way of the database
    costs_workers = False

    async def begin(self, cluster: Cluster) -> None:
        self.target = "all partitions"
        statement = "UPDATE partition SET epoch = epoch + 1000, owner = 'a stranger'"
        await fetch(cluster.database.url, statement)

    def bit(self, after: View) -> tuple[bool, str]:
        count = moved(self.before, after)
        return count > 0, effects(self.before, after)
