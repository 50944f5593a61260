"""A group in ZooKeeper: one versioned znode, and an ephemeral one for each member.

::

    /groups/<name>                the group (codec.py); written only if its version is as read
    /groups/<name>/members/<id>   the member's session lives; JSON for operators
"""

import asyncio
import json
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from shoal.coordination import quarantine, znodes
from shoal.coordination.errors import (
    GroupNotEmpty,
    GroupTooLarge,
    Mismatch,
    NodeExists,
    NoNode,
    NotEmpty,
    TransactionFailed,
)
from shoal.coordination.group.codec import decode, encode, most_partitions
from shoal.coordination.group.model import GroupMetadata
from shoal.coordination.group.plausibility import implausible
from shoal.coordination.session.nodes import Delete, Node, WatchCallback
from shoal.coordination.session.session import NODE_BYTES, ZkSession
from shoal.coordination.session.wire import Stat
from shoal.runtime.side.own_thread import call_in_own_thread

T = TypeVar("T")

# From so many partitions, or bytes of a group, on its work leaves the event loop.
LARGE_PARTITIONS = 5_000
LARGE_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class View:
    """A group as of a moment ago. ``registered`` was read after ``metadata``, so a member that is
    not registered has gone."""

    metadata: GroupMetadata
    node: Node = field(repr=False)  # from which it was read
    registered: frozenset[str]
    names: frozenset[str] = field(repr=False)  # of the registrations' znodes

    @property
    def version(self) -> int:
        """Of the group's znode."""
        return self.node.stat.version


class UnreadableGroup(Exception):
    """What was stored was no group; it is quarantined, and the next reading finds another."""


async def compute(call: Callable[[], T], *, is_large: bool) -> T:
    """Return ``call()``; off the loop if that may take long, so that it can be cancelled.

    A process that gets no thread computes it on the loop.
    """
    if not is_large:
        return call()
    has_begun = False

    def begin() -> T:
        nonlocal has_begun
        has_begun = True
        return call()

    try:
        return await call_in_own_thread(begin, "group")
    except RuntimeError:
        if has_begun:
            raise
        return call()


class GroupStore:
    """Read and write one group through one session."""

    def __init__(self, session: ZkSession, name: str, initial_rebalance_delay_s: float) -> None:
        self._session, self._name = session, name
        self._initial_rebalance_delay_s = initial_rebalance_delay_s
        self.clock = EnsembleClock()
        self._last: tuple[int, GroupMetadata] | None = None  # mzxid: and what was read then
        self._newest_generation = 0
        self._of_sessions: frozenset[str] = frozenset()  # registrations that sessions hold

    async def read(self, watch: WatchCallback | None = None) -> View:
        """``watch`` fires when the group or its members change. Raises NoNode.

        Raises Unreadable when what is stored is not a group: then it has been quarantined, and the
        group begins anew, empty and in a higher generation.
        """
        # Sent in this order and answered in this order.
        node, members = await asyncio.gather(
            self._session.get(znodes.group(self._name), watch=watch),
            self._session.children(znodes.group_members(self._name), watch=watch),
        )
        registered = frozenset(map(znodes.decode_name, members.names))
        if self._last is None or self._last[0] != node.stat.mzxid:
            try:
                group = await compute(
                    lambda: decode(node.data, self._name, self._initial_rebalance_delay_s),
                    is_large=len(node.data) > LARGE_BYTES,
                )
            except Mismatch as error:
                await self._begin_anew(node, str(error))
            now_s = self.clock.now_s() if self.clock.is_set else math.inf
            if problem := implausible(group, now_s, registered):
                await self._begin_anew(node, problem)
            self._last = node.stat.mzxid, group
            self._newest_generation = max(self._newest_generation, group.generation)
        return View(self._last[1], node, registered, frozenset(members.names))

    async def _begin_anew(self, node: Node, problem: str) -> NoReturn:
        """Put an empty group where ``node`` was read. Always raises Unreadable."""
        # Every generation is a write at least, so the version is not below what was lost.
        generation = max(self._newest_generation, node.stat.version) + 1
        empty = GroupMetadata(self._name, generation=generation)
        path = znodes.group(self._name)
        await quarantine.isolate(self._session, path, node, problem, put=encode(empty))
        raise UnreadableGroup(f"the state of group {self._name!r} was quarantined: {problem}")

    async def give_up(self, view: View, problem: str) -> NoReturn:
        """What was read makes the members fail: begin anew. Always raises Unreadable."""
        await self._begin_anew(view.node, problem)

    async def remove_lasting(self, view: View) -> None:
        """Quarantine registrations that no session holds: no member would ever end them."""
        known = view.names & self._of_sessions
        paths = {n: f"{znodes.group_members(self._name)}/{n}" for n in view.names - known}
        stats = await asyncio.gather(*(self._session.exists(path) for path in paths.values()))
        of_sessions = {
            name
            for name, stat in zip(paths, stats, strict=True)
            if stat is not None and stat.session_id != 0
        }
        # What is quarantined is not known: it may be there again at once.
        self._of_sessions = known | of_sessions
        for (name, path), stat in zip(paths.items(), stats, strict=True):
            if stat and name not in of_sessions:
                reason = "no registration: it lasts"
                await quarantine.isolate_name(self._session, path, reason)

    async def write(self, metadata: GroupMetadata, version: int) -> None:
        """Raises BadVersion if another member was quicker, and NoNode."""
        path = znodes.group(self._name)
        named = sum(map(len, metadata.assignment.values()))
        content = await compute(
            lambda: encode(metadata, self._room), is_large=named > LARGE_PARTITIONS
        )
        self.clock.take(await self._session.set(path, content, version=version))

    @property
    def _room(self) -> int:
        """Bytes that the group may have."""
        return self._session.max_request_bytes - NODE_BYTES

    def require_room(self, metadata: GroupMetadata) -> None:
        """Raise GroupTooLarge if the members could not get all that they ask for."""
        partitions = sum(metadata.partition_counts.values())
        fit = most_partitions(metadata, self._room)
        if partitions > fit or not fit:
            members = len(metadata.members)
            limit = self._session.max_request_bytes
            raise GroupTooLarge(self._name, members, partitions, fit, limit)

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
        return znodes.member(znodes.group_members(self._name), member_id)


async def read_group(session: ZkSession, name: str) -> GroupMetadata:
    """Return the group as it is stored now, for observers.

    A group that has never had members is Empty, in generation 0. Raises Mismatch, ConnectionLoss.
    """
    delay_s = 0.0  # a setting of each member
    try:
        node = await session.get(znodes.group(name))
    except NoNode:
        return GroupMetadata(name, delay_s)
    return decode(node.data, name, delay_s)


async def delete_group(session: ZkSession, name: str) -> None:
    """Delete what is stored of a group without members; nothing if there is no such group.

    A member that joins later begins a new group, in generation 0. Members count as long as their
    sessions do: static ones that are only restarting do not. Raises GroupNotEmpty, SessionLost.
    """
    await session.retry(lambda: _delete(session, name))


async def _delete(session: ZkSession, name: str) -> None:
    group, members = znodes.group(name), znodes.group_members(name)
    delete = [Delete(members), Delete(group)]
    try:
        registered = (await session.children(members)).names
    except NoNode:  # deleted already, or only half made
        registered = []
        del delete[0]
    if registered:
        raise GroupNotEmpty(name, sorted(map(znodes.decode_name, registered)))
    try:
        await session.multi(delete)  # as one: it fails if a member has registered since
    except TransactionFailed as error:
        if isinstance(error.cause, NotEmpty):
            raise GroupNotEmpty(name, ()) from error
        if not isinstance(error.cause, NoNode):
            raise error.cause from error


class EnsembleClock:
    """Count on from the moment at which ZooKeeper's leader said what time it was.

    Deadlines of a group are written by one member and checked by another, so the members' own
    clocks do not serve: one that is an hour ahead would evict all others. ZooKeeper stamps each
    write with its leader's wall clock; from the answer on we count with ``time.monotonic``. An
    answer that was long on its way makes us late by as much: deadlines pass late, never early.
    Only if the servers' clocks differ (and another one becomes leader in the middle of a
    rebalance), or one is set anew, deadlines are off by that difference, until the next write.
    """

    def __init__(self) -> None:
        self._ahead_s = 0.0  # of the monotonic clock
        self._taken = float("-inf")

    def take(self, stat: Stat) -> None:
        """Take the time from the answer to a write of ours, which came just now."""
        self._taken = time.monotonic()
        self._ahead_s = stat.mtime_ms / 1000 - self._taken

    def now_s(self) -> float:
        """Return seconds since the epoch, of the ensemble's clock."""
        return time.monotonic() + self._ahead_s

    @property
    def is_set(self) -> bool:
        """Whether the time was ever taken."""
        return self._taken > float("-inf")

    @property
    def age_s(self) -> float:
        """Seconds since the time was last taken."""
        return time.monotonic() - self._taken
