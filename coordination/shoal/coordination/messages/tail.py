"""The end of a partition: where producers add, once for each message id."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import structlog

from shoal.coordination.errors import (
    BadVersion,
    CoordinationError,
    NodeExists,
    NoNode,
    TransactionFailed,
)
from shoal.coordination.messages.paths import PartitionPaths, parent
from shoal.coordination.nodes import Create, Delete, Operation, SetData
from shoal.coordination.session import ZkSession
from shoal.coordination.wire import Stat

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TailState:
    """What the tail's znode says."""

    next: int = 0  # the number of the message that comes next
    # Ids are remembered in generations, of which two are kept: the present one, begun at
    # ``generation_s`` (seconds since 1970 on the clock of whoever began it), and the one before.
    generation: int = 1
    generation_s: float = 0.0

    def encode(self) -> bytes:
        return json.dumps([self.next, self.generation, self.generation_s]).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(*json.loads(data))


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
        """Tell whether the message was put before; if not, prepare the next try."""
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
        return TailState.decode(node.data), node.stat.version

    async def forget_ids(self) -> None:
        """Delete all generations of ids but the present one and the one before.

        Others may do the same at the same time. If it fails, the rest goes with the next one.
        """
        try:
            state, _ = await self._read()
            for name in await self._names(self._paths.ids):
                if int(name) < state.generation - 1:
                    await self._delete_all(f"{self._paths.ids}/{name}")
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
    """Wait for all; those that somebody else deleted are fine."""
    results: list[Any] = await asyncio.gather(*deletes, return_exceptions=True)
    for error in results:
        if isinstance(error, BaseException) and not isinstance(error, NoNode):
            raise error
