"""Disks are full or slow, shared folders are gone, and a receiver of alerts does not answer."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from shoal.coordination.errors import CoordinationError
from tests.chaos.cluster.cluster import SQLITE, Cluster, NotWhole
from tests.chaos.cluster.machine import Machine
from tests.chaos.cluster.queries import fetch
from tests.chaos.cluster.sandbox import SmallDisk
from tests.chaos.cluster.sink import Mood
from tests.chaos.faults.database_work import SHOWN_S, is_ready
from tests.chaos.faults.fault import SERVER_ONLY, Fault, Skipped, effects
from tests.chaos.observer import NotVisible, View

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


class MoveSqlite(Fault):
    """The SQLite file is moved away while all use it, or an empty file takes its place.

    Nothing may be written to the place, and each role says so instead of storing what is lost.
    """

    name = "moved-sqlite"
    hurts = frozenset({"database"})
    databases = frozenset({SQLITE})
    alone: ClassVar[bool] = True  # nothing can be looked at meanwhile
    costs_workers = False
    _shown = ""

    async def begin(self, cluster: Cluster) -> None:
        path = Path(cluster.database.url.removeprefix("sqlite:///"))
        is_replaced = self.dice.random() < 0.5
        self.target = f"{path.name}, {'an empty file in its place' if is_replaced else 'moved'}"
        # The file goes first and comes last: who opens it finds its log, or does not find it.
        self._files = [Path(f"{path}{end}") for end in ("", "-wal", "-shm")]
        self._away = [file.with_name(f"{file.name}.away") for file in self._files]
        self._move(is_replaced=is_replaced)

    def _move(self, *, is_replaced: bool) -> None:
        for file, away in zip(self._files, self._away, strict=True):
            with suppress(FileNotFoundError):
                file.rename(away)
        if is_replaced:
            self._files[0].touch()

    async def hold(self, cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        ends_s = begun_s + SHOWN_S + self.dice.uniform(0.0, 2.0) * cluster.timeout_s
        while loop.time() < ends_s:
            if not self._shown and not await is_ready(cluster):
                self._shown = f"not ready after {loop.time() - begun_s:.1f} s"
            await asyncio.sleep(_LOOK_S)
        self._written = sum(file.stat().st_size for file in self._files if file.exists())

    async def heal(self, cluster: Cluster) -> None:
        for file, away in reversed([*zip(self._files, self._away, strict=True)]):
            file.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                away.rename(file)
        if self._written:
            raise NotWhole(f"{self._written} bytes were written in place of the moved database")
        if not self._shown:
            raise NotWhole(f"the API is ready although its database was away for {SHOWN_S:g} s")

    def bit(self, after: View) -> tuple[bool, str]:
        return bool(self._shown), f"{self._shown}; {effects(self.before, after)}"


class FillPostgres(FillDisk):
    """The database server's disk is full: it refuses to store, or dies for want of a log."""

    name = "disk-full-postgresql"
    hurts = frozenset({"database"})
    databases = SERVER_ONLY
    costs_workers = False
    spoils_disk = False
    alone: ClassVar[bool] = True  # a fault that has to store something could not begin
    _died = False

    def disk(self, cluster: Cluster) -> SmallDisk | None:
        return cluster.postgres.machine.disk

    async def begin(self, cluster: Cluster) -> None:
        await super().begin(cluster)
        self.target = "postgresql"
        self._log_start = cluster.postgres.log_size()

    async def heal(self, cluster: Cluster) -> None:
        await super().heal(cluster)
        self._refused = cluster.postgres.said(b"No space left on device", self._log_start)
        # As its supervisor does, and a human who has made space. One that recovers is waited for.
        self._died = not cluster.postgres.running
        await cluster.postgres.revive()

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._refused} lines about it in its log{', then it ended' * self._died}; "
        return self._refused > 0, said + effects(self.before, after)


class FillZooKeeper(Fault):
    """The disks of one server of the ensemble, or of all, are full."""

    name = "disk-full-zookeeper"
    hurts = frozenset({"zookeeper"})
    alone: ClassVar[bool] = True  # of all servers: nothing can be looked at meanwhile
    _ended = 0

    async def begin(self, cluster: Cluster) -> None:
        members = cluster.ensemble.members
        count = self.dice.choice((1, len(members)))
        self._members = self.dice.sample(members, count)
        self.target = ", ".join(f"zookeeper-{member.number}" for member in self._members)
        self._disks = []
        for member in self._members:
            if member.machine.disk is None:
                raise Skipped(member.machine.disk_refused)
            self._disks.append(member.machine.disk)
        self._starts = [member.log_size() for member in self._members]
        for disk in self._disks:
            await asyncio.to_thread(disk.fill)

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.0, 4.0))

    async def heal(self, cluster: Cluster) -> None:
        for disk in self._disks:
            disk.free()
        # A server that could not store stops serving and stays: its supervisor starts it again.
        self._refused = sum(
            member.said(b"No space left on device", at) > 0
            for member, at in zip(self._members, self._starts, strict=True)
        )
        for member in self._members:
            member.kill()
        await cluster.ensemble.start_all()

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._refused} servers could not store; {effects(self.before, after)}"
        return self._refused > 0, said


class _SlowSync(Fault):
    """Each sync of a server's disk takes long: what is acknowledged was waited for."""

    costs_workers = False
    _took_s = 0.0

    def machines(self, cluster: Cluster) -> list[Machine]:
        """Return the machines of the servers. Sets ``target``."""
        raise NotImplementedError

    async def store(self, cluster: Cluster) -> None:
        """Store something that has to be synced."""
        raise NotImplementedError

    async def begin(self, cluster: Cluster) -> None:
        self._syncs = []
        for machine in self.machines(cluster):
            if machine.sync is None:
                raise Skipped(machine.libraries_refused)
            self._syncs.append(machine.sync)
        self._by_s = self.dice.uniform(0.2, 2.0)
        for sync in self._syncs:
            sync.delay(self._by_s)

    async def hold(self, cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + self.dice.uniform(2.0, 5.0) * cluster.timeout_s
        while loop.time() < ends_s:
            begun_s = loop.time()
            await self.store(cluster)
            self._took_s = max(self._took_s, loop.time() - begun_s)
            await asyncio.sleep(_LOOK_S)

    async def heal(self, cluster: Cluster) -> None:
        for sync in self._syncs:
            sync.delay(0.0)

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._by_s:.1f} s for each sync, a write took up to {self._took_s:.1f} s; "
        return self._took_s >= self._by_s, said + effects(self.before, after)


class SlowPostgres(_SlowSync):
    name = "slow-disk-postgresql"
    hurts = frozenset({"database"})
    databases = SERVER_ONLY

    def machines(self, cluster: Cluster) -> list[Machine]:
        self.target = "postgresql"
        return [cluster.postgres.machine]

    async def store(self, cluster: Cluster) -> None:
        message = "SELECT pg_logical_emit_message(true, 'chaos', 'something to commit')"
        await fetch(cluster.database.url, message)


class SlowZooKeeper(_SlowSync):
    """All servers of the ensemble: of one, the other two would be quick."""

    name = "slow-disk-zookeeper"
    hurts = frozenset({"zookeeper"})
    costs_workers = True

    def machines(self, cluster: Cluster) -> list[Machine]:
        self.target = "all servers of ZooKeeper"
        return [member.machine for member in cluster.ensemble.members]

    async def store(self, cluster: Cluster) -> None:
        with suppress(NotVisible, CoordinationError):
            await cluster.observer.writes()
