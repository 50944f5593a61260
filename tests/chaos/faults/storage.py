"""Disks are full, folders that roles share are gone, and a receiver of alerts does not answer."""

import asyncio
from pathlib import Path
from typing import ClassVar

from tests.chaos.cluster.cluster import SQLITE, Cluster
from tests.chaos.cluster.sandbox import SmallDisk
from tests.chaos.cluster.sink import Mood
from tests.chaos.faults.fault import Fault, Skipped, effects
from tests.chaos.observer import View

_LOOK_S = 0.2


class _Unmounted(Fault):
    """A folder has gone, as a network file system does; a file stands where it was.

    So nothing can be written there by mistake, and the folder is back as it was in the end.
    """

    _ended = 0
    words: ClassVar[bytes]  # what roles log about it

    def folder(self, cluster: Cluster) -> Path:
        """Return the folder that goes."""
        raise NotImplementedError

    async def begin(self, cluster: Cluster) -> None:
        self._folder = self.folder(cluster)
        if not self._folder.is_dir():
            raise Skipped(f"{self._folder.name} is not used yet")
        self.target = self._folder.name
        self._away = self._folder.with_name(f"{self._folder.name}.away")
        self._starts = {role: role.log_size() for role in cluster.roles}
        self._folder.rename(self._away)
        self._folder.touch()

    async def hold(self, cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + self.dice.uniform(2.0, 4.0) * cluster.timeout_s
        while loop.time() < ends_s:
            await asyncio.sleep(_LOOK_S)
        self._noticed = sum(role.said(self.words, at) for role, at in self._starts.items())

    async def heal(self, cluster: Cluster) -> None:
        self._folder.unlink()
        self._away.rename(self._folder)

    def bit(self, after: View) -> tuple[bool, str]:
        moved_on = after.events - self.before.events
        said = f"{self._noticed} lines in logs about it, {moved_on} events; "
        return self._noticed > 0, said + effects(self.before, after)


class LoseArchive(_Unmounted):
    """The archive of logs: no task may fail by it, and all logs are there in the end."""

    name = "no-log-archive"
    hurts = frozenset({"archive"})
    costs_workers = False
    words = b"not copied to the archive"

    def folder(self, cluster: Cluster) -> Path:
        return cluster.archive


class LoseResources(_Unmounted):
    """The storage of resources: attempts that need one may fail, all else goes on."""

    name = "no-resources"
    hurts = frozenset({"resources"})
    costs_workers = False
    spoils_disk = True
    words = b"resources"

    def folder(self, cluster: Cluster) -> Path:
        return cluster.data / "resources"


class HangChannel(Fault):
    """The receiver of alerts takes a message and does not answer, or answers with an error."""

    name = "hung-channel"
    hurts = frozenset({"channel"})
    costs_workers = False

    async def begin(self, cluster: Cluster) -> None:
        mood = self.dice.choice((Mood.HANGING, Mood.FAILING))
        self.target = f"the receiver of alerts, {mood.value}"
        self._before_count = cluster.sink.spoilt
        cluster.sink.mood = mood

    async def hold(self, cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + self.dice.uniform(4.0, 8.0) * cluster.timeout_s
        while loop.time() < ends_s:
            await asyncio.sleep(_LOOK_S)
        self._spoilt = cluster.sink.spoilt - self._before_count

    async def heal(self, cluster: Cluster) -> None:
        cluster.sink.mood = Mood.ANSWERING

    def bit(self, after: View) -> tuple[bool, str]:
        return self._spoilt > 0, f"{self._spoilt} messages; {effects(self.before, after)}"


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
