"""Remove what is not needed any more of resources: uploads that broke off, and old versions.

The owner of partition 0 does it. The object goes before its row, so none is ever forgotten; should
two masters do it at once, both remove the same.
"""

import asyncio
from datetime import timedelta

import structlog

from shoal.master.services.service import MasterContext, PeriodicService
from shoal.master.services.upkeep.purging import HOME
from shoal.runtime.storage import ObjectMissing, Storage, StorageError

log = structlog.get_logger()

PERIOD_S = 3600.0
FIRST_S = 60.0  # by then the partitions have their owners
#: An upload that has not ended after this time never will: nothing in it may take so long.
UPLOADS = timedelta(days=1)
_AT_ONCE = 100
_ENOUGH_FAILURES = 3
_PAUSE_S = 1.0  # between two batches: it is never urgent


class ResourceSweeper(PeriodicService):
    """Repairs and retention of resources, for one master."""

    name = "resources"

    def __init__(self, context: MasterContext, storage: Storage) -> None:
        super().__init__(PERIOD_S, FIRST_S)
        self._database, self._engine, self._clock = context.database, context.engine, context.clock
        days = context.settings.keep_deleted_resources_days
        self._keep = timedelta(days=days) if days else None
        self._newest = context.settings.keep_resource_versions
        self._storage = storage

    async def poll(self, is_regular: bool) -> None:
        """Remove everything that may go."""
        there_is_more = True
        while there_is_more and self._engine.owns(HOME):
            there_is_more = await self._sweep()
            await asyncio.sleep(_PAUSE_S if there_is_more else 0)

    async def _sweep(self) -> bool:
        """Remove a batch; return whether there may be more."""
        now = self._clock()
        async with self._database.unit_of_work(read_only=True) as uow:
            found = await uow.resources.unneeded(
                uploads=now - UPLOADS,
                ended=None if self._keep is None else now - self._keep,
                newest=self._newest,
                limit=_AT_ONCE,
            )
        removed, failures = [], 0
        for one in found:
            try:
                await asyncio.to_thread(self._storage.remove, one.object)
            except ObjectMissing:  # what cannot be there need not be removed
                pass
            except StorageError as error:
                log.warning("resource is removed later", object=one.object, error=str(error))
                failures += 1
                if failures == _ENOUGH_FAILURES:  # it may be the storage, and each try takes long
                    break
                continue
            removed.append(one.id)
        if removed:
            async with self._database.unit_of_work() as uow:
                await uow.resources.forget(removed)
                await uow.commit()
            log.info("removed resources", count=len(removed))
        return len(removed) == _AT_ONCE
