"""The partitions that a master holds, and their open runs in memory.

Memory is a cache of the database. What is in doubt, because a store failed or a run cannot be
worked with, is evicted, and read again before it is worked with again.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import datetime

import structlog

from shoal.core.runs.quarantine import ItemKind, QuarantinedItem
from shoal.core.runs.run import Decision, Run
from shoal.core.runs.states import OPEN_WORKFLOW
from shoal.master.engine import messages
from shoal.master.engine.listeners import Listener, Listeners
from shoal.master.engine.quarantine import Quarantine
from shoal.master.errors import PartitionNotOwned
from shoal.master.loops import LongTurn
from shoal.runtime import failpoints
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import NotFound, UnreadableRow

log = structlog.get_logger()

Clock = Callable[[], datetime]


class HeldRuns(ABC):
    """Takes partitions with their runs, and drops them.

    ``runs`` and ``epochs`` belong to what decides, and to ``take``, ``drop`` and ``heal``, all of
    them on one event loop and each under ``_lock``.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        listeners: Listeners,
        retry_s: float,
        tree: Callable[[], str] | None = None,
    ) -> None:
        """``retry_s``: until what is quarantined is tried again, for the first time.

        ``tree`` returns the id of the ZooKeeper tree that partitions are won in: they are taken
        only while the database is bound to it. None: it is bound to none.
        """
        self._database, self._clock, self._tree = database, clock, tree
        self._listeners = listeners
        self._lock = asyncio.Lock()
        self.epochs: dict[int, int] = {}  # of the partitions held; read by rpc and services
        self._taking: dict[int, int] = {}  # partitions whose runs are being read, as ``epochs``
        self.runs: dict[int, Run] = {}  # open runs by instance id
        self.quarantine = Quarantine(
            database,
            clock,
            self.epochs,
            retry_s,
            on_retry=self._try_again,
            on_storing=self._report_aside,
            on_stored=self._put_aside,
        )
        self._spoilt: set[int] = set()  # runs to be evicted as soon as nothing is being decided
        self._stale: set[int] = set()  # runs whose events a failed store has lost, see heal()
        # Runs that leave quarantine, or may do so: their slots may have been given to others.
        self._on_trial: set[int] = set()
        self._reported: set[int] = set()  # partitions that messages about quarantine are for

    @abstractmethod
    def adopt(self, run: Run, begun: Decision | None = None) -> None:
        """Hold a run that is stored and open, and carry on with it.

        ``begun``: what it began with, if that was decided and stored already.
        """

    def register(self, *listeners: Listener) -> None:
        """Let these hear what is stored."""
        self._listeners.register(*listeners)

    def epoch_of(self, partition: int) -> int:
        """Return the fencing number of a partition held. Raises PartitionNotOwned."""
        try:
            return self.epochs[partition]
        except KeyError:
            raise PartitionNotOwned(partition) from None

    def owns(self, partition: int) -> bool:
        """Return whether a partition is held."""
        return partition in self.epochs

    # -- partitions --------------------------------------------------------------------------

    async def take(self, epochs: dict[int, int], owner: str) -> None:
        """Take over partitions: raise their epochs, load their open runs, carry on with them.

        Those that are held already are worked on meanwhile. Raises Fenced if an owner
        with a newer epoch was quicker, BoundElsewhere if the database is served from another tree.
        """
        async with self._lock:
            async with self._database.unit_of_work() as uow:
                if self._tree is not None:
                    await uow.cluster.require_tree(self._tree(), self._database.address)
                await uow.partitions.raise_epochs(epochs, owner)
                self._on_trial |= await uow.quarantine.clear(epochs)
                failpoints.hit("takeover.before_commit")
                await uow.commit()
            failpoints.hit("takeover.after_commit")
            self._forget(set(epochs))
            self._taking.update(epochs)
        try:
            for partition, epoch in epochs.items():
                await self._load(partition, epoch)
        except BaseException:
            # Half loaded is not held: runs that are not in memory would be forgotten.
            async with self._lock:
                self._forget(set(epochs))
            raise
        failpoints.hit("takeover.after_load")
        log.info("partitions taken", count=len(epochs), open_runs=len(self.runs))

    async def stored_epochs(self, partitions: Collection[int]) -> dict[int, int]:
        """Return the epochs that the database knows."""
        async with self._database.unit_of_work(read_only=True) as uow:
            rows = await uow.partitions.all()
        return {row.index: row.epoch for row in rows if row.index in partitions}

    async def drop(self, partitions: Iterable[int]) -> None:
        """Give partitions up. A batch under way is finished first; later events are refused."""
        async with self._lock:
            self._forget(set(partitions))
        failpoints.hit("release.after_drop")

    def _forget(self, partitions: set[int]) -> None:
        for partition in partitions:
            self.epochs.pop(partition, None)
            self._taking.pop(partition, None)
        self.quarantine.forget(partitions)
        gone = [i for i, run in self.runs.items() if run.partition in partitions]
        for instance_id in gone:
            del self.runs[instance_id]
            self._listeners.on_dropped(instance_id)

    async def _load(self, partition: int, epoch: int) -> None:
        """Read the open runs of a partition whose epoch is ours, and carry on with them.

        Nothing changes them meanwhile: former owners are fenced, and events of a partition that is
        not in ``epochs`` yet are refused.
        """
        bad: list[UnreadableRow] = []
        async with self._database.unit_of_work(read_only=True) as uow:
            runs = await uow.instances.open_runs(partition, bad.append)
        async with self._lock:
            if self._taking.get(partition) != epoch:
                return  # dropped in the meantime, perhaps taken again
            del self._taking[partition]
            self.epochs[partition] = epoch
            for error in bad:
                self.quarantine.put(ItemKind.INSTANCE, error.key, partition, error)
            turn = LongTurn()
            for run in runs:
                self.adopt(run)
                await turn.pause()

    # -- what is in doubt --------------------------------------------------------------------

    def quarantine_run(self, run: Run, error: Exception) -> None:
        """Do nothing more with a run: its actions, or a decision about it, fail."""
        self.quarantine.put(ItemKind.INSTANCE, run.id, run.partition, error)
        self._spoilt.add(run.id)

    def _passed(self, run: Run) -> None:
        """Let a run leave quarantine: what was decided about it is stored and performed."""
        if not self.quarantine.holds(ItemKind.INSTANCE, run.id):
            self.quarantine.passed(ItemKind.INSTANCE, run.id)

    def _evict_spoilt(self) -> None:
        """Evict the runs that are quarantined. Called while nothing is being decided."""
        for instance_id in self._spoilt:
            if self.quarantine.holds(ItemKind.INSTANCE, instance_id):
                self.runs.pop(instance_id, None)
        self._spoilt.clear()

    def _try_again(self, one: QuarantinedItem) -> None:
        """A quarantined run is due: the next ``heal`` reads it again."""
        if one.kind is ItemKind.INSTANCE:
            self._stale.add(int(one.item))
            self._on_trial.add(int(one.item))

    async def _report_aside(self, uow: UnitOfWork, items: Collection[QuarantinedItem]) -> None:
        """Tell the parents of these runs, or of their starts, in the transaction that stores it."""
        starts = [int(one.item) for one in items if one.kind is ItemKind.COMMAND]
        self._reported |= await messages.tell_of_quarantine(
            uow, self._clock(), _instances_among(items), starts, is_quarantined=True
        )

    def _put_aside(self, items: Collection[QuarantinedItem]) -> None:
        """It is stored that these are quarantined."""
        if ids := _instances_among(items):
            self._listeners.on_quarantined(ids)
        if self._reported:
            self._listeners.on_commands(self._reported)
            self._reported = set()

    def _evict(self, instance_ids: Iterable[int]) -> None:
        """After a failed store: what memory decided did not happen, so it is read again."""
        for instance_id in instance_ids:
            self.runs.pop(instance_id, None)
            self._stale.add(instance_id)

    @asynccontextmanager
    async def stored(self, instance_ids: Collection[int]) -> AsyncIterator[dict[int, Run]]:
        """Yield runs exactly as they are stored; those that cannot be read are left out.

        No batch is decided and no partition dropped while the block lasts, so what it writes to
        ZooKeeper comes before the writes of any later decision. Keep it short.
        """
        async with self._lock:
            found = {i: self.runs[i] for i in instance_ids if i in self.runs}
            if len(found) < len(set(instance_ids)):
                async with self._database.unit_of_work(read_only=True) as uow:
                    for instance_id in set(instance_ids) - found.keys():
                        with suppress(NotFound, UnreadableRow):
                            found[instance_id] = await uow.instances.run(instance_id)
            yield found

    async def heal(self) -> None:
        """Carry on with the runs that a failed store has cost events.

        Most are read again. One that a later event has brought back into memory by itself needs
        its ``Begun`` as well: wake-ups and kills may be among what was lost.
        """
        async with self._lock:
            self._evict_spoilt()
            found = [self.runs[i] for i in self._stale & self.runs.keys()]
            missing = self._stale - self.runs.keys()
            if missing:
                async with self._database.unit_of_work(read_only=True) as uow:
                    for instance_id in missing:
                        try:
                            found.append(await uow.instances.run(instance_id))
                        except NotFound:
                            self.quarantine.passed(ItemKind.INSTANCE, instance_id)
                        except UnreadableRow as error:
                            if error.partition in self.epochs:
                                self.quarantine.put(
                                    ItemKind.INSTANCE, instance_id, error.partition, error
                                )
            for run in found:
                if self.quarantine.holds(ItemKind.INSTANCE, run.id):
                    continue
                if run.partition in self.epochs and run.state in OPEN_WORKFLOW:
                    self.adopt(run)
                else:
                    self.quarantine.passed(ItemKind.INSTANCE, run.id)
            self._stale.clear()


def _instances_among(items: Collection[QuarantinedItem]) -> list[int]:
    return [int(one.item) for one in items if one.kind is ItemKind.INSTANCE]
