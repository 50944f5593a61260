"""Logs go by age, when their instance has gone, and the oldest first when the disk fills up.

A worker has no access to the database, so a master is asked how instances stand; without its
answer nothing goes. Logs of an instance that has not ended are never touched: they stay whole
until it has, whatever they cost.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from shoal.core.errors import ShoalError
from shoal.core.untrusted import read_json
from shoal.worker.attempts.held import HeldAttempts
from shoal.worker.home.disk import FEWEST_FILES, MIB
from shoal.worker.logs.archive import LogArchiver
from shoal.worker.logs.folders import Content, LogFolder, content, folders, remove
from shoal.worker.masters import Ask, Standing
from shoal.worker.processes.work_files import remove_tree

log = structlog.get_logger()

DAY_S = 86_400.0
CHECK_EVERY_S = 5.0  # the free space
SWEEP_EVERY_S = 3_600.0  # through all logs
# Logs go when less than this is free, as a multiple of min_free_mb, until that much is.
LOW, ENOUGH = 2.0, 2.5
# An instance that a master does not know has been purged: its logs can no longer be asked for.
UNKNOWN_FOR_S = DAY_S
CORRUPT_FOR_S = 7 * DAY_S  # records that could not be read stay for people to see
LEFT_FOR_S = 3_600.0  # work folders that could not be removed are tried again after this long
PAUSE_IN_VAIN_S = 60.0  # when nothing could go
_TOGETHER = 200  # instances that a master is asked about at once
MARK = ".deleted"  # in the folder of logs: up to when they were deleted for space


@dataclass
class LogKeeper:
    """Deletes logs and leftovers of one worker. Belongs to the event loop.

    ``former``: folders of logs of workers that ran here before; theirs go by age alone.
    ``archiver``: what it has still to copy does not go by age.
    """

    root: Path
    work: Path
    spool: Path
    attempts: HeldAttempts
    ask: Ask
    retention_days: float
    min_free_mb: int
    former: Callable[[], Iterable[Path]] = lambda: ()
    archiver: LogArchiver | None = None
    clock: Callable[[], float] = time.time
    deleted_until: float = field(default=0.0, init=False)  # for space; since the Unix epoch

    def __post_init__(self) -> None:
        with suppress(OSError, ValueError, TypeError, OverflowError):
            found = float(read_json((self.root / MARK).read_text(), most=100))
            datetime.fromtimestamp(found, UTC)  # else there is no such time
            self.deleted_until = found

    @property
    def published(self) -> dict[str, Any]:
        """For the member's data, so that others can say why a log is not there."""
        found: dict[str, Any] = {"log_retention_days": self.retention_days}
        if self.deleted_until:
            found["logs_deleted_until"] = datetime.fromtimestamp(
                self.deleted_until, UTC
            ).isoformat()
        if self.archiver is not None and self.archiver.trouble is not None:
            found["logs_not_archived"] = self.archiver.trouble
        return found

    async def archive(self) -> None:
        """Copy finished logs to the archive for ever, if there is one."""
        if self.archiver is not None:
            await self.archiver.run()

    async def finish(self) -> None:
        """Copy what is left to the archive."""
        if self.archiver is not None:
            await self.archiver.finish()

    async def watch(self, on_change: Callable[[], None]) -> None:
        """Check for ever; ``on_change`` is called when ``published`` has changed."""
        sweep_every_s = SWEEP_EVERY_S
        if self.retention_days:
            sweep_every_s = min(SWEEP_EVERY_S, max(1.0, self.retention_days * DAY_S / 10))
        due_s = pause_until_s = 0.0
        told = self.published
        while True:
            try:
                if time.monotonic() >= pause_until_s and not await self.make_room():
                    pause_until_s = time.monotonic() + PAUSE_IN_VAIN_S
                if time.monotonic() >= due_s:
                    due_s = time.monotonic() + sweep_every_s
                    await self.sweep()
            except ShoalError as error:
                log.info("no logs deleted: no master answers", error=str(error))
            except OSError as error:
                log.warning("no logs deleted: it is not known whose they are", error=str(error))
            if self.published != told:  # the archiver works beside us
                told = self.published
                on_change()
            await asyncio.sleep(min(CHECK_EVERY_S, sweep_every_s))

    # -- by age ------------------------------------------------------------------------------

    async def sweep(self) -> int:
        """Delete what is too old, or of instances that have gone; return how many logs."""
        now, deleted = self.clock(), 0
        by_age = now - self.retention_days * DAY_S if self.retention_days else 0.0
        for root in (self.root, *self.former()):
            for some in _batched(await asyncio.to_thread(folders, root)):
                found = await asyncio.to_thread(_contents, some)
                old = [one for one in found if one.newest < max(by_age, now - UNKNOWN_FOR_S)]
                if not old:
                    continue
                standing = await self._ask(old)
                old = await asyncio.to_thread(_own, old, standing)
                ahead = max(0.0, now - standing.now)  # of our clock
                going = [
                    one
                    for one in old
                    if self._is_over(one, standing)
                    and (
                        _age_from(one, standing) < by_age - ahead
                        or (
                            _id(one) not in standing.ended
                            and one.newest < now - ahead - UNKNOWN_FOR_S
                        )
                    )
                ]
                deleted += await asyncio.to_thread(self._remove_archived, going, standing)
        await asyncio.to_thread(self._remove_leftovers, now)
        if deleted:
            log.info("old logs deleted", count=deleted)
        return deleted

    # -- for space ---------------------------------------------------------------------------

    async def make_room(self) -> bool:
        """Delete the oldest logs of what has ended if the disk is nearly full.

        Returns whether there is room, or some was made.
        """
        if not self._is_short(LOW):
            return True
        deleted = 0
        for some in _batched(await asyncio.to_thread(folders, self.root)):
            found = [one for one in await asyncio.to_thread(_contents, some) if one.names]
            if not found:
                continue
            standing = await self._ask(found)
            for one in await asyncio.to_thread(_own, found, standing):
                if self._is_over(one, standing):
                    deleted += await asyncio.to_thread(_remove, [one])
                    self.deleted_until = max(self.deleted_until, _age_from(one, standing))
                    if not self._is_short(ENOUGH):
                        break
            if not self._is_short(ENOUGH):
                break
        if deleted:
            await asyncio.to_thread(self._mark)
            log.warning(
                "disk nearly full: oldest logs deleted", count=deleted, folder=str(self.root)
            )
        return deleted > 0

    def _is_short(self, factor: float) -> bool:
        if self.min_free_mb == 0:
            return False
        try:
            found = os.statvfs(self.root)
        except OSError:
            return False
        if found.f_bavail * found.f_frsize < self.min_free_mb * MIB * factor:
            return True
        return bool(found.f_files) and found.f_favail < FEWEST_FILES * factor

    def _mark(self) -> None:
        temporary = self.root / f"{MARK}.new"
        with suppress(OSError):  # a full disk: published while this process lives
            temporary.write_text(json.dumps(self.deleted_until))
            temporary.replace(self.root / MARK)

    # -- what may go -------------------------------------------------------------------------

    async def _ask(self, found: Sequence[Content]) -> Standing:
        return await self.ask([_id(one) for one in found])

    def _is_over(self, one: Content, standing: Standing) -> bool:
        """Whether nothing of that instance runs, here or elsewhere."""
        if _id(one) in standing.open:
            return False
        return all(_id(one) != a.claim.entry.workflow_instance_id for a in self.attempts)

    def _remove_archived(self, some: Iterable[Content], standing: Standing) -> int:
        """Remove what is in the archive, or is to be in none: it has been purged."""
        archiver = self.archiver
        return _remove(
            one
            for one in some
            if archiver is None
            or _id(one) not in standing.ended
            or not archiver.is_waiting(one.folder)
        )

    def _remove_leftovers(self, now: float) -> None:
        """Remove corrupt results, and work folders that could not be removed before."""
        with suppress(OSError), os.scandir(self.spool / "corrupt") as files:
            for file in files:
                with suppress(OSError):
                    if file.stat(follow_symlinks=False).st_ctime < now - CORRUPT_FOR_S:
                        os.unlink(file.path)
        with suppress(OSError), os.scandir(self.work) as left:
            for folder in left:
                if not folder.name.isdigit() or self.attempts.get(int(folder.name)) is not None:
                    continue
                with suppress(OSError):
                    if folder.stat(follow_symlinks=False).st_ctime < now - LEFT_FOR_S:
                        remove_tree(Path(folder.path))


def _id(one: Content) -> int:
    return one.folder.workflow_instance_id


def _age_from(one: Content, standing: Standing) -> float:
    """Return when the last of it happened: a task may have been silent for long."""
    return max(one.newest, standing.ended.get(_id(one), 0.0))


def _batched(found: Sequence[LogFolder]) -> Iterable[Sequence[LogFolder]]:
    return (found[start : start + _TOGETHER] for start in range(0, len(found), _TOGETHER))


def _own(some: Iterable[Content], standing: Standing) -> list[Content]:
    """Return what is not another cluster's: whose instances these are, no master of ours knows."""
    return [one for one in some if one.folder.belongs_to(standing.cluster)]


def _contents(some: Iterable[LogFolder]) -> list[Content]:
    return [one for folder in some if (one := content(folder)) is not None]


def _remove(some: Iterable[Content]) -> int:
    return sum(sum(name.endswith(".log") for name in one.names) for one in some if remove(one))
