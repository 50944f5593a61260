"""The znode that remembers how far the cluster's database has come.

A database that has lost commits cannot know it. The tree can: masters write the highest ids and
beats that they have seen committed into ``/watermark``, as JSON, with the uid of the cluster. See
``master/membership/lost_commits.py`` for the protocol.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from shoal.coordination.cluster import layout
from shoal.coordination.errors import BadVersion, NodeExists, NoNode
from shoal.coordination.session.documents import read_object
from shoal.coordination.session.session import ZkSession
from shoal.core.runs.records import Watermark

_MOST = 2**52  # no cluster gives out so many ids: a larger number is junk
_NO_NODE = -1


@dataclass(frozen=True)
class StoredWatermark:
    """What the znode says. ``version`` is the znode's; -1: there is none.

    ``mark`` is None if it cannot be read or is of another cluster. ``lost_at``: when the database
    was last found behind it, as an ISO timestamp in UTC; None: never.
    """

    mark: Watermark | None
    lost_at: str | None
    version: int


class WatermarkNode:
    """Reads and writes the znode for one cluster, by its uid."""

    def __init__(self, session: ZkSession, cluster: str) -> None:
        self._session, self._cluster = session, cluster

    async def read(self) -> StoredWatermark:
        """Return what the znode says. Raises CoordinationError."""
        try:
            node = await self._session.get(layout.WATERMARK)
        except NoNode:
            return StoredWatermark(None, None, _NO_NODE)
        fields = read_object(node.data) or {}
        version = node.stat.version
        beats, ids, lost_at = (fields.get(name) for name in ("beats", "ids", "lost_at"))
        if fields.get("cluster") != self._cluster or not isinstance(ids, Mapping):
            return StoredWatermark(None, None, version)
        if not all(type(one) is int and 0 <= one < _MOST for one in (beats, *ids.values())):
            return StoredWatermark(None, None, version)
        assert isinstance(beats, int)
        at = lost_at if isinstance(lost_at, str) and len(lost_at) <= 40 else None
        return StoredWatermark(Watermark(beats, dict(ids)), at, version)

    async def write(self, mark: Watermark, lost_at: str | None, seen: StoredWatermark) -> bool:
        """Write the znode, unless it has changed since ``seen``; return whether it was written.

        Raises CoordinationError.
        """
        fields = {"cluster": self._cluster, "beats": mark.beats, "ids": dict(mark.ids)}
        data = json.dumps({**fields, "lost_at": lost_at}).encode()
        with suppress(BadVersion, NodeExists, NoNode):
            if seen.version == _NO_NODE:
                await self._session.create(layout.WATERMARK, data)
            else:
                await self._session.set(layout.WATERMARK, data, version=seen.version)
            return True
        return False
