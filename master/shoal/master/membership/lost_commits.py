"""Notice a database that has lost commits, and give none of its ids a second time.

A failover to a replica that was behind, or an older copy in the database's place, takes commits
back that were acknowledged. Then the database gives out ids again that are known outside: a claim,
a log or an object of a lost attempt would be taken for that of another one. The database cannot
notice this. So the tree in ZooKeeper remembers how far it has come: the beats of the binding and
the highest committed ids, raised at every look (``LOOK`` session timeouts).

A look reads the znode first and the database second: what the database has said before, it must
still know. If it does not:

1. the time is written into the znode, so that all masters report it for seven days;
2. one transaction moves the ids beyond the lost ones, and raises the epoch of every partition. Its
   owners are fenced, take new epochs, and read their runs anew.

What can fail: a master that dies between the two leaves a database that is behind, and the next
look, of any master, does both again. Of two masters that look at once, the second finds the
database ahead. If ZooKeeper loses its data, masters write the watermark that they remember. A
master looks before it takes its first partition, so nothing is started from a copy that was put
in place while all masters were stopped. Under running masters, ids that were lost can be given
again until the next look.
"""

import math
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from shoal.coordination import ZkSession
from shoal.coordination.cluster.watermark import StoredWatermark, WatermarkNode
from shoal.core.runs.records import Watermark
from shoal.sql import Database

log = structlog.get_logger()

LOOK = 0.9  # session timeouts between two looks: at every second beat of the binding
_REPORTED = timedelta(days=7)


class LostCommits:
    """Compares the database with the watermark in the tree."""

    def __init__(
        self,
        database: Database,
        session: ZkSession,
        cluster: str,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``cluster`` is its uid; ``clock`` returns aware UTC times, ``monotonic`` seconds."""
        self._database, self._cluster, self._clock = database, cluster, clock
        self._monotonic, self._session = monotonic, session
        self._node = WatermarkNode(session, cluster)
        self._looked_s = -math.inf  # monotonic, when the last completed look began
        self._suspicions = 0
        self._mark: Watermark | None = None  # what this master has seen, as the znode can be lost
        self._lost_at: str | None = None

    @property
    def reported(self) -> str | None:
        """When commits were last found lost, as an ISO timestamp; None: not in seven days."""
        try:
            at = datetime.fromisoformat(self._lost_at or "")
            return self._lost_at if self._clock() - at < _REPORTED else None
        except (TypeError, ValueError):  # none, or junk in the znode
            return None

    def suspect(self) -> None:
        """Make the next look due now: the database refused a write, so it may be an older copy."""
        self._suspicions += 1

    async def look_if_due(self) -> None:
        """Look ``LOOK`` session timeouts after the last look, or after a suspicion.

        A look that fails stays due. Raises ShoalError.
        """
        late = self._monotonic() - self._looked_s >= LOOK * self._session.timeout_s
        if late or self._suspicions:
            await self.look()

    async def look(self) -> None:
        """Compare the two, and repair a database that is behind. Raises ShoalError."""
        began_s, seen = self._monotonic(), self._suspicions
        await self._compare()
        self._looked_s = began_s
        self._suspicions -= seen  # a write that was refused meanwhile makes another look due

    async def _compare(self) -> None:
        stored = await self._node.read()
        async with self._database.unit_of_work(read_only=True) as uow:
            progress = await uow.watermarks.read()
        if progress is None or progress.cluster != self._cluster:
            return  # the beat of the tree deals with it
        if stored.lost_at is not None and stored.lost_at != self._lost_at:
            self._lost_at = stored.lost_at
            self._database.forget_plans()
        mark = self._mark or Watermark(0, {})
        if stored.mark is not None:
            mark = mark.raised_to(stored.mark)
        missing = progress.missing(mark)
        if missing:
            await self._repair(mark, missing, stored)
            return
        self._mark = mark.raised_to(progress.committed)
        if self._mark != stored.mark:
            await self._node.write(self._mark, self._lost_at, stored)

    async def _repair(
        self, mark: Watermark, missing: dict[str, tuple[int, int]], stored: StoredWatermark
    ) -> None:
        lost_at = self._clock().isoformat(timespec="seconds")
        if not await self._node.write(mark, lost_at, stored):
            return  # another master is at it: the next look shows
        async with self._database.unit_of_work() as uow:
            is_moved = await uow.watermarks.move_beyond(mark)
            await uow.commit()
        self._lost_at = lost_at
        self._database.forget_plans()
        if is_moved:
            log.error(
                "the database has lost commits: an older copy or a replica that was behind has "
                "taken its place; ids of new rows are beyond the lost ones",
                database=self._database.address,
                missing={name: f"{now}, was {was}" for name, (now, was) in missing.items()},
            )
