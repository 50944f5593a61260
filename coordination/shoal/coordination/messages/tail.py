"""The end of a partition: where producers add, once for each message id."""

import asyncio
import json
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
from shoal.coordination.messages.paths import PartitionPaths, parent
from shoal.coordination.session.documents import read_json
from shoal.coordination.session.nodes import Create, Delete, Node, Operation, SetData
from shoal.coordination.session.session import ZkSession
from shoal.coordination.session.wire import Stat

log = structlog.get_logger()

MOST = 10**12  # numbers of messages have twelve digits


@dataclass(frozen=True, slots=True)
class TailState:
    """What the tail's znode says."""

    next: int = 0  # the number of the message that comes next
    # Ids are remembered in generations, of which two are kept: the present one, begun at
    # ``generation_s`` (seconds since 1970 on its first producer's clock), and the one before.
    generation: int = 1
    generation_s: float = 0.0

    def encode(self) -> bytes:
        return json.dumps([self.next, self.generation, self.generation_s]).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Raises ValueError for what no producer has written."""
        match read_json(data):
            case [int() as following, int() as generation, int() | float() as begun_s] if (
                0 <= following < MOST and 0 < generation < MOST
            ):
                return cls(following, generation, begun_s)
        raise ValueError("it does not say which message comes next")


async def read_tail(session: ZkSession, paths: PartitionPaths, node: Node) -> TailState | None:
    """Return what the tail says; None if that made no sense, and has been written anew."""
    try:
        return TailState.decode(node.data)
    except ValueError as error:
        # Every put has written it once, so its version is not below any number that was given.
        # The largest generation is the present one; the next put begins another.
        numbers = [node.stat.version]
        for place in (paths.waiting, paths.dead):
            for bucket in await numbers_in(session, place):
                numbers += [
                    number + 1 for number in await numbers_in(session, f"{place}/{bucket:09d}")
                ]
        generations = await numbers_in(session, paths.ids)
        state = TailState(next=max(numbers), generation=max(generations, default=1))
        await quarantine.isolate(session, paths.tail, node, str(error), put=state.encode())
        return None


async def numbers_in(session: ZkSession, path: str) -> list[int]:
    """Return the numbers that the children of ``path`` have for names, sorted."""
    try:
        names = (await session.children(path)).names
    except NoNode:
        return []
    return sorted(int(name) for name in names if name.isdecimal() and name.isascii())


class Tail:
    """Add messages to one partition; one call at a time."""

    def __init__(self, session: ZkSession, paths: PartitionPaths, id_window_s: float) -> None:
        self._session, self._paths, self._id_window_s = session, paths, id_window_s
        self._known: tuple[TailState, int] | None = None  # with the znode's version
        self.lock = asyncio.Lock()

    async def add(self, message_id: str, data: bytes, now_s: float, *also: Operation) -> bool:
        """Add a message unless one with its id was added of late; do ``also`` in the same step.

        Returns whether a new generation of ids was begun, so that old ones can be forgotten.
        After ConnectionLoss call again: what was done is recognised. ``now_s``: since 1970.
        """
        while True:
            state, version = self._known or await self._read()
            self._known = None  # until we know better
            begins = now_s >= state.generation_s + self._id_window_s
            if begins:
                state = replace(state, generation=state.generation + 1, generation_s=now_s)
            operations = self._put(state, version, message_id, data)
            try:
                outcomes = await self._session.multi([*operations, *also])
            except TransactionFailed as failure:
                if await self._is_there(failure, operations):
                    return False
            else:
                stat = outcomes[3]
                assert isinstance(stat, Stat)
                self._known = replace(state, next=state.next + 1), stat.version
                return begins

    def _put(self, state: TailState, version: int, message_id: str, data: bytes) -> list[Operation]:
        before = self._paths.id(state.generation - 1, message_id)
        return [
            Create(before),  # only to fail if it exists
            Delete(before),
            Create(self._paths.id(state.generation, message_id)),
            SetData(self._paths.tail, replace(state, next=state.next + 1).encode(), version),
            Create(self._paths.message(state.next), data),
        ]

    async def _is_there(self, failure: TransactionFailed, operations: list[Operation]) -> bool:
        """Return whether the message was put before; if not, prepare the next try."""
        match failure.failed_at, failure.cause:
            case 0 | 2, NodeExists():
                return True
            case 3, BadVersion() | NoNode():  # another producer was quicker, or the tree is gone
                return False
            case 0 | 2 | 4 as index, NoNode():
                await self._session.ensure(parent(operations[index].path))
                return False
            case _:
                raise failure

    async def _read(self) -> tuple[TailState, int]:
        try:
            node = await self._session.get(self._paths.tail)
        except NoNode:
            with suppress(NodeExists):
                await self._session.create(self._paths.tail, TailState().encode(), makepath=True)
            node = await self._session.get(self._paths.tail)
        while (state := await read_tail(self._session, self._paths, node)) is None:
            node = await self._session.get(self._paths.tail)
        return state, node.stat.version

    async def forget_ids(self) -> None:
        """Delete all generations of ids but the present one and the one before.

        Others may do the same at the same time. If it fails, the rest goes with the next one.
        """
        try:
            state, _ = await self._read()
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
