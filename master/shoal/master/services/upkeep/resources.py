"""Remove what is no longer needed of resources: uploads that broke off, and old versions.

The owner of partition 0 does it. The object goes before its row, so none is ever forgotten; should
two masters do it at once, both remove the same.

Objects of another cluster stay. The rows of a copied database name the original's objects, which
the copy reads: of those only the copy's rows go.
"""

import asyncio
from datetime import timedelta

import structlog

from shoal.master.services.service import MasterContext
from shoal.master.services.upkeep.purges import HOME
from shoal.runtime.storage import (
    RESOURCES,
    ObjectMissing,
    Storage,
    StorageError,
    cluster_folder,
)

log = structlog.get_logger()

#: An upload that has not ended after this time never will: nothing in it may take so long.
UPLOADS = timedelta(days=1)
_AT_ONCE = 100
_ENOUGH_FAILURES = 3
_PAUSE_S = 1.0  # between two batches: it is never urgent


class ResourceSweeper:
    """Repairs and retention of resources, for one master."""

    def __init__(self, context: MasterContext, storage: Storage) -> None:
        self._database, self._engine, self._clock = context.database, context.engine, context.clock
        days = context.settings.keep_deleted_resources_days
        self._keep = timedelta(days=days) if days else None
        self._newest = context.settings.keep_resource_versions
        self._storage = storage
        every_s = context.upkeep.resources
        context.jobs.every("resources", self.sweep, every_s, min(context.upkeep.first, every_s))

    async def sweep(self) -> None:
        """Remove everything that may go."""
        after: int | None = 0
        while after is not None and self._engine.owns(HOME):
            after = await self._sweep(after)
            await asyncio.sleep(0 if after is None else _PAUSE_S)

    async def _sweep(self, after: int) -> int | None:
        """Remove a batch behind the id ``after``; return its last id, None: there is no more."""
        now = self._clock()
        async with self._database.unit_of_work(read_only=True) as uow:
            found = await uow.resources.unneeded(
                uploads=now - UPLOADS,
                ended=None if self._keep is None else now - self._keep,
                newest=self._newest,
                limit=_AT_ONCE,
                after=after,
            )
            uid = (await uow.cluster.names()).present.uid
        gone: list[int] = []  # rows
        foreign = failures = 0
        for one in found:
            match = RESOURCES.names.fullmatch(one.object)
            if match is not None and match["owner"] is None:
                continue  # named by version 0.1.0, without its cluster: it may belong to any
            if match is not None and match["owner"] != cluster_folder(uid):
                gone.append(one.id)
                foreign += 1
                continue
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
            gone.append(one.id)
        if gone:
            async with self._database.unit_of_work() as uow:
                await uow.resources.forget(gone)
                await uow.commit()
            log.info("removed resources", count=len(gone) - foreign)
        if foreign:
            log.info("forgot resources whose contents another cluster owns", count=foreign)
        more = len(found) == _AT_ONCE and failures < _ENOUGH_FAILURES
        return found[-1].id if more else None
