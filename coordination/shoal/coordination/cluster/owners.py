"""Who owns which partition: the reading side, for processes that send something to an owner."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.session.documents import read_object
from shoal.coordination.session.nodes import Node, WatchEvent
from shoal.coordination.session.session import ZkSession
from shoal.core.runs.records import PartitionRow

REREAD_ALL_S = 60.0  # watches say what has changed; this finds what they have missed


@dataclass(frozen=True, slots=True)
class OwnerInfo:
    """The owner of a partition as of a moment ago; only its fenced writes decide anything."""

    owner_id: str
    address: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A partition whose owner in ZooKeeper is not the one that the database lets write.

    ``owner`` has the znode with ``epoch``; ``stored_owner`` and ``stored_epoch`` are what the
    database has.
    """

    partition: int
    owner: str
    epoch: int
    stored_owner: str | None
    stored_epoch: int


def disagreements(
    owners: Mapping[int, OwnerInfo], stored: Iterable[PartitionRow]
) -> dict[int, Disagreement]:
    """Return the partitions whose owners differ, by number; those without an owner are left out.

    An epoch in the database that is greater than the znode's alone is not a difference: the owner
    has superseded that of a lost tree.
    """
    found: dict[int, Disagreement] = {}
    for row in stored:
        owner = owners.get(row.index)
        if owner is not None and (owner.owner_id != row.owner or row.epoch < owner.epoch):
            found[row.index] = Disagreement(
                row.index, owner.owner_id, owner.epoch, row.owner, row.epoch
            )
    return found


def in_words(found: Sequence[Disagreement], named: int) -> str:
    """Return which partitions have two owners, and which those are; ``named`` of each at most."""

    def some(names: Iterable[object]) -> str:
        every = list(dict.fromkeys(map(str, names)))
        return ", ".join(every[:named]) + (", …" if len(every) > named else "")

    return (
        f"{some(one.partition for one in found)}; owners in ZooKeeper: "
        f"{some(one.owner for one in found)} (epoch {_range(one.epoch for one in found)}); "
        f"in the database: {some(one.stored_owner or 'no owner' for one in found)} (epoch "
        f"{_range(one.stored_epoch for one in found)})"
    )


def _range(epochs: Iterable[int]) -> str:
    every = set(epochs)
    return f"{min(every)} to {max(every)}" if len(every) > 1 else f"{min(every)}"


class Owners:
    """Read owners, and remember them until their znode changes or ``forget`` is called."""

    def __init__(self, session: ZkSession) -> None:
        self._session = session
        self._known: dict[int, OwnerInfo] = {}
        self._unchanged: set[int] = set()  # no watch has fired since we asked
        self._watched: dict[str, int] = {}  # path -> partition
        self._reread_s = 0.0  # monotonic: when all are read again

    async def owner_of(self, partition: int) -> OwnerInfo | None:
        """Return the owner, or None if there is none now. Raises ConnectionLoss."""
        if known := self.known(partition):
            return known
        path = layout.owner(partition)
        self._watched[path] = partition
        self._unchanged.add(partition)
        try:
            node = await self._session.get(path, watch=self._changed)
        except NoNode:
            self._unchanged.discard(partition)  # no watch is left on it
            return None
        info = _info(node)
        if (
            info is not None and partition in self._unchanged
        ):  # else the watch fired before we got here
            self._known[partition] = info
        return info

    def known(self, partition: int) -> OwnerInfo | None:
        """Return the owner if it was read before and has not changed since."""
        return self._known.get(partition)

    async def all_owners(self, partitions: int) -> Mapping[int, OwnerInfo]:
        """Return the owner of each partition below ``partitions`` that has one.

        Only what has changed since the last call is read: watches tell. All of it is read every
        ``REREAD_ALL_S``. Raises ConnectionLoss, SessionLost.
        """
        now_s = time.monotonic()
        if now_s >= self._reread_s:
            self._forget_all()
            self._reread_s = now_s + REREAD_ALL_S
        await self._read([n for n in range(partitions) if n not in self._unchanged])
        return {n: self._known[n] for n in range(partitions) if n in self._known}

    async def _read(self, numbers: Sequence[int]) -> None:
        """Read and watch owner znodes; watch also for those that are not there yet."""
        for number in numbers:
            self._watched[layout.owner(number)] = number
            self._unchanged.add(number)
        gets = [self._session.get(layout.owner(n), watch=self._changed) for n in numbers]
        nodes = dict(zip(numbers, await asyncio.gather(*gets, return_exceptions=True), strict=True))
        absent = [number for number, node in nodes.items() if isinstance(node, NoNode)]
        looks = [self._session.exists(layout.owner(n), watch=self._changed) for n in absent]
        stats = dict(zip(absent, await asyncio.gather(*looks, return_exceptions=True), strict=True))
        failure: BaseException | None = None
        for number, node in nodes.items():
            if isinstance(node, Node):
                # If the watch has fired before we got here, the next call reads it.
                info = _info(node)
                if info is not None and number in self._unchanged:
                    self._known[number] = info
            elif (stat := stats.get(number, node)) is not None:
                self._unchanged.discard(number)  # it has come meanwhile, or could not be read
                failure = stat if isinstance(stat, BaseException) else failure
        if failure is not None:
            raise failure

    def forget(self, partition: int) -> None:
        """Read again next time: the owner did not answer, or says that it is not the owner."""
        self._known.pop(partition, None)
        self._unchanged.discard(partition)

    def _changed(self, event: WatchEvent) -> None:
        if event.path:
            self.forget(self._watched[event.path])
        else:  # the connection broke and the watches with it
            self._forget_all()

    def _forget_all(self) -> None:
        self._known.clear()
        self._unchanged.clear()


def _info(node: Node) -> OwnerInfo | None:
    """Return the owner that has written ``node``; None if no owner has."""
    data = read_object(node.data)
    if not node.stat.session_id or data is None:
        return None
    owner_id, address = data.get("owner_id"), data.get("address", "")
    if not isinstance(owner_id, str) or not isinstance(address, str):
        return None
    return OwnerInfo(owner_id, address, node.stat.czxid)
