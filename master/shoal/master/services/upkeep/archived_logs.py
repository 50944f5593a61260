"""Remove the logs of purged instances from the archive.

The owner of partition 0 compares what lies there with the database, so that also goes what a
worker has copied after the purge. Should two masters do it at once, both remove the same.
"""

import asyncio

import structlog

from shoal.master.services.service import PASSING, MasterContext, PeriodicService
from shoal.master.services.upkeep.purging import HOME
from shoal.runtime.log_archive import LogArchive
from shoal.runtime.storage import StorageError

log = structlog.get_logger()

PERIOD_S = 3600.0
FIRST_S = 120.0  # by then the partitions have their owners


class ArchivedLogSweeper(PeriodicService):
    """Retention of archived logs, for one master. ``archive`` None: there is none."""

    name = "archived logs"
    passing = (*PASSING, StorageError)

    def __init__(self, context: MasterContext, archive: LogArchive | None) -> None:
        super().__init__(PERIOD_S, FIRST_S)
        self._database, self._engine = context.database, context.engine
        self._archive = archive

    async def poll(self, is_regular: bool) -> None:
        """Remove everything that may go. Raises StorageError: the next poll repeats it."""
        if self._archive is None or not self._engine.owns(HOME):
            return
        removed = 0
        for thousand in await asyncio.to_thread(self._archive.thousands):
            found = await asyncio.to_thread(self._archive.instances, thousand)
            # Read after the listing: an instance is in the database before it has logs.
            async with self._database.unit_of_work(read_only=True) as uow:
                known = await uow.instances.ends(found)
            for instance in found:
                if instance not in known:
                    await asyncio.to_thread(self._archive.remove, instance)
                    removed += 1
            if not self._engine.owns(HOME):
                break
        if removed:
            log.info("removed archived logs of purged instances", instances=removed)
