"""The end of a partition: where producers add, once for each message id.

Every time here is a stamp of ZooKeeper's leader. A producer's wall clock decides about nothing,
because other producers would have to live by it.
"""

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import structlog

from shoal.coordination import quarantine
from shoal.coordination.errors import (
    BadVersion,
    CoordinationError,
    NodeExists,
    NoNode,
    TransactionFailed,
)
from shoal.coordination.messages.paths import BUCKET, PartitionPaths, parent
from shoal.coordination.session.documents import read_json
from shoal.coordination.session.nodes import Create, Delete, Node, Operation, SetData
from shoal.coordination.session.session import ZkSession
from shoal.coordination.session.wire import Stat

log = structlog.get_logger()

MOST = 10**12  # numbers of messages have twelve digits
_NUMBER = re.compile(r"[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TailState:
    """What the tail's znode says."""

    next: int = 0  # the number of the message that comes next
    # Ids are remembered in generations, of which two are kept: the present one, begun at
    # ``generation_s`` (seconds since 1970), and the one before.
    generation: int = 1
    generation_s: float = 0.0

    def encode(self) -> bytes:
        return json.dumps([self.next, self.generation, self.generation_s]).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Raises ValueError for what no producer has written."""
        match read_json(data):
            case [int() as following, int() as generation, int() | float() as begun_s] if (
                0 <= following < MOST and 0 < generation < MOST and abs(begun_s) < MOST
            ):
                return cls(following, generation, begun_s)
        raise ValueError("it does not say which message comes next")


async def read_tail(session: ZkSession, paths: PartitionPaths, node: Node) -> TailState | None:
    """Return what the tail says; None if that made no sense, and has been written anew."""
    try:
        return TailState.decode(node.data)
    except ValueError as error:
        # Every put has written it once, so its version is not below any number that was given.
        # The generation counts as begun when the damage was done: ids are kept too long rather
        # than too short.
        state = await _derive(session, paths)
        state = replace(
            state,
            next=max(state.next, node.stat.version),
            generation_s=node.stat.mtime_ms / 1000,
        )
        await quarantine.isolate(session, paths.tail, node, str(error), put=state.encode())
        return None


async def _derive(session: ZkSession, paths: PartitionPaths) -> TailState:
    """Return a tail behind all messages that are there, in the generation of the latest ids."""
    following = 0
    for place in (paths.waiting, paths.dead):
        for bucket in await numbers_in(session, place):
            for number in await numbers_in(session, f"{place}/{bucket:09d}"):
                if number // BUCKET == bucket and number < MOST - 1:
                    following = max(following, number + 1)
    found = await numbers_in(session, paths.ids)
    generations = [each for each in found if 0 < each < MOST // 1000]
    return TailState(next=following, generation=max(generations, default=1))


async def numbers_in(session: ZkSession, path: str) -> list[int]:
    """Return the numbers that the children of ``path`` have for names, sorted."""
    try:
        names = (await session.children(path)).names
    except NoNode:
        return []
    return sorted({int(name) for name in names if _NUMBER.fullmatch(name)})


@dataclass(frozen=True, slots=True)
class _Known:
    """The tail as it was read, or written by us."""

    state: TailState
    version: int
    stamp_s: float  # when it was written

    @classmethod
    def of(cls, state: TailState, stat: Stat) -> Self:
        """Correct a begin of the generation that came from a wrong clock.

        No generation begins before the first put, and none after the last one.
        """
        stamp_s = stat.mtime_ms / 1000
        begun_s = min(state.generation_s, stamp_s) if stat.version else stamp_s
        return cls(replace(state, generation_s=begun_s), stat.version, stamp_s)


class Tail:
    """Add messages to one partition; one call at a time."""

    def __init__(self, session: ZkSession, paths: PartitionPaths, id_window_s: float) -> None:
        self._session, self._paths, self._id_window_s = session, paths, id_window_s
        self._known: _Known | None = None
        self.lock = asyncio.Lock()

    async def add(self, message_id: str, data: bytes, token: bytes, *also: Operation) -> bool:
        """Add a message unless one with its id was added of late; do ``also`` in the same step.

        Returns whether a new generation of ids was begun, so that old ones can be forgotten.
        After ConnectionLoss call again with the same ``token``, which no other put has: what was
        done is recognised.
        """
        old: list[str] = []  # ids that were put so long ago that they may be put again
        while True:
            known = self._known or await self._read()
            self._known = None  # until we know better
            state = known.state
            # A put in flight may be as late as the session's timeout: ids live that much longer.
            ends_s = state.generation_s + self._id_window_s + self._session.timeout_s
            begins = known.stamp_s >= ends_s
            if begins:
                now_s = await self._now_s()
                state = replace(state, generation=state.generation + 1, generation_s=now_s)
            operations = self._put(state, known.version, message_id, data, token)
            first = [Delete(path) for path in old]
            try:
                outcomes = await self._session.multi([*first, *operations, *also])
            except TransactionFailed as failure:
                index = failure.failed_at - len(first)
                match index, failure.cause:
                    case 0 | 2, NodeExists():
                        old.append(operations[index].path)
                        if await self._is_repetition(old[-1], token):
                            return False
                        # With what we knew before we read the id: a put since then refuses ours.
                        self._known = known
                        continue
                    case 0 | 2 | 4, NoNode():
                        await self._session.ensure(parent(operations[index].path))
                    case 3, BadVersion() | NoNode():
                        pass  # another producer was quicker, or the tree is gone
                    case _ if index >= 0:
                        raise
                old.clear()
            else:
                stat = outcomes[len(first) + 3]
                assert isinstance(stat, Stat)
                self._known = _Known.of(replace(state, next=state.next + 1), stat)
                return begins

    def _put(
        self, state: TailState, version: int, message_id: str, data: bytes, token: bytes
    ) -> list[Operation]:
        before = self._paths.id(state.generation - 1, message_id)
        return [
            Create(before),  # only to fail if it exists
            Delete(before),
            Create(self._paths.id(state.generation, message_id), token),
            SetData(self._paths.tail, replace(state, next=state.next + 1).encode(), version),
            Create(self._paths.message(state.next), data),
        ]

    async def _is_repetition(self, path: str, token: bytes) -> bool:
        """Whether an id that is there forbids to put it: it is our own, or of late."""
        try:
            node = await self._session.get(path)
        except NoNode:
            return False
        # Two stamps of the server; should its clock have been set back, the difference counts.
        age_s = await self._now_s() - node.stat.mtime_ms / 1000
        return node.data == token or abs(age_s) < self._id_window_s

    async def _now_s(self) -> float:
        """Return the time that the server stamps its writes with, at least that of this call."""
        await self._session.ensure(self._paths.ids)
        return (await self._session.set(self._paths.ids, b"")).mtime_ms / 1000

    async def _read(self) -> _Known:
        try:
            node = await self._session.get(self._paths.tail)
        except NoNode:
            # It may have been deleted while messages waited.
            derived = await _derive(self._session, self._paths)
            with suppress(NodeExists):
                await self._session.create(self._paths.tail, derived.encode(), makepath=True)
            node = await self._session.get(self._paths.tail)
        while (state := await read_tail(self._session, self._paths, node)) is None:
            node = await self._session.get(self._paths.tail)
        return _Known.of(state, node.stat)

    async def forget_ids(self) -> None:
        """Delete all generations of ids but the present one and the one before.

        Others may do the same at the same time. If it fails, the rest goes with the next one.
        """
        try:
            state = (await self._read()).state
            for generation in await numbers_in(self._session, self._paths.ids):
                if generation < state.generation - 1:
                    await self._delete_all(f"{self._paths.ids}/{generation:06d}")
        except CoordinationError as error:
            log.info("ids not forgotten", tail=self._paths.tail, error=str(error))

    async def _delete_all(self, generation: str) -> None:
        for name in await self._names(generation):
            bucket = f"{generation}/{name}"
            ids = await self._names(bucket)
            await _all(*(self._session.submit_delete(f"{bucket}/{each}") for each in ids))
            await _all(self._session.submit_delete(bucket))
        await _all(self._session.submit_delete(generation))

    async def _names(self, path: str) -> list[str]:
        try:
            return (await self._session.children(path)).names
        except NoNode:
            return []


async def _all(*deletes: "asyncio.Future[None]") -> None:
    """Wait for all; those that another process deleted are fine."""
    results: list[Any] = await asyncio.gather(*deletes, return_exceptions=True)
    for error in results:
        if isinstance(error, BaseException) and not isinstance(error, NoNode):
            raise error
