"""Purges beside recoveries: history goes while its partitions change hands."""

import asyncio
from typing import ClassVar

from tests.chaos.cluster.cluster import START_S, Cluster, NotWhole
from tests.chaos.faults.fault import effects
from tests.chaos.faults.processes import RoleFault
from tests.chaos.judging.history import History
from tests.chaos.observer import View
from tests.chaos.workload.rest import Api

OVER, OPEN = 24, 2  # runs: enough for every master to own some
_PURGED_S = 90.0


class KillPurgingMaster(RoleFault):
    """A master dies while it purges; the next owner of its partitions goes on."""

    name = "purge-beside-takeover"
    kind = "master"
    alone: ClassVar[bool] = True  # it needs API and database
    costs_workers = False
    _gone = 0

    async def strike(self, cluster: Cluster) -> None:
        async with Api(cluster.url, cluster.token) as api:
            key = f"{self.name}-{self.dice.getrandbits(64):x}"
            history = History(api, cluster.database.url, cluster.site.marker, key)
            await history.make(OVER, OPEN)
            purge = await history.purge()
            await asyncio.sleep(self.dice.uniform(0.0, 1.0))
            self.role.kill()
            try:
                await history.purged(purge, _PURGED_S)
            except TimeoutError as error:
                raise NotWhole(f"purge {purge} was not carried out in {_PURGED_S:g} s") from error
            self._gone = await history.gone()
            if wrong := await history.check():
                raise NotWhole(wrong)
            if self._gone < OVER - 1:  # the newest success stays
                raise NotWhole(f"purge {purge} was carried out, with {self._gone} of {OVER} gone")

    async def heal(self, cluster: Cluster) -> None:
        if not self.role.running:
            self.role.start()
        self.role.held = False
        # How long a process takes to start is the machine's figure, not the cluster's.
        await cluster.until_registered(self.role, START_S)

    def bit(self, after: View) -> tuple[bool, str]:
        bit = self._gone > 0 and self.role.pid != self.pid
        return bit, f"{self._gone} of {OVER} instances purged; {effects(self.before, after)}"
