"""Disks that are full: a worker's, and that of the database of masters on SQLite."""

import asyncio

from tests.chaos.cluster.cluster import SQLITE, Cluster
from tests.chaos.cluster.sandbox import SmallDisk
from tests.chaos.faults.fault import Fault, Skipped
from tests.chaos.observer import View


class FillDisk(Fault):
    """Work, logs and spool of one worker are on a small file system without a free byte."""

    name = "disk-full"
    hurts = frozenset({"disk"})
    spoils_disk = True

    def disk(self, cluster: Cluster) -> SmallDisk | None:
        """Return the disk that gets full; None if there is none."""
        return cluster.disk

    async def begin(self, cluster: Cluster) -> None:
        disk = self.disk(cluster)
        if disk is None:
            raise Skipped(cluster.disk_refused)
        self._disk = disk
        self.target = disk.folder.name
        self._used = await asyncio.to_thread(disk.fill)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.0, 3.0))
        # Tasks that ended meanwhile gave their folders back.
        self._used += await asyncio.to_thread(self._disk.fill)

    async def heal(self, cluster: Cluster) -> None:
        self._disk.free()

    def bit(self, after: View) -> tuple[bool, str]:
        return self._used > 0, f"{self._used} bytes used up to the last one"


class FillDatabaseDisk(FillDisk):
    """The SQLite file and its log cannot grow: nothing is stored, nothing is lost."""

    name = "disk-full-database"
    hurts = frozenset({"database"})
    databases = frozenset({SQLITE})
    costs_workers = False
    spoils_disk = False

    def disk(self, cluster: Cluster) -> SmallDisk | None:
        return cluster.database_disk
