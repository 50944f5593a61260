"""Claiming: the transactions that turn entries into claims, and what their answers mean.

Also which claims the session holds. Znodes are named by path alone, so a deletion that was meant
for our claim would hit that of a worker that has claimed the task since. Before a deletion we
therefore read whether it is that very claim: its session and its creation zxid (``still_ours``).
"""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakSet

import structlog

from shoal.coordination.cluster import layout
from shoal.coordination.errors import (
    ConnectionLoss,
    CoordinationError,
    NodeExists,
    NoNode,
    SessionLost,
    TransactionFailed,
)
from shoal.coordination.queue.entry import QueueEntry, TaskClaim
from shoal.coordination.queue.head import QueueHead
from shoal.coordination.session.defaults import BATCH
from shoal.coordination.session.nodes import Create, Created, Delete, Node, Operation
from shoal.coordination.session.session import ZkSession
from shoal.coordination.session.wire import Stat

log = structlog.get_logger()

RACES = 6  # that one claim loses before it gives up for now


class SessionClaims:
    """The claims that one queue has made in its session, in all groups.

    A claim's znode names its session and worker. Several queues of a process may share both, so
    each one knows the others (``_peers``) and does not take their claims for its own.
    """

    _of_session: ClassVar[WeakKeyDictionary[ZkSession, WeakSet["SessionClaims"]]] = (
        WeakKeyDictionary()
    )

    def __init__(self, session: ZkSession) -> None:
        self._session = session
        self._peers = self._of_session.setdefault(session, WeakSet())
        self._peers.add(self)
        self.held: dict[int, TaskClaim] = {}  # by task instance
        self.lost_races = 0  # transactions that claimed nothing: another claimer was quicker

    def holds(self, claim: TaskClaim) -> bool:
        """Return whether it is a claim of the present session, as far as we know."""
        ours = claim.generation == self._session.generation
        return ours and self.held.get(claim.task_instance_id) is claim

    def forget(self, claim: TaskClaim) -> None:
        """``claim`` is no longer ours."""
        if self.held.get(claim.task_instance_id) is claim:
            del self.held[claim.task_instance_id]

    async def stats(self, claims: Sequence[TaskClaim]) -> list[Stat | None]:
        """Return what stands in the places of ``claims``, as of this call or later.

        First a sync: what an older connection sent is done, or never will be.
        """
        sent: list[asyncio.Future[Any]] = [self._session.sync("/")]
        sent += [self._session.exists(claim.path) for claim in claims]
        stats: list[Stat | None] = []
        for answer in await asyncio.gather(*sent, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            stats.append(answer)
        return stats[1:]

    def is_ours(self, claim: TaskClaim, stat: Stat | None) -> bool:
        """Return whether ``stat``, which was just read, is that of this very claim."""
        if stat is None or claim.generation != self._session.generation:
            return False
        return (stat.session_id, stat.czxid) == (self._session.session_id, claim.epoch)

    async def still_ours(self, claims: Sequence[TaskClaim]) -> list[TaskClaim]:
        """Return those of ``claims`` that stand; forget the others.

        While our session lives only we delete what it has made. (A deletion by hand is noticed
        if it came before this call.) So what is deleted in the same turn of the loop in which
        this returns is ours.
        """
        held = [claim for claim in claims if self.holds(claim)]
        if not held:
            return []
        found = await self.stats(held)
        ours = []
        for claim, stat in zip(held, found, strict=True):
            if self.is_ours(claim, stat):
                if self.holds(claim):  # else it was released here meanwhile
                    ours.append(claim)
            else:
                self.forget(claim)
        return ours

    async def claim(self, head: QueueHead, count: int, worker_id: str) -> list[TaskClaim]:
        """Claim up to ``count`` entries; at least one if there is one and no other gets it."""
        claims: list[TaskClaim] = []
        async with head.lock:
            try:
                await self._claim(head, count, worker_id, claims)
            except CoordinationError as error:
                if not claims or isinstance(error, SessionLost):
                    raise
                # Those that we have are ours: no other process would end them.
                log.debug("claimed less than wanted", error=str(error))
        return claims

    async def _claim(
        self, head: QueueHead, count: int, worker_id: str, claims: list[TaskClaim]
    ) -> None:
        """Add to ``claims`` what is claimed."""
        races = 0
        while races < RACES and (wanted := min(count - len(claims), BATCH)):
            choice, fresh = await head.choose(wanted)
            entries = choice.entries
            if not entries or (claims and not choice.ours):
                break
            lost_before = self.lost_races
            if choice.ours and not races:
                claims += await self._take_together(head, entries, worker_id)
            else:
                claims += await self._take_apart(head, entries, worker_id)
            if self.lost_races == lost_before:
                continue
            # What an old window lacks is not a sign of a rival, unless reading again costs more.
            if fresh or head.is_costly:
                races += 1
                head.contend()
            if not fresh and (races == RACES or not head.is_costly):
                head.expire()

    async def _take_together(
        self, head: QueueHead, entries: Sequence[QueueEntry], worker_id: str
    ) -> list[TaskClaim]:
        """Claim all of ``entries`` in one multi, or none."""
        operations = [part for entry in entries for part in _take(entry, worker_id)]
        generation = self._session.generation
        try:
            outcomes = await self._session.multi(operations)
        except TransactionFailed as failure:
            if not self._drop_refused(head, entries[failure.failed_at // 2], failure):
                raise
            return []
        except ConnectionLoss:
            return await self._recover(head, entries, worker_id, generation)
        created = [outcome for outcome in outcomes if isinstance(outcome, Created)]
        return self._taken(head, entries, worker_id, [node.czxid for node in created])

    async def _take_apart(
        self, head: QueueHead, entries: Sequence[QueueEntry], worker_id: str
    ) -> list[TaskClaim]:
        """Claim each of ``entries`` that is still there."""
        generation = self._session.generation
        multis = [self._session.multi(_take(entry, worker_id)) for entry in entries]
        results = await asyncio.gather(*multis, return_exceptions=True)
        claims: list[TaskClaim] = []
        unknown: list[QueueEntry] = []
        errors: list[BaseException] = []
        for entry, result in zip(entries, results, strict=True):
            if isinstance(result, ConnectionLoss):
                unknown.append(entry)
            elif isinstance(result, BaseException):
                if not isinstance(result, TransactionFailed) or not self._drop_refused(
                    head, entry, result
                ):
                    errors.append(result)
            elif isinstance(result[1], Created):
                claims += self._taken(head, [entry], worker_id, [result[1].czxid])
        if unknown:
            claims += await self._recover(head, unknown, worker_id, generation)
        if errors and not claims:
            raise errors[0]
        return claims

    def _drop_refused(self, head: QueueHead, entry: QueueEntry, failure: TransactionFailed) -> bool:
        """Drop an entry that we could not get. Returns False if that does not explain it."""
        match failure.failed_at % 2, failure.cause:
            case (0, NoNode()):
                self.lost_races += 1
                head.drop([entry])
            case (1, NodeExists()):  # put again while it runs: it can be claimed after that claim
                head.block(entry)
            case (1, NoNode()):  # the tree is being made anew
                self.lost_races += 1
                head.mend(entry)
            case _:
                return False
        return True

    async def _recover(
        self, head: QueueHead, entries: Sequence[QueueEntry], worker_id: str, generation: int
    ) -> list[TaskClaim]:
        """Find out which of ``entries`` we claimed with a multi whose answer was lost."""

        async def read() -> list[Node | None]:
            # First a sync: what the old connection sent is done, or never will be.
            sent: list[asyncio.Future[Any]] = [self._session.sync("/")]
            sent += [self._session.get(layout.claim(e.task_instance_id)) for e in entries]
            answers = await asyncio.gather(*sent, return_exceptions=True)
            if self._session.generation != generation:
                raise SessionLost(f"a claim in group {head.group}")
            for answer in answers:
                if isinstance(answer, BaseException) and not isinstance(answer, NoNode):
                    raise answer
            return [answer if isinstance(answer, Node) else None for answer in answers[1:]]

        head.expire()
        nodes = await self._session.retry(read)
        claims: list[TaskClaim] = []
        for entry, node in zip(entries, nodes, strict=True):
            if (
                node is not None
                and node.stat.session_id == self._session.session_id
                and node.data == worker_id.encode()
                and not self._is_known(entry.task_instance_id, node.stat.czxid)
            ):
                claims += self._taken(head, [entry], worker_id, [node.stat.czxid])
        return claims

    def _is_known(self, task_instance_id: int, epoch: int) -> bool:
        """Return whether it is an earlier claim of this queue, or one of another queue."""
        known = (peer.held.get(task_instance_id) for peer in self._peers)
        return any(claim is not None and claim.epoch == epoch for claim in known)

    def _taken(
        self, head: QueueHead, entries: Sequence[QueueEntry], worker_id: str, epochs: Sequence[int]
    ) -> list[TaskClaim]:
        head.taken(entries)
        generation = self._session.generation
        claims = [
            TaskClaim(entry, worker_id, epoch, generation)
            for entry, epoch in zip(entries, epochs, strict=True)
        ]
        self.held.update((claim.task_instance_id, claim) for claim in claims)
        return claims


def _take(entry: QueueEntry, worker_id: str) -> list[Operation]:
    claim = layout.claim(entry.task_instance_id)
    # In this order: a lost race fails at the first, a task that still runs at the second.
    return [Delete(entry.path), Create(claim, worker_id.encode(), ephemeral=True)]
