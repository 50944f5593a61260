"""The priority queue of tasks that wait for a worker, one for each worker group.

The database is the truth; the queue can be rebuilt from it. Entries are names (entry.py).
A task is queued, or claimed by a live session, or neither, never both: one multi creates the
ephemeral claim and deletes the entry. Every method may raise ConnectionLoss and SessionLost;
``put``, ``remove``, ``release`` and ``requeue`` may simply be repeated, at any time: a claim is
ended only while it is that very claim, of the session and with the creation zxid that it had.

Who gets what: a claimer alone gets exactly the first entries. Several do, too, while their
claims do not collide. When two do, both share the head out (contention.py) for some seconds:
then a claimer takes the first entries of its own share. So an entry may be overtaken, but

- only by entries among the first ``claimers x max(32, 8 x count)`` of the queue (at least 128,
  at most 1000);
- only until each claimer has found it still there ``1 + log2(claimers)`` times. While it claims,
  it checks every 0.25 s (less often on a machine so busy that a reading takes more than 50 ms).

So a more important entry is claimed before all that are not among those first with it. No group
waits for another, and an entry that cannot be claimed yet (its task still runs
in another session) holds up no other.
"""

import asyncio
from collections import defaultdict
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import suppress
from dataclasses import fields
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

import structlog

from shoal.coordination import background, znodes
from shoal.coordination.cluster import layout
from shoal.coordination.errors import (
    CoordinationError,
    NoNode,
    NotEmpty,
    SessionLost,
)
from shoal.coordination.queue.claims import SessionClaims
from shoal.coordination.queue.entry import QueueEntry, TaskClaim
from shoal.coordination.queue.head import QueueHead
from shoal.coordination.queue.putter import Putter
from shoal.coordination.queue.releases import ClaimReleases
from shoal.coordination.queue.survey import QueueLimits, QueuePosition, Survey
from shoal.coordination.queue.transfer import ClaimTransfer, Moves
from shoal.coordination.session.defaults import BATCH
from shoal.coordination.session.session import ZkSession

log = structlog.get_logger()

T = TypeVar("T")

BATCHES_AT_ONCE = 8
LIMITS = QueueLimits()
TIMER_S = 0.001  # a timer may fire this much too early
_IN_ORDER = attrgetter(*(each.name for each in fields(QueueEntry)))


class TaskQueue:
    """Put, claim and count entries. Belongs to one loop; share one for each session."""

    def __init__(self, session: ZkSession, limits: QueueLimits = LIMITS) -> None:
        self._session, self._limits = session, limits
        self._survey = Survey(session, limits)
        self._heads: dict[str, QueueHead] = {}
        self._left_out: frozenset[int] = frozenset()
        self._putter = Putter(session)
        self._claiming = SessionClaims(session)
        self._transfers = ClaimTransfer(session, self._claiming)
        self._releasing = ClaimReleases(session, self._claiming, self._putter, self._unblock)
        self._requeuing: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ masters

    async def put(self, entries: Iterable[QueueEntry]) -> None:
        """Add ``entries`` and notify their claimers. Those that are queued already are fine."""
        # Their own comparison would make two tuples each time.
        ordered = sorted(entries, key=_IN_ORDER)
        for group, members in groupby(ordered, key=attrgetter("group")):
            queued = list(members)
            batches = [queued[start : start + BATCH] for start in range(0, len(queued), BATCH)]
            for start in range(0, len(batches), BATCHES_AT_ONCE):
                some = batches[start : start + BATCHES_AT_ONCE]
                await asyncio.gather(*(self._putter.put(group, batch) for batch in some))

    async def remove(self, entries: Collection[QueueEntry]) -> None:
        """Take ``entries`` out of the queue; those already gone are fine."""
        inners: set[str] = set()
        outers: set[str] = set()
        for some in _batches(list(entries), self._limits.at_once):
            paths = [entry.path for entry in some]
            inners.update(path.rpartition("/")[0] for path in paths)
            await self._each(self._session.submit_delete, paths, NoNode)
        outers.update(inner.rpartition("/")[0] for inner in inners)
        await self._each(self._session.submit_delete, [*inners, *outers], (NoNode, NotEmpty))
        self._putter.forget(inners | outers)

    async def contains(self, entries: Collection[QueueEntry]) -> set[QueueEntry]:
        """Return those of ``entries`` that are in the queue, as of this call or later."""
        in_bucket: defaultdict[str, list[QueueEntry]] = defaultdict(list)
        for number, entry in enumerate(entries, 1):
            in_bucket[entry.inner].append(entry)
            if number % self._limits.at_once == 0:
                await asyncio.sleep(0)
        found: set[QueueEntry] = set()
        if in_bucket:
            await self._session.sync("/")  # our server may lag behind
        compared = 0  # since others had their turn
        for buckets in _batches(list(in_bucket), self._limits.lists_at_once):
            lists = await asyncio.gather(*(self._names(bucket) for bucket in buckets))
            for bucket, names in zip(buckets, lists, strict=True):
                present = set(names)
                found.update(entry for entry in in_bucket[bucket] if entry.name in present)
                compared += len(in_bucket[bucket])
                if compared >= self._limits.at_once:
                    compared = 0
                    await asyncio.sleep(0)
        return found

    async def claimed(self, task_instance_ids: Collection[int]) -> set[int]:
        """Return those that a live session has claimed, as of this call or later.

        A claim that was made before this call is seen, even if our server lags behind the one
        that the claimer is connected to.
        """
        listed = list(task_instance_ids)
        found: set[int] = set()
        if listed:
            await self._session.sync("/")
        for start in range(0, len(listed), self._limits.at_once):
            some = listed[start : start + self._limits.at_once]
            stats = await asyncio.gather(*(self._session.exists(layout.claim(i)) for i in some))
            # What stands there without a session is not a claim.
            found.update(i for i, s in zip(some, stats, strict=True) if s and s.session_id)
        return found

    # ------------------------------------------------------------------ workers

    async def claim(self, group: str, count: int, worker_id: str) -> list[TaskClaim]:
        """Claim up to ``count`` of the first entries of ``group`` in this session.

        How claimers share the queue is said above. Fewer than ``count`` may come although more
        wait, none only if nothing waits or others were quicker: then ``wait`` returns at once.
        If it is cancelled, what it gets goes back into the queue. Raises SessionLost when an
        answer was lost and the session with it: then whatever was claimed is neither queued nor
        claimed, and the tasks' master has to put it again.
        """
        if count <= 0:
            return []
        work = asyncio.create_task(self._claiming.claim(self._head(group), count, worker_id))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            rescue = background.start(self._requeue_result(work), f"requeue of {worker_id}")
            self._requeuing.add(rescue)
            rescue.add_done_callback(self._requeuing.discard)
            raise

    def leave_out(self, partitions: Iterable[int]) -> None:
        """Claim no entries of ``partitions`` until the next call: they are left to others.

        Meanwhile the first 1000 entries of each lane are searched for other partitions, fewer of
        each if there are more than eight lanes in a priority. If none is found, the queue is
        searched again after a put, and every 5 s; until then ``wait`` waits.
        """
        self._left_out = frozenset(partitions)
        for head in self._heads.values():
            head.leave_out(self._left_out)

    def holds(self, claim: TaskClaim) -> bool:
        """Return whether it is a claim of the present session, as far as is known."""
        return self._claiming.holds(claim)

    def transfer(self, moves: Moves) -> Coroutine[Any, Any, set[TaskClaim]]:
        """Let claims of this session become the claims of others, in one step for each.

        The new ones are of the same generation, and get their epochs now. The coroutine that is
        returned has to be run; it returns the new claims that stand. Until then the old ones do,
        unless the session is lost. A ``release`` of any of them meanwhile is done afterwards.
        """
        self._transfers.begin(moves)
        return self._transfer(moves)

    async def _transfer(self, moves: Moves) -> set[TaskClaim]:
        new = await self._transfers.move(moves)
        if unwanted := self._transfers.unwanted(moves):
            with suppress(SessionLost):  # then they are gone anyway
                await self._session.retry(lambda: self.release(unwanted))
        return new - unwanted

    async def release(self, claims: Iterable[TaskClaim], *, ended: bool = False) -> None:
        """End ``claims``; those that are gone, or of another session, are fine.

        ``ended``: their task instances have ended, so they are never claimed again. That saves
        reading each claim before it is deleted.
        """
        ours = [claim for claim in claims if not self._transfers.postpone_release(claim)]
        await self._releasing.release(ours, ended=ended)

    async def standing(self, claims: Collection[TaskClaim]) -> set[TaskClaim]:
        """Return those of ``claims`` that stand in the present session, as of this call."""
        return set(await self._claiming.still_ours(list(claims)))

    async def lost(self) -> list[TaskClaim]:
        """Return, once, those claims of this session that another process has deleted.

        Two requests, however many claims there are; none if there are no claims.
        """
        return await self._releasing.lost()

    async def requeue(self, claims: Iterable[TaskClaim]) -> None:
        """Undo ``claims``: each that stands goes from claimed to queued in one step."""
        await self._releasing.requeue(claims)

    def front(self, group: str) -> tuple[QueueEntry | None, bool]:
        """Return the first entry known to wait in ``group``, and whether none comes before it.

        If that is not known, ``refresh`` helps. Entries that others have claimed since may count.
        """
        head = self._head(group)
        return head.first, head.knows_first

    async def refresh(self, group: str) -> None:
        """Read what is first in ``group``, without claiming anything."""
        head = self._head(group)
        async with head.lock:
            await head.choose(1)
            if head.first is not None:
                head.found.set()

    async def wait(self, *groups: str, timeout_s: float) -> bool:
        """Return True when one of ``groups`` may have entries, False after ``timeout_s``."""
        heads = [self._head(group) for group in groups]
        if any(head.may_have_entries for head in heads):
            return True
        for head in heads:
            head.found.clear()
        changes_in_s = min(head.changes_in_s for head in heads)
        events = [event for head in heads for event in (head.notified, head.found)]
        waits = [asyncio.create_task(event.wait()) for event in events]
        try:
            done, _ = await asyncio.wait(
                waits,
                timeout=min(timeout_s, changes_in_s),
                return_when=asyncio.FIRST_COMPLETED,
            )
            for head in heads:
                if head.changes_in_s <= TIMER_S:
                    head.expire()  # a task may no longer be claimed, or what it hid come forward
            return bool(done) or any(event.is_set() for event in events)
        finally:
            for wait in waits:
                wait.cancel()

    # ------------------------------------------------------------------ status

    async def groups(self) -> list[str]:
        """Return the groups that ever had an entry, sorted."""
        names = await self._names(layout.QUEUE)
        return sorted(znodes.decode_name(name) for name in names)

    async def depth(self, group: str) -> int:
        """Return how many entries wait.

        Exact up to 1000 buckets (a million entries of large instances, a thousand of small
        ones); of more a sample is counted, and the result rounded to two digits. Takes at most
        some 2000 requests for a million entries.
        """
        return await self._survey.depth(group)

    async def ahead(self, entry: QueueEntry, most: int = 10_000) -> int | None:
        """Return how many entries of its group come before ``entry``, at most ``most``.

        Within a priority lanes take turns, in the order of their numbers; claimers may begin with
        another lane.
        None if it does not wait in the queue.
        """
        return await self._survey.ahead(entry, most)

    async def waiting(
        self, group: str, after: QueueEntry | None, most: int
    ) -> tuple[list[QueueEntry], bool]:
        """Return at most ``most`` entries of a group behind ``after``, in order; whether more wait.

        The order is that of ``ahead``.
        It takes at most some 1000 lists, so of many small instances fewer may come although more
        wait; go on behind the last one then. What is put or taken meanwhile may or may not show.
        """
        return await self._survey.waiting(group, after, most)

    async def claims(self) -> dict[int, str]:
        """Return every live claim: task instance id -> worker id."""
        return await self._survey.claims()

    async def page(self, after: QueuePosition, most: int) -> tuple[list[QueueEntry], QueuePosition]:
        """Return about ``most`` entries, of all groups in order, and the place to go on from.

        Begin and, after the last page, end with ``survey.START``. A page may have up to a
        thousand entries more, or fewer if buckets are small: it takes 1000 lists at most. What
        is put or taken meanwhile may or may not be in it.
        """
        return await self._survey.page(after, most)

    @property
    def lost_races(self) -> int:
        """How many transactions claimed nothing so far because another claimer was quicker."""
        return self._claiming.lost_races

    async def _requeue_result(self, work: "asyncio.Task[list[TaskClaim]]") -> None:
        try:
            claims = await work
            await self._session.retry(lambda: self.requeue(claims))
        except SessionLost as error:
            log.info("cancelled claim lost with its session", error=str(error))

    # ------------------------------------------------------------------ helpers

    def _unblock(self, claim: TaskClaim) -> None:
        """An entry of the same task, if there is one, can be claimed again."""
        for head in self._heads.values():
            head.unblock(claim.task_instance_id)

    def _head(self, group: str) -> QueueHead:
        if group not in self._heads:
            self._heads[group] = QueueHead(self._session, group)
            self._heads[group].leave_out(self._left_out)
        return self._heads[group]

    async def _names(self, path: str) -> list[str]:
        try:
            return (await self._session.children(path)).names
        except NoNode:
            return []

    async def _each(
        self,
        call: Callable[[str], Awaitable[object]],
        arguments: Sequence[str],
        fine: type[CoordinationError] | tuple[type[CoordinationError], ...],
    ) -> None:
        """Send ``call`` for each argument, many at once; raise the first error not ``fine``."""
        for start in range(0, len(arguments), self._limits.at_once):
            sent = [call(argument) for argument in arguments[start : start + self._limits.at_once]]
            for error in await asyncio.gather(*sent, return_exceptions=True):
                if isinstance(error, BaseException) and not isinstance(error, fine):
                    raise error


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
