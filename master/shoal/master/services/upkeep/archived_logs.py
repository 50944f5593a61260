"""Remove the logs of purged instances from the archive.

The owner of partition 0 compares what lies there with the database, so that also goes what a
worker has copied after the purge. Should two masters do it at once, both remove the same.

An archive that is ahead of its database, as after the restore of an older one, keeps the logs of
the instances that this database has never had.

``keep_archived_logs_days`` keeps them longer than the run: then they go by the age of the last one,
since the database no longer knows when the run ended.
"""

import asyncio

import structlog

from shoal.master.services.service import MasterContext
from shoal.master.services.upkeep.purges import HOME
from shoal.runtime.log_archive import LogArchive

log = structlog.get_logger()

_DAY_S = 86_400.0


class ArchivedLogSweeper:
    """Retention of archived logs, for one master."""

    def __init__(self, context: MasterContext, archive: LogArchive) -> None:
        self._keep_s = context.settings.keep_archived_logs_days * _DAY_S
        self._database, self._engine = context.database, context.engine
        self._archive, self._clock = archive, context.clock
        times = context.upkeep
        every_s = times.kept_logs if self._keep_s else times.archived_logs
        context.jobs.every("archived logs", self.sweep, every_s, min(times.first, every_s))

    async def sweep(self) -> None:
        """Remove everything that may go. Raises StorageError."""
        if not self._engine.owns(HOME):
            return
        removed = ahead = 0
        for thousand in await asyncio.to_thread(self._archive.thousands):
            found = await asyncio.to_thread(self._archive.instances, thousand)
            # Read after the listing: an instance is in the database before it has logs.
            async with self._database.unit_of_work(read_only=True) as uow:
                known = await uow.instances.ends(found)
                last = await uow.instances.last_id()
            for instance in found:
                if instance > last:
                    ahead += 1
                elif instance not in known and await self._may_go(instance):
                    await asyncio.to_thread(self._archive.remove, instance)
                    removed += 1
            if not self._engine.owns(HOME):
                break
        if ahead:
            log.warning(
                "the archive has logs of instances that this database has never had: an older "
                "database was restored; give it a new name (docs/storage.md), else its new runs "
                "take the places of those logs",
                instances=ahead,
            )
        if removed:
            log.info("removed archived logs of purged instances", instances=removed)

    async def _may_go(self, instance: int) -> bool:
        """Whether the logs of an instance that was purged are old enough."""
        if not self._keep_s:
            return True
        written_s = await asyncio.to_thread(self._archive.written_s, instance)
        return written_s is None or self._clock().timestamp() - written_s > self._keep_s
