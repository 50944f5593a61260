"""Which partitions this master owns, and what follows from a change.

The masters share the partitions out by ``FairShare``: their group assigns, owner znodes decide. The
engine holds a partition only while its znode is ours: taken after the znode is, dropped before it
goes. So the next owner finds a partition free, and nothing is decided in it any more.
"""

import asyncio
from collections.abc import Collection

import structlog

from shoal.coordination import FairShare, GroupSettings, Notifications, Partition, ZkSession
from shoal.coordination.cluster import layout
from shoal.core.errors import ShoalError
from shoal.master.engine.engine import LEAVING, Engine
from shoal.master.errors import NotStored
from shoal.master.settings import MasterSettings
from shoal.sql.errors import Fenced

log = structlog.get_logger()

TOPIC = "partitions"

# Partitions won in ZooKeeper, each with its epoch and a future that ends when it is taken.
Won = dict[int, tuple[int, asyncio.Future[None]]]


class PartitionKeeper:
    """Keeps ownership, notifications and engine in step for one master."""

    def __init__(
        self,
        session: ZkSession,
        master_id: str,
        address: str,
        engine: Engine,
        notifications: Notifications,
        partitions: int,
        settings: MasterSettings,
    ) -> None:
        """``partitions``: how many the cluster has."""
        self._master_id = master_id
        self._engine = engine
        self._notifications = notifications
        # Won in ZooKeeper, not yet taken by the engine.
        self._won: Won = {}
        self._news = asyncio.Event()
        self._over = False  # nothing that is won is taken any more
        self.share = FairShare(
            session,
            layout.MASTERS_GROUP,
            master_id,
            {TOPIC: partitions},
            lambda partition: layout.owner(partition.index),
            on_acquired=self._acquired,
            on_released=self._released,
            on_lost=self._lost,
            settings=GroupSettings(
                rebalance_timeout_s=settings.rebalance_timeout_s,
                initial_rebalance_delay_s=settings.initial_rebalance_delay_s,
            ),
            data={"address": address},
            takeover_delay_s=settings.takeover_delay_s,
        )

    async def run(self) -> None:
        """Take what was won, many partitions in one transaction. Runs for ever."""
        won: Won = {}
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                won, self._won = self._won, {}
                # Those whose future is done were lost again meanwhile.
                await self._take({p: one for p, one in won.items() if not one[1].done()})
                # Each new subscription notifies once, so what waits in the partition is read.
                self._notifications.subscribe(self._engine.epochs)
        finally:
            # Else these futures would never end, nor would the ownership that awaits them.
            self._over = True
            for _, done in (*won.values(), *self._won.values()):
                _finish(done, NotStored(LEAVING))

    async def _take(self, won: Won) -> None:
        while won:
            try:
                await self._engine.take(
                    {partition: epoch for partition, (epoch, _) in won.items()}, self._master_id
                )
            except Fenced as error:
                superseding = await self._supersede(error.partitions & won.keys(), won)
                for partition in error.partitions & won.keys():
                    if partition in superseding:
                        won[partition] = (superseding[partition], won[partition][1])
                    else:
                        log.warning("a newer owner was quicker", partition=partition)
                        _finish(won.pop(partition)[1], error)
                continue
            except Exception as error:  # noqa: BLE001 - released, and won again
                failure = error if isinstance(error, ShoalError) else NotStored(str(error))
                log.warning("partitions not taken", error=str(error))
                for _, done in won.values():
                    _finish(done, failure)
                return
            for _, done in won.values():
                _finish(done, None)
            return

    async def _supersede(self, fenced: Collection[int], won: Won) -> dict[int, int]:
        """Return new epochs for partitions whose stored ones come from a tree that is gone.

        After ZooKeeper lost its data, creation numbers begin anew, below the stored epochs. While
        our owner znode stands, no owner in the present tree can have had a higher number, so a
        higher stored one is older history: its successor is one more. If another master is quicker
        with that, taking it raises Fenced again.
        """
        try:
            stored = await self._engine.stored_epochs(fenced)  # read before the znodes are
            ours = await self.share.confirmed(Partition(TOPIC, index) for index in fenced)
        except ShoalError as error:
            log.warning("ownership not checked", error=str(error))
            return {}
        # An epoch that was superseded already and is fenced again has really been overtaken.
        found = {
            partition.index: stored[partition.index] + 1
            for partition, epoch in ours.items()
            if won[partition.index][0] == epoch
        }
        if found:
            log.warning("epochs of a lost ZooKeeper tree superseded", partitions=sorted(found))
        return found

    async def _acquired(self, partition: Partition, epoch: int) -> None:
        if self._over:
            raise NotStored(LEAVING)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._won[partition.index] = (epoch, done)
        self._news.set()
        await done

    async def _released(self, partition: Partition) -> None:
        await self._drop([partition.index])

    async def _lost(self, partitions: Collection[Partition]) -> None:
        await self._drop([partition.index for partition in partitions])

    async def _drop(self, partitions: Collection[int]) -> None:
        await self._engine.drop(partitions)
        self._notifications.subscribe(self._engine.epochs)


def _finish(done: asyncio.Future[None], error: ShoalError | None) -> None:
    if done.done():
        return  # the partition was lost meanwhile
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
