"""Transferring claims: a claim of this session becomes the claims of other tasks, in one step.

A worker that is given more work while it still holds the claim of finished work need not go
through the queue: one multi deletes the old claim and creates the new ones. So a master that reads
first the old claim and then a new one, and finds neither, knows that the session has neither.

The multi is sent again only after the old claim was read and is still that very one.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from shoal.coordination.errors import (
    ConnectionLoss,
    NodeExists,
    NoNode,
    SessionLost,
    TransactionFailed,
)
from shoal.coordination.queue.claims import SessionClaims
from shoal.coordination.queue.entry import TaskClaim
from shoal.coordination.session.defaults import BATCH
from shoal.coordination.session.nodes import Create, Created, Delete, Operation
from shoal.coordination.session.session import ZkSession

log = structlog.get_logger()

PAUSE_S = 0.05  # between repetitions, while a claim that we are to have is not free

Moves = Mapping[
    TaskClaim, Sequence[TaskClaim]
]  # which claim becomes which; the new have no epoch yet


class ClaimTransfer:
    """The claims of one session that are on their way from one task to others."""

    def __init__(self, session: ZkSession, claiming: SessionClaims) -> None:
        self._session, self._claiming = session, claiming
        self._coming: set[TaskClaim] = set()  # claims that will be there soon
        self._going: set[TaskClaim] = set()  # claims that will be gone then
        self._unwanted: set[TaskClaim] = set()  # of those coming: to be released at once

    def begin(self, moves: Moves) -> None:
        """From now on the claims are on their way. ``move`` has to follow."""
        self._going.update(moves)
        self._coming.update(new for some in moves.values() for new in some)

    def postpone_release(self, claim: TaskClaim) -> bool:
        """Return whether the claim is on its way; it is released afterwards, then."""
        if claim in self._coming:
            self._unwanted.add(claim)
        return claim in self._coming or claim in self._going

    async def move(self, moves: Moves) -> set[TaskClaim]:
        """Transfer claims; return the new ones that stand, which have their epochs then.

        A claim that is not transferred was lost together with the session, or was deleted by
        another process. A new claim that another session still holds is waited for.
        """
        try:
            done = [await self._some(some) for some in _parted(moves)]
        finally:
            self._going.difference_update(moves)
            self._coming.difference_update(new for some in moves.values() for new in some)
        return set().union(*done)

    def unwanted(self, moves: Moves) -> set[TaskClaim]:
        """Return, and forget, the new claims whose release was postponed."""
        found = self._unwanted.intersection(new for some in moves.values() for new in some)
        self._unwanted -= found
        return found

    async def _some(self, moves: Moves) -> set[TaskClaim]:
        """Transfer claims together; if that cannot be, each for itself."""
        in_doubt = not all(map(self._claiming.holds, moves))
        if len(moves) > 1 and not in_doubt:
            try:
                return await self._try(moves)
            except TransactionFailed:
                pass  # what is in its way shows for each
            except ConnectionLoss:
                in_doubt = True
            except SessionLost:
                return set()
        alone = (self._one(old, new, in_doubt) for old, new in moves.items())
        return set().union(*await asyncio.gather(*alone))

    async def _one(
        self, old: TaskClaim, new: Sequence[TaskClaim], in_doubt: bool
    ) -> set[TaskClaim]:
        """Transfer one claim. ``in_doubt``: the old one may have been transferred, or be lost."""
        moves = {old: new}
        while True:
            try:
                if in_doubt and (found := await self._session.retry(lambda: self._check(old, new))):
                    return found.new
                in_doubt = True
                return await self._try(moves)
            except SessionLost:
                return set()
            except ConnectionLoss:
                continue
            except TransactionFailed as failure:
                # The new one is there, of an earlier life of its entry, and will be released; or
                # the old one is gone.
                if not isinstance(failure.cause, NodeExists | NoNode):
                    raise
            await asyncio.sleep(PAUSE_S * random.uniform(0.75, 1.0))

    async def _try(self, moves: Moves) -> set[TaskClaim]:
        if any(old.generation != self._session.generation for old in moves):
            raise SessionLost("a claim that was to be transferred")
        outcomes = await self._session.multi(_operations(moves))
        return self._moved(moves, [made.czxid for made in outcomes if isinstance(made, Created)])

    async def _check(self, old: TaskClaim, new: Sequence[TaskClaim]) -> "_Outcome | None":
        """Return what has become of a claim that was to be transferred, None if it still is."""
        before, *after = await self._claiming.stats([old, *new])
        if old.generation != self._session.generation:
            raise SessionLost("a claim that was to be transferred")
        if self._claiming.is_ours(old, before):
            return None
        session_id = self._session.session_id
        ours = [stat.czxid for stat in after if stat and stat.session_id == session_id]
        if len(ours) == len(new):
            return _Outcome(self._moved({old: new}, ours))
        self._claiming.forget(old)
        task = old.task_instance_id
        log.warning("claim not transferred: it is no longer ours", task_instance=task)
        return _Outcome(set())

    def _moved(self, moves: Moves, epochs: Sequence[int]) -> set[TaskClaim]:
        for old in moves:
            self._claiming.forget(old)
        found = [new for some in moves.values() for new in some]
        for claim, epoch in zip(found, epochs, strict=True):
            claim.epoch = epoch
            self._claiming.held[claim.task_instance_id] = claim
        return set(found)


class _Outcome(NamedTuple):
    """A claim was transferred, or is not ours."""

    new: set[TaskClaim]


def _operations(moves: Moves) -> list[Operation]:
    """Return what transfers claims, the old one of each first: its absence explains most."""
    operations: list[Operation] = []
    for old, some in moves.items():
        operations.append(Delete(old.path))
        operations += [Create(new.path, new.worker_id.encode(), ephemeral=True) for new in some]
    return operations


def _parted(moves: Moves) -> list[Moves]:
    """Return ``moves`` in parts for one multi each: a batch, or a claim that becomes more."""
    parts: list[Moves] = []
    part: dict[TaskClaim, Sequence[TaskClaim]] = {}
    size = BATCH
    for old, new in moves.items():
        if size + 1 + len(new) > BATCH:
            part, size = {}, 0
            parts.append(part)
        part[old] = new
        size += 1 + len(new)
    return parts
