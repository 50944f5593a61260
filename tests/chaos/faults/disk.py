"""A worker whose disk is full."""

import asyncio

from tests.chaos.cluster.cluster import Cluster
from tests.chaos.faults.fault import Fault, Skipped
from tests.chaos.observer import View


class FillDisk(Fault):
    """Work, logs and spool of one worker are on a small file system without a free byte."""

    name = "disk-full"
    hurts = frozenset({"disk"})
    spoils_disk = True

    async def begin(self, cluster: Cluster) -> None:
        if cluster.disk is None:
            raise Skipped(cluster.disk_refused)
        self.target = cluster.disk.folder.name
        self._used = await asyncio.to_thread(cluster.disk.fill)

    async def hold(self, cluster: Cluster) -> None:
        assert cluster.disk is not None
        await self.for_timeouts(cluster, self.dice.uniform(1.0, 3.0))
        # Tasks that ended meanwhile gave their folders back.
        self._used += await asyncio.to_thread(cluster.disk.fill)

    async def heal(self, cluster: Cluster) -> None:
        assert cluster.disk is not None
        cluster.disk.free()

    def bit(self, after: View) -> tuple[bool, str]:
        return self._used > 0, f"{self._used} bytes used up to the last one"
