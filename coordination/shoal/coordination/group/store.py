"""A group in ZooKeeper: one versioned znode, and an ephemeral one for each member.

::

    /groups/<name>                the group (codec.py); written only if its version is as read
    /groups/<name>/members/<id>   the member's session lives; JSON for whoever is curious
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from shoal.coordination import layout
from shoal.coordination.errors import (
    GroupNotEmpty,
    NodeExists,
    NoNode,
    NotEmpty,
    TransactionFailed,
)
from shoal.coordination.group.clock import EnsembleClock
from shoal.coordination.group.codec import decode, encode
from shoal.coordination.group.model import GroupMetadata
from shoal.coordination.nodes import Delete, WatchCallback
from shoal.coordination.session import ZkSession


@dataclass(frozen=True, slots=True)
class View:
    """A group as of a moment ago. ``registered`` was read after ``metadata``, so whoever is a
    member and not registered has gone."""

    metadata: GroupMetadata
    version: int
    registered: frozenset[str]


class GroupStore:
    """Read and write one group through one session."""

    def __init__(self, session: ZkSession, name: str, initial_rebalance_delay_s: float) -> None:
        self._session, self._name = session, name
        self._initial_rebalance_delay_s = initial_rebalance_delay_s
        self.clock = EnsembleClock()
        self._last: tuple[int, GroupMetadata] | None = None  # mzxid: and what was read then

    async def read(self, watch: WatchCallback | None = None) -> View:
        """``watch`` fires when the group or its members change. Raises NoNode, Mismatch."""
        # Sent in this order and answered in this order.
        node, members = await asyncio.gather(
            self._session.get(layout.group(self._name), watch=watch),
            self._session.children(layout.group_members(self._name), watch=watch),
        )
        if self._last is None or self._last[0] != node.stat.mzxid:
            group = decode(node.data, self._name, self._initial_rebalance_delay_s)
            self._last = node.stat.mzxid, group
        return View(
            self._last[1], node.stat.version, frozenset(map(layout.decode_name, members.names))
        )

    async def write(self, metadata: GroupMetadata, version: int) -> None:
        """Raises BadVersion if somebody else was quicker, and NoNode."""
        path = layout.group(self._name)
        self.clock.take(await self._session.set(path, encode(metadata), version=version))

    async def register(self, member_id: str, data: Mapping[str, Any]) -> None:
        """Create the member's ephemeral node, and take the time. ``member_id`` is used once."""
        path, content = self._path(member_id), json.dumps(dict(data)).encode()

        async def create() -> None:
            with suppress(NodeExists):  # the answer to an earlier try was lost
                await self._session.create(path, content, ephemeral=True, makepath=True)

        await self._session.retry(create)
        await self.touch(member_id, data)

    async def touch(self, member_id: str, data: Mapping[str, Any]) -> None:
        """Write the member's node again, to learn what time it is. Raises NoNode if it is gone."""
        path, content = self._path(member_id), json.dumps(dict(data)).encode()
        self.clock.take(await self._session.retry(lambda: self._session.set(path, content)))

    async def deregister(self, member_id: str) -> None:
        """Delete the member's node, if it is there."""
        path = self._path(member_id)
        await self._session.retry(lambda: self._session.delete(path, missing_ok=True))

    def _path(self, member_id: str) -> str:
        return layout.member(layout.group_members(self._name), member_id)


async def read_group(session: ZkSession, name: str) -> GroupMetadata:
    """Return the group as it is stored now, for a look from outside.

    A group that has never had members is Empty, in generation 0. Raises Mismatch, ConnectionLoss.
    """
    delay_s = 0.0  # a member's own business
    try:
        node = await session.get(layout.group(name))
    except NoNode:
        return GroupMetadata(name, delay_s)
    return decode(node.data, name, delay_s)


async def delete_group(session: ZkSession, name: str) -> None:
    """Delete what is stored of a group without members; nothing if there is no such group.

    Whoever joins later begins a new group, in generation 0. Members count as long as their
    sessions do: static ones that are only restarting do not. Raises GroupNotEmpty, SessionLost.
    """
    await session.retry(lambda: _delete(session, name))


async def _delete(session: ZkSession, name: str) -> None:
    group, members = layout.group(name), layout.group_members(name)
    delete = [Delete(members), Delete(group)]
    try:
        registered = (await session.children(members)).names
    except NoNode:  # deleted already, or only half made
        registered = []
        del delete[0]
    if registered:
        raise GroupNotEmpty(name, sorted(map(layout.decode_name, registered)))
    try:
        await session.multi(delete)  # as one: it fails if somebody has registered since
    except TransactionFailed as error:
        if isinstance(error.cause, NotEmpty):
            raise GroupNotEmpty(name, ()) from error
        if not isinstance(error.cause, NoNode):
            raise error.cause from error
