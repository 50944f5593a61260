"""Which partitions this master owns, and what follows from a change.

Every master reads the same member list and computes the same wish (rendezvous hashing), and the
ephemeral owner znodes say who really owns what. The engine holds a partition only while its
znode is ours: taken after the znode is, given up before it goes.
"""

from collections.abc import Iterable, Mapping

import structlog

from shoal.coordination import Bells, Members, Ownership, ZkSession
from shoal.core.assign import rendezvous
from shoal.master.engine import Engine
from shoal.sql.errors import Fenced

log = structlog.get_logger()


class PartitionKeeper:
    """Keeps wish, ownership, bells and engine in step for one master."""

    def __init__(
        self,
        session: ZkSession,
        master_id: str,
        address: str,
        partitions: int,
        masters: Members,
        engine: Engine,
        bells: Bells,
        takeover_delay_s: float,
    ) -> None:
        self._master_id = master_id
        self._count = partitions
        self._masters = masters
        self._engine = engine
        self._bells = bells
        self.ownership = Ownership(
            session,
            owner_id=master_id,
            data={"address": address},
            on_acquired=self._acquired,
            on_released=self._released,
            on_lost=self._lost,
            takeover_delay_s=takeover_delay_s,
        )

    def rebalance(self) -> None:
        """Wish for this master's share among the present members."""
        members = sorted(self._masters.current())
        mine = rendezvous(self._count, members).get(self._master_id, [])
        log.info("partitions wished for", count=len(mine), masters=len(members))
        self.ownership.set_wanted(set(mine))

    async def _acquired(self, epochs: Mapping[int, int]) -> None:
        try:
            await self._engine.take(dict(epochs), self._master_id)
        except Fenced as error:
            log.warning("a newer owner was quicker", partitions=sorted(error.partitions))
            return
        # Each new bell rings once by itself, so what waits in the partition is looked at now.
        self._bells.listen(set(self._engine.epochs))

    async def _released(self, partitions: Iterable[int]) -> None:
        await self._engine.drop(partitions)
        self._bells.listen(set(self._engine.epochs))

    async def _lost(self, partitions: Iterable[int]) -> None:
        log.warning("session lost: partitions given up")
        await self._engine.drop(partitions)
