"""Who owns which partition: the reading side, for processes that send something to an owner."""

import asyncio
from dataclasses import dataclass

from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.session.documents import read_object
from shoal.coordination.session.nodes import Node, WatchEvent
from shoal.coordination.session.session import ZkSession


@dataclass(frozen=True, slots=True)
class OwnerInfo:
    """The owner of a partition as of a moment ago; only its fenced writes decide anything."""

    owner_id: str
    address: str
    epoch: int


class Owners:
    """Read owners, and remember them until their znode changes or ``forget`` is called."""

    def __init__(self, session: ZkSession) -> None:
        self._session = session
        self._known: dict[int, OwnerInfo] = {}
        self._unchanged: set[int] = set()  # no watch has fired since we asked
        self._watched: dict[str, int] = {}  # path -> partition

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

    async def all_owners(self, partitions: int) -> dict[int, OwnerInfo]:
        """Return the owner of each partition below ``partitions`` that has one, read now."""
        gets = [self._session.get(layout.owner(number)) for number in range(partitions)]
        nodes = await asyncio.gather(*gets, return_exceptions=True)
        owners: dict[int, OwnerInfo] = {}
        for number, node in enumerate(nodes):
            if isinstance(node, Node):
                if info := _info(node):
                    owners[number] = info
            elif not isinstance(node, NoNode):
                raise node
        return owners

    def forget(self, partition: int) -> None:
        """Read again next time: the owner did not answer, or says that it is not the owner."""
        self._known.pop(partition, None)
        self._unchanged.discard(partition)

    def _changed(self, event: WatchEvent) -> None:
        if event.path:
            self.forget(self._watched[event.path])
        else:  # the connection broke and the watches with it
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
