"""Which partitions stand still: without an owner, or with another one than the database knows.

An owner works by two records: its znode, and the epoch in the database that lets it write. For the
time of a takeover they differ. If they differ for longer, its writes are refused, whatever its
znode says.
"""

import asyncio
import time
from collections.abc import Collection, Mapping
from typing import Self

import structlog

from shoal.coordination import background
from shoal.coordination.cluster.layout import Binding
from shoal.coordination.cluster.owners import Disagreement, Owners, disagreements
from shoal.coordination.cluster.tree import TreeKeeper
from shoal.coordination.errors import CoordinationError
from shoal.core.errors import ShoalError
from shoal.core.runs.records import PartitionRow, StoredBinding
from shoal.sql import Database

log = structlog.get_logger()

# In parts of the session timeout:
LOOK = 0.25  # between two checks
CALM = 0.5  # the same, while the last check has found nothing
# For so long without an owner, or with two: a takeover takes less, even if a member dies meanwhile.
LONG = 1.0


class OwnershipWatch:
    """Compare owners in ZooKeeper and in the database, for the life of the ``async with`` block.

    ``keeper`` knows what the tree is bound to.
    """

    def __init__(
        self,
        owners: Owners,
        database: Database,
        keeper: TreeKeeper,
        partitions: int,
        session_timeout_s: float,
    ) -> None:
        self._owners, self._database, self._keeper = owners, database, keeper
        self._partitions, self._timeout_s = partitions, session_timeout_s
        # partition -> when it was first seen like that; monotonic
        self._unowned: dict[int, float] = {}
        self._differing: dict[int, float] = {}
        self._disagreements: Mapping[int, Disagreement] = {}
        self._stored: StoredBinding | None = None  # as last read
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = background.keep_running(self._run, "owners of partitions")
        return self

    async def __aexit__(self, *_: object) -> None:
        await background.stop(self._task)

    @property
    def long_s(self) -> float:
        """How long a takeover may take before a partition is named."""
        return LONG * self._timeout_s

    def without_owner(self) -> list[int]:
        """Return the partitions that have had no owner for ``long_s`` or more, sorted."""
        return self._for_long(self._unowned)

    def with_two_owners(self) -> list[Disagreement]:
        """Return where ZooKeeper and the database have differed for ``long_s`` or more, sorted."""
        return [self._disagreements[number] for number in self._for_long(self._differing)]

    @property
    def foreign(self) -> tuple[Binding, StoredBinding] | None:
        """What this API's tree and its database are bound to, if not to each other."""
        binding = self._keeper.other or self._keeper.binding
        if binding is None or self._stored is None:
            return None
        is_bound = binding == Binding(self._stored.tree or "", self._stored.cluster)
        return None if is_bound else (binding, self._stored)

    def _for_long(self, since: Mapping[int, float]) -> list[int]:
        until = time.monotonic() - self.long_s
        return sorted(partition for partition, at_s in since.items() if at_s <= until)

    async def _run(self) -> None:
        while True:
            try:
                await self._look()
            except ShoalError as error:
                log.debug("owners not compared", error=str(error))  # /health says so, too
            is_calm = not self._unowned and not self._differing
            await asyncio.sleep((CALM if is_calm else LOOK) * self._timeout_s)

    async def _look(self) -> None:
        try:
            owners = await self._owners.all_owners(self._partitions)
        except CoordinationError:
            # Owners that cannot be read differ from nothing.
            self._differing, self._disagreements = {}, {}
            raise
        ownerless = [number for number in range(self._partitions) if number not in owners]
        self._unowned = _still(self._unowned, ownerless)
        try:
            rows = await self._read()
        except ShoalError:
            self._differing, self._disagreements = {}, {}
            raise
        self._disagreements = disagreements(owners, rows)
        self._differing = _still(self._differing, self._disagreements)

    async def _read(self) -> list[PartitionRow]:
        async with self._database.unit_of_work(read_only=True) as uow:
            self._stored = await uow.cluster.binding(self._database.address)
            return await uow.partitions.all()


def _still(since: Mapping[int, float], now: Collection[int]) -> dict[int, float]:
    """Return since when each of ``now`` is like that."""
    now_s = time.monotonic()
    return {partition: since.get(partition, now_s) for partition in now}
