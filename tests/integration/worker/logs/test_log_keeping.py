"""Logs go by age, with their instance, and for space; never those of what has not ended."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from shoal.coordination import QueueEntry, TaskClaim
from shoal.proto.errors import PeerUnavailable
from shoal.worker.attempts.held import HeldAttempts
from shoal.worker.logs.archive import LogArchiver
from shoal.worker.logs.files import LogStore, log_workflow
from shoal.worker.logs.folders import content, folders, remove
from shoal.worker.logs.retention import DAY_S, LogKeeper
from shoal.worker.masters import Standing
from shoal.worker.processes.helpers import Helpers
from shoal.worker.processes.launcher import Launcher
from shoal.worker.supervisor.shim.child import open_log

MIB = 1 << 20


class Place:
    """A worker's folders, and a master that knows how instances stand."""

    def __init__(self, folder: Path) -> None:
        self.store = LogStore(folder / "logs")
        self.work, self.spool = folder / "work", folder / "spool"
        self.work.mkdir()
        self.spool.mkdir()
        self.attempts = HeldAttempts(4)
        self.open: set[int] = set()
        self.ended = dict.fromkeys(range(100), 0.0)
        self.is_silent = False
        self.now: float | None = None  # by the masters' clock
        self.asked: list[int] = []
        self.cluster = ""  # the uid that the master tells

    async def ask(self, ids: Sequence[int]) -> Standing:
        if self.is_silent:
            raise PeerUnavailable("master", "silent")
        self.asked += ids
        known = {i: at for i, at in self.ended.items() if i in ids and i not in self.open}
        return Standing(self.open & set(ids), known, self.now or time.time(), self.cluster)

    def keeper(self, days: float = 30.0, min_free_mb: int = 0, **more: object) -> LogKeeper:
        return LogKeeper(
            self.store.root,
            self.work,
            self.spool,
            self.attempts,
            self.ask,
            days,
            min_free_mb,
            **more,  # type: ignore[arg-type]
        )

    def log(
        self, instance: int, task: int, days: float = 0.0, size: int = 10, cluster: str = ""
    ) -> Path:
        path = self.store.path(log_workflow(cluster, "demo", "flow"), instance, task)
        os.close(open_log(str(path)))
        path.write_bytes(b"x" * size)
        at = time.time() - days * DAY_S
        os.utime(path, (at, at))
        os.utime(path.parent, (at, at))
        return path

    def left(self) -> list[int]:
        return sorted(int(path.stem) for path in self.store.root.rglob("*.log"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_old_logs_of_what_has_ended_go(place: Place) -> None:
    place.log(1, 10, days=31)
    place.log(2, 20, days=29)
    place.log(3, 30, days=31)
    place.log(3, 31, days=1)  # the instance was at work lately
    assert await place.keeper().sweep() == 1
    assert place.left() == [20, 30, 31]
    assert not (place.store.root / "demo.flow" / "1").exists()


async def test_age_counts_from_the_end_of_the_instance(place: Place) -> None:
    """A task that was silent for long has an old log when it ends."""
    place.ended = {1: time.time() - DAY_S}
    place.log(1, 10, days=31)
    assert await place.keeper().sweep() == 0


async def test_logs_of_an_instance_that_runs_stay_however_old_they_are(place: Place) -> None:
    place.open = {1}
    place.log(1, 10, days=400)
    assert await place.keeper().sweep() == 0
    assert place.left() == [10]


async def test_logs_of_attempts_here_stay_whatever_a_master_says(place: Place) -> None:
    entry = QueueEntry("default", 2, 1, 2, 11, 0)
    place.attempts.add(TaskClaim(entry, "w", 1, 1))
    place.log(1, 10, days=400)
    assert await place.keeper().sweep() == 0
    assert place.left() == [10]


async def test_a_clock_of_our_own_that_is_wrong_deletes_nothing(place: Place) -> None:
    place.log(1, 10, days=0.5)
    place.ended = {}
    place.now = time.time()
    assert await place.keeper(clock=lambda: time.time() + 400 * DAY_S).sweep() == 0
    place.ended = {1: time.time() - DAY_S}
    assert await place.keeper(clock=lambda: time.time() + 400 * DAY_S).sweep() == 0
    place.now += 400 * DAY_S
    assert await place.keeper(clock=lambda: time.time() + 400 * DAY_S).sweep() == 1


async def test_logs_of_another_cluster_stay_by_age_and_for_space(place: Place) -> None:
    """A copy's workers may have the original's folder of logs, by ``log_dir``."""
    place.cluster = "ours"
    place.ended = {}  # our masters know no such instance: to them it has been purged
    place.log(1, 10, days=400, cluster="theirs")
    place.log(1, 11, days=400, cluster="ours")
    place.log(2, 20, days=400, cluster="theirs")
    assert await place.keeper().sweep() == 1
    assert place.left() == [10, 20]
    assert not await place.keeper(min_free_mb=1 << 40).make_room()
    assert place.left() == [10, 20]


async def test_logs_of_earlier_versions_are_those_of_the_cluster_that_asks_first(
    place: Place,
) -> None:
    place.ended = {}
    place.cluster = "ours"
    place.log(1, 10, days=400)
    assert await place.keeper().sweep() == 1
    place.log(1, 11, days=400)
    place.cluster = "theirs"
    assert await place.keeper().sweep() == 0
    assert place.left() == [11]
    place.cluster = ""  # the master is of an earlier version
    assert await place.keeper().sweep() == 1


async def test_without_a_master_nothing_goes(place: Place) -> None:
    place.is_silent = True
    place.log(1, 10, days=400)
    with pytest.raises(PeerUnavailable):
        await place.keeper().sweep()
    assert place.left() == [10]


async def test_logs_go_with_their_instance_a_day_later(place: Place) -> None:
    place.ended = {1: 0.0}
    place.log(1, 10, days=2)
    place.log(2, 20, days=2)  # purged
    place.log(3, 30, days=0.5)  # purged, or a database that was set back: wait and see
    await place.keeper(days=0).sweep()
    assert place.left() == [10, 30]


class Disk:
    """A disk of which logs take their part."""

    def __init__(self, place: Place, size_mb: float) -> None:
        self._place, self._size_mb = place, size_mb

    def statvfs(self, _: object) -> SimpleNamespace:
        used = sum(p.stat().st_size for p in self._place.store.root.rglob("*.log"))
        free = int(self._size_mb * MIB) - used
        return SimpleNamespace(f_bavail=free, f_frsize=1, f_files=0, f_favail=0)


async def test_oldest_logs_go_before_the_worker_would_claim_no_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.open = {1}
    for instance in range(1, 9):
        place.log(instance, 10 * instance, days=10 - instance, size=MIB)
    # 8 MiB are used, 11 free: less than twice 6. Enough is 15.
    monkeypatch.setattr(os, "statvfs", Disk(place, 19).statvfs)
    keeper = place.keeper(min_free_mb=6)
    assert await keeper.make_room()
    assert place.left() == [10, 60, 70, 80]
    assert keeper.published["logs_deleted_until"]
    assert not (await keeper.sweep())
    again = place.keeper(min_free_mb=6)  # after a restart it still knows
    assert again.published == keeper.published


async def test_nothing_goes_while_there_is_room(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.log(1, 10, days=10, size=MIB)
    monkeypatch.setattr(os, "statvfs", Disk(place, 14).statvfs)
    assert await place.keeper(min_free_mb=6).make_room()
    assert (place.left(), place.asked) == ([10], [])


async def test_room_that_cannot_be_made_is_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.open = {1}
    place.log(1, 10, size=MIB)
    monkeypatch.setattr(os, "statvfs", Disk(place, 2).statvfs)
    assert not await place.keeper(min_free_mb=6).make_room()
    assert place.left() == [10]


async def test_former_workers_logs_go_by_age(place: Place, tmp_path: Path) -> None:
    former = LogStore(tmp_path / "former")
    path = former.path("demo.flow", 5, 50)
    os.close(open_log(str(path)))
    at = time.time() - 31 * DAY_S
    os.utime(path, (at, at))
    os.utime(path.parent, (at, at))
    await place.keeper(former=lambda: [former.root]).sweep()
    assert not path.exists()


async def test_leftovers_go(place: Place) -> None:
    corrupt = place.spool / "corrupt"
    corrupt.mkdir()
    (corrupt / "1.json.1").write_text("{")
    (place.work / "7").mkdir()
    (place.work / "7" / "data").write_text("")
    (place.work / "not ours").mkdir()
    await place.keeper().sweep()
    assert (place.work / "7").exists()
    await place.keeper(clock=lambda: time.time() + 2 * 3600).sweep()
    assert sorted(p.name for p in place.work.iterdir()) == ["not ours"]
    assert list(corrupt.iterdir())
    await place.keeper(clock=lambda: time.time() + 8 * DAY_S).sweep()
    assert not list(corrupt.iterdir())


def test_what_was_written_since_the_look_stays(place: Place) -> None:
    place.log(1, 10)
    [folder] = folders(place.store.root)
    seen = content(folder)
    assert seen is not None
    new = place.log(1, 11)
    assert remove(seen)
    assert new.exists()
    assert place.left() == [11]


def test_links_lead_nowhere(place: Place, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "1"
    elsewhere.mkdir(parents=True)
    (elsewhere / "10.log").write_text("")
    (place.store.root / "demo.flow").symlink_to(elsewhere.parent)
    assert folders(place.store.root) == []
    (place.store.root / "demo.other").mkdir()
    (place.store.root / "demo.other" / "1").symlink_to(elsewhere)
    assert [content(one) for one in folders(place.store.root)] == [None]
    assert (elsewhere / "10.log").exists()


async def test_what_is_still_to_be_copied_to_the_archive_does_not_go_by_age(place: Place) -> None:
    helpers = Helpers(place.work, cast("Launcher", None), {})  # no copy is made here
    archiver = LogArchiver(place.store.root, "/nowhere", place.attempts, place.ask, helpers)
    place.log(1, 10, days=31)
    copied = place.log(2, 20, days=31)
    place.log(300, 30, days=31)  # its instance has been purged: nobody wants it
    mark = copied.parent / ".archived"
    mark.write_text("\n20 10\n")
    at = time.time() - 31 * DAY_S
    for path in (mark, mark.parent):
        os.utime(path, (at, at))
    assert await place.keeper(archiver=archiver).sweep() == 2
    assert place.left() == [10]
    assert not copied.parent.exists()
