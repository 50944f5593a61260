"""Handing claims on: a claim of this session becomes the claims of other tasks, in one step.

Who is told of more work while it still holds the claim of finished work need not go through the
queue: one multi deletes the old claim and creates the new ones. So whoever reads first the old
claim and then a new one, and finds neither, knows that the session has neither.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence

import structlog

from shoal.coordination import layout
from shoal.coordination.errors import (
    ConnectionLoss,
    NodeExists,
    NoNode,
    SessionLost,
    TransactionFailed,
)
from shoal.coordination.nodes import Create, Delete, Operation
from shoal.coordination.queue.claiming import Claiming
from shoal.coordination.session import ZkSession

log = structlog.get_logger()

MOST = 250  # operations in one multi, unless a single claim becomes more
PAUSE_S = 0.05  # between repetitions, while somebody else has a claim that we are to have

Moves = Mapping[int, Sequence[int]]  # task instances: whose claim becomes the claims of which


class HandingOn:
    """The claims of one session that are on their way from one task to others."""

    def __init__(self, session: ZkSession, claiming: Claiming) -> None:
        self._session, self._claiming = session, claiming
        self._coming: set[int] = set()  # claims that will be there soon
        self._going: set[int] = set()  # claims that will be gone then
        self._unwanted: set[int] = set()  # of those coming: to be released at once

    def begin(self, moves: Moves) -> None:
        """From now on the claims are on their way. ``move`` has to follow."""
        self._going.update(moves)
        self._coming.update(new for some in moves.values() for new in some)

    def postpone_release(self, task_instance_id: int) -> bool:
        """Return whether the claim is on its way; it is released afterwards, then."""
        if task_instance_id in self._coming:
            self._unwanted.add(task_instance_id)
        return task_instance_id in self._coming or task_instance_id in self._going

    async def move(self, moves: Moves, worker_id: str, generation: int) -> set[int]:
        """Hand claims of session ``generation`` on; return the new ones that stand.

        A claim that is not handed on was lost together with the session, or somebody took it
        from us; a new claim that somebody else holds still is waited for.
        """
        try:
            done = [await self._some(some, worker_id, generation) for some in _parted(moves)]
        finally:
            self._going.difference_update(moves)
            self._coming.difference_update(new for some in moves.values() for new in some)
        return set().union(*done)

    def unwanted(self, moves: Moves) -> set[int]:
        """Return, and forget, the new claims whose release was postponed."""
        found = self._unwanted.intersection(new for some in moves.values() for new in some)
        self._unwanted -= found
        return found

    async def _some(self, moves: Moves, worker_id: str, generation: int) -> set[int]:
        """Hand claims on together; if that cannot be, each for itself."""
        if len(moves) > 1:
            try:
                return await self._try(moves, worker_id, generation)
            except (TransactionFailed, ConnectionLoss):
                pass  # what has become of them shows for each
            except SessionLost:
                return set()
        alone = (self._one({old: new}, worker_id, generation) for old, new in moves.items())
        return set().union(*await asyncio.gather(*alone))

    async def _one(self, moves: Moves, worker_id: str, generation: int) -> set[int]:
        while True:
            try:
                return await self._session.retry(lambda: self._try(moves, worker_id, generation))
            except SessionLost:
                return set()
            except TransactionFailed as failure:
                match failure.cause:
                    case NodeExists():  # of an earlier life of its entry: it will be released
                        await asyncio.sleep(PAUSE_S * random.uniform(0.75, 1.0))
                    case NoNode():  # done before, and the answer was lost; or it was not ours
                        return await self._find_out(moves, generation)
                    case _:
                        raise

    async def _try(self, moves: Moves, worker_id: str, generation: int) -> set[int]:
        if self._session.generation != generation:
            raise SessionLost("a claim that was to be handed on")
        await self._session.multi(_operations(moves, worker_id))
        return self._moved(moves, generation)

    async def _find_out(self, moves: Moves, generation: int) -> set[int]:
        """Return which claims a multi whose answer was lost has handed on."""
        ((old, (new, *_)),) = moves.items()
        try:
            node = await self._session.retry(lambda: self._session.get(layout.claim(new)))
        except (NoNode, SessionLost):
            node = None
        if (
            node is None
            or node.stat.session_id != self._session.session_id
            or self._session.generation != generation
        ):
            log.warning("claim not handed on: it is not ours any more", task_instance=old)
            return set()
        return self._moved(moves, generation)

    def _moved(self, moves: Moves, generation: int) -> set[int]:
        held = self._claiming.held
        for old in moves:
            held.pop(old, None)
        found = {new for some in moves.values() for new in some}
        held.update(dict.fromkeys(found, generation))
        return found


def _operations(moves: Moves, worker_id: str) -> list[Operation]:
    """Return what hands claims on, the old one of each first: its lack tells most."""
    operations: list[Operation] = []
    for old, some in moves.items():
        operations.append(Delete(layout.claim(old)))
        operations += [
            Create(layout.claim(new), worker_id.encode(), ephemeral=True) for new in some
        ]
    return operations


def _parted(moves: Moves) -> list[Moves]:
    """Return ``moves`` in parts that fit into one multi each."""
    parts: list[Moves] = []
    part: dict[int, Sequence[int]] = {}
    size = MOST
    for old, new in moves.items():
        if size + 1 + len(new) > MOST:
            part, size = {}, 0
            parts.append(part)
        part[old] = new
        size += 1 + len(new)
    return parts
