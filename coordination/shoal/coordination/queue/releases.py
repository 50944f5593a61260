"""Ending claims: released, or requeued, and only ever our own.

A claim is read, and compared with what we made, before it is deleted. Only the claims of task
instances that have ended are deleted unread, the first time: such a task is never claimed again.
What was sent without an answer is in doubt. It is read before anything is sent again, however
much later.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from shoal.coordination.cluster import layout
from shoal.coordination.errors import NodeExists, NoNode, TransactionFailed
from shoal.coordination.queue.claims import SessionClaims
from shoal.coordination.queue.entry import TaskClaim
from shoal.coordination.queue.putter import Putter
from shoal.coordination.session.defaults import BATCH
from shoal.coordination.session.nodes import Create, Delete
from shoal.coordination.session.session import ZkSession


class ClaimReleases:
    """Ends the claims of one session. ``on_released`` is called with each that is gone."""

    def __init__(
        self,
        session: ZkSession,
        claiming: SessionClaims,
        putter: Putter,
        on_released: Callable[[TaskClaim], None],
    ) -> None:
        self._session, self._claiming, self._putter = session, claiming, putter
        self._on_released = on_released
        self._in_doubt: set[TaskClaim] = set()  # a deletion was sent, and not answered yet

    async def release(self, claims: Iterable[TaskClaim], *, ended: bool) -> None:
        """Delete those of ``claims`` that stand. ``ended``: their tasks will never run again."""
        some = list(claims)
        for start in range(0, len(some), BATCH):
            await self._release(some[start : start + BATCH], ended)

    async def requeue(self, claims: Iterable[TaskClaim]) -> None:
        """Turn those of ``claims`` that stand into entries, each in one step."""
        some = list(claims)
        left = self._present(some)
        groups = {claim.entry.group for claim in left}
        while left:
            await self._putter.create_buckets([claim.entry for claim in left])
            left = await self._claiming.still_ours(left)
            left = await self._requeue(left)
        self._gone(some)
        for group in groups:
            await self._session.set(layout.queue(group), b"")

    async def lost(self) -> list[TaskClaim]:
        """Return, and forget, the claims that are gone although we did not delete them.

        Two requests, however many claims there are.
        """
        held = self._present(list(self._claiming.held.values()))
        if not held:
            return []
        sent = (self._session.sync("/"), self._session.ephemerals(layout.CLAIMS))
        standing = set((await asyncio.gather(*sent))[1])
        missing = [claim for claim in self._present(held) if claim.path not in standing]
        ours = set(await self._claiming.still_ours(missing))
        return [claim for claim in missing if claim not in ours]

    def _present(self, claims: Iterable[TaskClaim]) -> list[TaskClaim]:
        """Return those of ``claims`` that are of this session; forget the others."""
        found = []
        for claim in claims:
            if self._claiming.holds(claim):
                found.append(claim)
            else:
                self._claiming.forget(claim)
                self._in_doubt.discard(claim)
        return found

    async def _release(self, claims: list[TaskClaim], ended: bool) -> None:
        left = self._present(claims)
        if not ended or not self._in_doubt.isdisjoint(left):
            left = await self._claiming.still_ours(left)
        while left:
            self._in_doubt.update(left)
            try:
                await self._session.multi([Delete(claim.path) for claim in left])
            except TransactionFailed as failure:  # one is gone already
                if not isinstance(failure.cause, NoNode):
                    raise
                left = await self._claiming.still_ours(left)
            else:
                self._gone(left)
                left = []
        self._gone(claims)

    async def _requeue(self, claims: Sequence[TaskClaim]) -> list[TaskClaim]:
        """Send a transaction for each; return those that have to be read again."""
        undone = [
            self._session.multi([Delete(claim.path), Create(claim.entry.path)]) for claim in claims
        ]
        results = await asyncio.gather(*undone, return_exceptions=True)
        again, queued, errors = [], [], []
        for claim, result in zip(claims, results, strict=True):
            if not isinstance(result, BaseException):
                self._claiming.forget(claim)
            elif not isinstance(result, TransactionFailed):
                errors.append(result)
            elif isinstance(result.cause, NoNode):  # it is gone, or its bucket was pruned
                again.append(claim)
            elif isinstance(result.cause, NodeExists):  # it is queued already
                queued.append(claim)
            else:
                errors.append(result)
        await self.release(queued, ended=False)
        if errors:
            raise errors[0]
        return again

    def _gone(self, claims: Iterable[TaskClaim]) -> None:
        for claim in claims:
            self._claiming.forget(claim)
            self._in_doubt.discard(claim)
            self._on_released(claim)
