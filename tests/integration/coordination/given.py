"""An owner of partitions that records its calls, and entries of the queue."""

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from shoal.coordination import (
    OwnerNodes,
    Ownership,
    OwnershipListener,
    QueueEntry,
    ZkSession,
)
from shoal.coordination.cluster import layout


class Recorder:
    """An owner that notes what it is told, with the time of each call."""

    def __init__(self, session: ZkSession, owner_id: str, **options: Any) -> None:
        self.told: list[tuple[str, object, float]] = []
        self.fail_acquiring = 0
        self.on_acquired: Callable[[], None] = lambda: None
        self.listener = OwnershipListener(self._acquired, self._released, self._lost)
        self.ownership = Ownership(
            session,
            OwnerNodes(layout.owner, owner_id, {"address": f"{owner_id}:1"}),
            self.listener,
            **options,
        )

    async def _acquired(self, partition: int, epoch: int) -> None:
        self.on_acquired()
        self._note("acquired", (partition, epoch))
        if self.fail_acquiring:
            self.fail_acquiring -= 1
            raise RuntimeError("the database is away")

    async def _released(self, partition: int) -> None:
        assert partition in self.ownership.owned()  # still ours: it may finish its work
        self._note("released", partition)

    async def _lost(self, partitions: frozenset[int]) -> None:
        assert not partitions & self.ownership.owned().keys()
        self._note("lost", partitions)

    def _note(self, what: str, value: object) -> None:
        self.told.append((what, value, time.monotonic()))

    def all(self, what: str) -> list[Any]:
        return [value for kind, value, _ in self.told if kind == what]

    def when(self, what: str) -> float:
        return next(at for kind, _, at in self.told if kind == what)


@asynccontextmanager
async def owner(
    session: ZkSession, owner_id: str, wanted: Iterable[int], **options: Any
) -> AsyncIterator[Recorder]:
    recorder = Recorder(session, owner_id, **options)
    async with recorder.ownership as ownership:
        ownership.set_wanted(wanted)
        yield recorder


def entry(
    task: int, *, wp: int = 2, wi: int = 1, tp: int = 2, group: str = "default"
) -> QueueEntry:
    return QueueEntry(group, wp, wi, tp, task, task % 4)
