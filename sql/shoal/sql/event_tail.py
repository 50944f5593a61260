"""Follow the event table without missing or repeating a row."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog
from sqlalchemy import select, text

from shoal.core.runs.records import ChangeEvent
from shoal.sql.driver.connection import Connection
from shoal.sql.engine import Database
from shoal.sql.repositories.events import change_event
from shoal.sql.schema.tables import event

log = structlog.get_logger()

# After this time the writers of events are looked up: a transaction that writes no events (a job in
# another database of the server, an index that is being built) must not delay events for hours.
ASK_AFTER_S = 1.0
# A writer that has been open for longer is logged, once.
LONG_S = 15.0
# How far back a tail that starts "now" searches for transactions that are not committed yet.
_LOOK_BACK = 1_000

# pg_snapshot_xmax would not do for ``next``: it is one past the last *ended* transaction, and a
# younger one may already run and hold an id. age() asks the counter, after the snapshot is taken.
_SNAPSHOT = text(
    "SELECT pg_snapshot_xmin(s)::text::bigint AS oldest, age(pg_snapshot_xmin(s)::xid) AS younger"
    " FROM pg_current_snapshot() AS s"
)

# An INSERT locks the table before it takes ids, and the lock is held until the transaction has
# become visible or was rolled back. Prepared transactions are listed, too.
_WRITERS = text(
    "SELECT DISTINCT virtualtransaction AS writer FROM pg_locks"
    " WHERE locktype = 'relation' AND relation = CAST('event' AS regclass) AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock',"
    " 'AccessExclusiveLock')"
)


@dataclass(frozen=True)
class _Snapshot:
    """Transactions below ``oldest`` have ended, those from ``next`` on have not begun to write."""

    oldest: int
    next: int


@dataclass
class _Barrier:
    """Ids up to ``high`` are settled once no transaction below ``next`` is open.

    They are settled earlier if none of ``writers`` is open: the transactions that had the
    event table open at some time after ``high`` was visible. None: not looked up yet.
    """

    high: int
    next: int
    noticed_s: float
    writers: frozenset[str] | None = None
    is_logged: bool = field(default=False)

    @property
    def is_closed(self) -> bool:
        """Whether all transactions have ended that could fill a gap."""
        return self.writers is not None and not self.writers


class EventTail:
    """Returns every event exactly once, in order of ids; one consumer.

    A missing id below a visible one is a transaction that was rolled back or one that has not
    committed yet. PostgreSQL knows: an id is given out inside a transaction that has a number
    already (events are never its first write), so when all transactions that ran while the gap
    was seen have ended, what is still missing will never come. Until then the rows behind the
    gap are held back, a few milliseconds as a rule. If it takes longer than ``ask_after_s``, only
    transactions that have the event table open are waited for. A gap is never given up after some
    time: a transaction that waits for a lock or for a standby commits late, but it commits. On
    SQLite commits come in order of ids.

    ``after``: the id of the last event that the consumer knows; None: only what happens from now
    on (then events that were just being committed may be ones the consumer has seen the effect
    of). ``clock`` returns monotonic seconds.
    """

    def __init__(
        self,
        database: Database,
        *,
        after: int | None = None,
        limit: int = 500,
        ask_after_s: float = ASK_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._position = after
        self._limit = limit
        self._ask_after_s = ask_after_s
        self._clock = clock
        self._barrier: _Barrier | None = None

    @property
    def position(self) -> int | None:
        """Every event up to this id was returned or lies before the start; None: not started."""
        return self._position

    async def start(self) -> int:
        """Fix the starting point now instead of at the first ``next_batch``; return it."""
        if self._position is None:
            self._position = await self._present_end()
        return self._position

    async def next_batch(self) -> list[ChangeEvent]:
        """Return what has become visible since the last call, at once; maybe nothing."""
        position = await self.start()
        # Before the rows are read: what an ended writer has committed is among them.
        await self._look_for_writers()
        async with self._database.unit_of_work(read_only=True) as uow:
            snapshot = await _snapshot(uow.connection)
            query = (
                select(event).where(event.c.id > position).order_by(event.c.id).limit(self._limit)
            )
            found = [change_event(row) for row in await uow.connection.rows(query)]
        ready = self._settled([one.id for one in found], position, snapshot)
        if ready:
            self._position = found[ready - 1].id
        return found[:ready]

    def _settled(self, ids: Sequence[int], position: int, snapshot: _Snapshot) -> int:
        """Return how many of the visible ``ids`` may go out."""
        if not ids:
            return 0
        settled_to = position
        if snapshot.oldest >= snapshot.next:
            settled_to = ids[-1]
        elif self._barrier is not None and (
            snapshot.oldest >= self._barrier.next or self._barrier.is_closed
        ):
            settled_to = self._barrier.high
            self._barrier = None
        ready = 0
        for one in ids:
            if one > max(settled_to, position + 1):
                break
            position = one
            ready += 1
        if ready < len(ids) and self._barrier is None:
            self._barrier = _Barrier(ids[-1], snapshot.next, self._clock())
        elif ready == len(ids):
            self._barrier = None
        return ready

    async def _look_for_writers(self) -> None:
        """Note which transactions could still fill the gap, once it has been open for a while."""
        barrier = self._barrier
        if barrier is None or self._clock() < barrier.noticed_s + self._ask_after_s:
            return
        async with self._database.unit_of_work(read_only=True) as uow:
            found = frozenset(row.writer for row in await uow.connection.rows(_WRITERS))
        barrier.writers = found if barrier.writers is None else barrier.writers & found
        waited_s = self._clock() - barrier.noticed_s
        if barrier.writers and waited_s >= LONG_S and not barrier.is_logged:
            barrier.is_logged = True
            log.warning(
                "events wait for a transaction that has not ended",
                behind=self._position,
                seconds=round(waited_s, 1),
                writers=sorted(barrier.writers),
            )

    async def _present_end(self) -> int:
        async with self._database.unit_of_work(read_only=True) as uow:
            snapshot = await _snapshot(uow.connection)
            query = select(event.c.id).order_by(event.c.id.desc()).limit(_LOOK_BACK)
            ids = [row.id for row in await uow.connection.rows(query)]
        if not ids:
            return 0
        if snapshot.oldest >= snapshot.next:
            return int(ids[0])
        # A transaction is open: what is missing may still come, so start before the first gap.
        ids.reverse()
        end = int(ids[0])
        for one in ids[1:]:
            if one != end + 1:
                break
            end = one
        return end


async def _snapshot(connection: Connection) -> _Snapshot:
    if connection.dialect == "sqlite":
        return _Snapshot(0, 0)
    row = await connection.first(_SNAPSHOT)
    assert row is not None, "a SELECT of a function has a row"
    return _Snapshot(row.oldest, row.oldest + row.younger)
