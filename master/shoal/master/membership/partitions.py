"""Which partitions this master owns, and what follows from a change.

The masters share the partitions out by ``FairShare``: their group assigns, owner znodes decide. The
engine holds a partition only while its znode is ours: taken after the znode is, dropped before it
goes. So the next owner finds a partition free, and no decision is made in it.

The database fences a former owner, and as a rule that owner's znode has gone before. If a fence
refuses an epoch whose znode stands, both are right in their own view and nothing would ever
change: the database was restored or edited, or a master in another tree has raised the epoch.
Then the partition is *stranded*. The keeper gives it up, so that its znode goes, and acquires it
again with a new epoch. Between two times it pauses, twice as long each time, up to
``LONGEST_PAUSE_S``: masters in two trees would otherwise take partitions from each other as fast
as they can write. The fence decides all the while who acts. What ends such a contest is the
binding of tree and database, which every takeover requires (``coordination/cluster/binding.py``).
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from shoal.coordination import (
    FairShare,
    GroupSettings,
    Notifications,
    OwnerNodes,
    OwnershipListener,
    Partition,
    ZkSession,
)
from shoal.coordination.cluster import layout
from shoal.core.errors import ShoalError
from shoal.master.engine.engine import LEAVING, Engine
from shoal.master.errors import NotStored
from shoal.master.settings import MasterSettings
from shoal.sql.errors import BoundElsewhere, Fenced

log = structlog.get_logger()

TOPIC = "partitions"

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0  # before a stranded partition is acquired again
_FORGIVEN_S = 10 * LONGEST_PAUSE_S  # held for so long, the pauses begin anew
_FENCED_LONG_S = 30.0  # refused for so long: more than a takeover
_FENCED_PAUSE_S = 60.0  # without a refusal for so long: over
_AGAIN_S = 1.0  # after it could not be found out whose the owner znodes are

# Partitions won in ZooKeeper, each with its epoch and a future that ends when it is taken.
Won = dict[int, tuple[int, asyncio.Future[None]]]


@dataclass(frozen=True)
class GivenUp:
    """How often this master gave partitions up because the database refused their epochs."""

    times: int = 0
    partitions: int = 0  # at the last time
    at: datetime | None = None  # the last time, by this machine's clock: for people

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON."""
        at = self.at.isoformat(timespec="seconds") if self.at else None
        return {"times": self.times, "partitions": self.partitions, "at": at}


@dataclass
class _Refusals:
    """Refused writes for one epoch of a partition, without a longer pause; monotonic."""

    first_s: float
    last_s: float
    since: datetime  # the same as ``first_s``, for people


class FencedWrites:
    """Since when the database refuses this master's writes for partitions that it owns.

    Refusals of an epoch within a moment belong to a takeover; those of several partitions may be
    several takeovers. An owner one of whose epochs stays fenced stands still.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], _Refusals] = {}  # by partition and epoch

    def note(self, epochs: Mapping[int, int], now_s: float) -> None:
        """Note that a write was refused. ``epochs``: those that the fence refused, by partition."""
        self._forget(now_s)
        for key in epochs.items():
            found = self._found.setdefault(key, _Refusals(now_s, now_s, datetime.now(UTC)))
            found.last_s = now_s

    def since(self, now_s: float) -> datetime | None:
        """Return since when a partition has been fenced, if it has lasted long and goes on."""
        self._forget(now_s)
        long = (
            one.since for one in self._found.values() if one.last_s - one.first_s >= _FENCED_LONG_S
        )
        return min(long, default=None)

    def _forget(self, now_s: float) -> None:
        over = [key for key, one in self._found.items() if now_s - one.last_s > _FENCED_PAUSE_S]
        for key in over:
            del self._found[key]


@dataclass
class _Taken:
    """A partition that the engine has taken."""

    epoch: int  # in the database
    node: int  # of the owner znode: lower, if the stored one was that of a lost tree
    since_s: float  # monotonic


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
        self._taken: dict[int, _Taken] = {}
        self._refused: dict[int, int] = {}  # epochs that a fence has refused, to be looked into
        self._has_refused = asyncio.Event()
        self._strandings: dict[int, int] = {}  # partition -> how often, not long ago
        self.given_up = GivenUp()
        self.fenced_writes = FencedWrites()
        # Called when some are given up, or cannot be taken since the database is bound elsewhere.
        self.on_stranded: Callable[[], None] = lambda: None
        self._over = False  # partitions that are won are not taken
        self.share = FairShare(
            session,
            layout.MASTERS_GROUP,
            {TOPIC: partitions},
            OwnerNodes(
                lambda partition: layout.owner(partition.index), master_id, {"address": address}
            ),
            OwnershipListener(self._acquired, self._released, self._lost),
            settings=GroupSettings(
                rebalance_timeout_s=settings.rebalance_timeout_s,
                initial_rebalance_delay_s=settings.initial_rebalance_delay_s,
            ),
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

    # -- stranded partitions -----------------------------------------------------------------

    def fenced(self, epochs: Mapping[int, int]) -> None:
        """A transaction's fence has refused these epochs. Called on the loop, from any service."""
        current = {p: epoch for p, epoch in epochs.items() if self._is_taken(p, epoch)}
        if current:
            self.fenced_writes.note(current, time.monotonic())
            self._refused |= current
            self._has_refused.set()

    async def compare(self) -> None:
        """Find epochs that a fence would refuse, before there is anything to write.

        Raises DatabaseUnavailable.
        """
        before = dict(self._taken)
        stored = await self._engine.stored_epochs(before)
        # What was taken meanwhile may be newer than what was read.
        same = {p: one.epoch for p, one in before.items() if self._taken.get(p) is one}
        self.fenced({p: epoch for p, epoch in same.items() if stored.get(p) != epoch})

    async def give_up_fenced(self) -> None:
        """Give up partitions that a fence refuses although their znodes are ours. Runs for ever."""
        while True:
            await self._has_refused.wait()
            self._has_refused.clear()
            refused, self._refused = self._refused, {}
            refused = {p: e for p, e in refused.items() if self._is_taken(p, e)}
            try:
                ours = await self.share.confirmed(Partition(TOPIC, index) for index in refused)
            except ShoalError as error:
                log.warning("ownership not checked", error=str(error))
                await asyncio.sleep(_AGAIN_S)
                self._refused = refused | self._refused
                self._has_refused.set()
                continue
            # The znodes of all others have gone: the ownership finds that out itself.
            stranded = {
                partition: epoch
                for partition, epoch in ours.items()
                if self._is_taken(partition.index, refused[partition.index])
                and self._taken[partition.index].node == epoch
            }
            if stranded:
                await self._give_up(stranded)

    def _is_taken(self, partition: int, epoch: int) -> bool:
        return partition in self._taken and self._taken[partition].epoch == epoch

    async def _give_up(self, epochs: Mapping[Partition, int]) -> None:
        now_s = time.monotonic()
        for partition in epochs:
            if now_s - self._taken[partition.index].since_s > _FORGIVEN_S:
                self._strandings.pop(partition.index, None)
        pause_s = self._pause_s([partition.index for partition in epochs])
        log.error(
            "the database has another owner although our owner znodes stand: giving partitions up",
            partitions=sorted(partition.index for partition in epochs),
            pause_s=pause_s,
            times=self.given_up.times + 1,
        )
        given = await self.share.give_up(epochs, pause_s)
        self.given_up = GivenUp(self.given_up.times + 1, len(given), datetime.now(UTC))
        self.on_stranded()

    def _pause_s(self, partitions: Collection[int]) -> float:
        """Count that these were stranded; return how long to leave them alone."""
        for partition in partitions:
            self._strandings[partition] = self._strandings.get(partition, 0) + 1
        times = max(self._strandings[partition] for partition in partitions)
        return min(FIRST_PAUSE_S * 2.0 ** min(times - 1, 20), LONGEST_PAUSE_S)

    # -- taking and dropping -----------------------------------------------------------------

    async def _take(self, won: Won) -> None:
        nodes = {partition: epoch for partition, (epoch, _) in won.items()}
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
                if isinstance(error, BoundElsewhere):
                    self.on_stranded()
                for _, done in won.values():
                    _finish(done, failure)
                return
            now_s = time.monotonic()
            for partition, (epoch, done) in won.items():
                if not done.done():  # else it was lost meanwhile, and dropped
                    self._taken[partition] = _Taken(epoch, nodes[partition], now_s)
                _finish(done, None)
            # The first decisions may have been fenced before the engine had returned.
            self.fenced({p: one[0] for p, one in won.items() if p not in self._engine.epochs})
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
        for partition in partitions:
            self._taken.pop(partition, None)
        await self._engine.drop(partitions)
        self._notifications.subscribe(self._engine.epochs)


def _finish(done: asyncio.Future[None], error: ShoalError | None) -> None:
    if done.done():
        return  # the partition was lost meanwhile
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
