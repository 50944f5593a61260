"""A group in ZooKeeper: one versioned znode, and an ephemeral one for each member.

::

    /groups/<name>                the group (codec.py); written only if its version is as read
    /groups/<name>/members/<id>   the member's session lives; JSON for operators

All members of a group in one session share a store. Each change is read and decoded once for them,
and the requests that they make on one view are written together. So sessions, not members, compete
for the group's znode.
"""

import asyncio
import json
import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from shoal.coordination import quarantine, znodes
from shoal.coordination.errors import (
    BadVersion,
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
from shoal.coordination.session.nodes import Delete, Node, WatchCallback, WatchEvent
from shoal.coordination.session.session import NODE_BYTES, ZkSession
from shoal.coordination.session.wire import Stat
from shoal.runtime.side.own_thread import call_in_own_thread

T = TypeVar("T")

# From so many partitions, or bytes of a group, on its work leaves the event loop.
LARGE_PARTITIONS = 5_000
LARGE_BYTES = 100_000
LARGE_BATCH = 20_000  # requests times members: each request looks at all of them

# A change is read after a random pause of up to this many seconds for each session that competes.
# So they read and write one after the other; all at once, only one of all writes would succeed.
SPREAD_S = 0.003
# Every write that came too late doubles that pause, up to this many seconds.
LONGEST_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class View:
    """A group as of a moment ago. ``registered`` was read after ``metadata``, so a member that is
    not registered has gone."""

    metadata: GroupMetadata
    node: Node = field(repr=False)  # from which it was read
    registered: frozenset[str]
    names: frozenset[str] = field(repr=False)  # of the registrations' znodes
    absent: frozenset[str] = field(repr=False)  # static members that are not registered
    read_at: float = field(compare=False)  # time.monotonic() when the reading ended

    @property
    def version(self) -> int:
        """Of the group's znode."""
        return self.node.stat.version


# Make a change to a group. The flag says whether to refuse members that the group has no room for:
# that costs time for each of them, so it is left out where all members of a batch fit.
Apply = Callable[[GroupMetadata, bool], GroupMetadata]


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


@dataclass(eq=False, slots=True)
class _Change:
    """What one member wants to make of the group that it has read in version ``version``."""

    version: int
    apply: "Apply"
    done: asyncio.Future[bool]


class GroupStore:
    """Read and write one group through one session.

    ``group_store`` returns the one that all members of the session share: they use ``current`` and
    ``change``. ``read`` and ``write`` share nothing.
    """

    def __init__(self, session: ZkSession, name: str, initial_rebalance_delay_s: float) -> None:
        self._session, self._name = session, name
        self.initial_rebalance_delay_s = initial_rebalance_delay_s
        self.clock = EnsembleClock()
        self._last: tuple[int, GroupMetadata] | None = None  # mzxid: and what was read then
        self._newest_generation = 0
        self._of_sessions: frozenset[str] = frozenset()  # registrations that sessions hold
        self._checking = asyncio.Lock()
        self._listeners: dict[Callable[[], None], None] = {}  # called in this order
        self._noted = 0  # changes that we know of
        self._view: View | None = None
        self._view_noted = 0  # changes that we knew of before that view was read
        self._reading: asyncio.Task[None] | None = None
        self._readings = 0
        self._queue: list[_Change] = []
        self._writing: asyncio.Task[None] | None = None
        self._collisions = 0  # writes in a row that came too late
        self._outdated: View | None = None  # by our own write, until the next reading

    # ------------------------------------------------------------------ shared by the members

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` when the group may have changed. Returns a function that ends that."""
        self._listeners[listener] = None

        def end() -> None:
            self._listeners.pop(listener, None)

        return end

    async def current(self, max_age_s: float) -> View:
        """Return a view that has all changes known by now and is at most ``max_age_s`` old.

        Members that ask at the same time share one reading. Raises the same errors as ``read``.
        """
        noted, readings = self._noted, self._readings
        while (
            self._view is None
            or self._view_noted < noted
            or time.monotonic() - self._view.read_at >= max_age_s
        ):
            if self._reading is None:
                self._readings += 1
                self._reading = asyncio.create_task(self._read_shared(), name="group reading")
                self._reading.add_done_callback(_retrieve)
            reading, is_ours = self._reading, self._readings > readings
            await asyncio.wait([reading])  # it goes on for the others when we are cancelled
            if is_ours:
                reading.result()
                # It is as new as can be; slow servers must not make it too old at once.
                if self._view is not None and self._view_noted >= noted:
                    return self._view
        return self._view

    async def _read_shared(self) -> None:
        try:
            if self._view is not None and self._view_noted < self._noted:
                await asyncio.sleep(random.uniform(0, self._pause_s(self._view)))
            noted = self._noted
            self._view = await self.read(self._changed)
            self._view_noted = noted
        finally:
            self._reading = None

    def _pause_s(self, view: View) -> float:
        """Return the longest pause before a change is read.

        Other sessions are taken to have as many members as this one.
        """
        members = max(len(view.registered), len(view.metadata.members))
        spread_s = SPREAD_S * math.ceil(members / max(1, len(self._listeners)))
        return min(spread_s * 2.0**self._collisions, max(spread_s, LONGEST_PAUSE_S))

    def _changed(self, _: WatchEvent) -> None:
        self._note_change()

    def _note_change(self) -> None:
        self._noted += 1
        for listener in list(self._listeners):
            listener()

    async def change(self, view: View, apply: Apply) -> bool:
        """Write what ``apply`` makes of the group; return whether it changes it.

        Changes that members make on one view are applied one after the other and written as one.
        Raises what ``apply`` raises; BadVersion if the group is no longer as in ``view``; NoNode;
        ConnectionLoss, after which the change may have been written.
        """
        change = _Change(view.version, apply, asyncio.get_running_loop().create_future())
        self._queue.append(change)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_changes(), name="group writing")
            self._writing.add_done_callback(_retrieve)
        return await change.done

    async def settled(self) -> None:
        """Return when no change is being written."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    async def _write_changes(self) -> None:
        changes: list[_Change] = []
        try:
            while self._queue:
                # All members that were woken by one view decide within this turn of the loop.
                await asyncio.sleep(0)
                changes, self._queue = self._queue, []
                await self._write_batch([each for each in changes if not each.done.done()])
        finally:
            self._writing = None
            for change in (*changes, *self._queue):
                change.done.cancel()  # those that are left: we were cancelled
            self._queue.clear()

    async def _write_batch(self, changes: list[_Change]) -> None:
        view = self._view
        assert view is not None
        is_new = view is not self._outdated
        batch = [each for each in changes if is_new and each.version == view.version]
        for each in changes:
            if each not in batch:
                _fail(each, BadVersion(f"group {self._name}"))
        has_changed: dict[_Change, bool] = {}
        failed: dict[_Change, Exception] = {}

        def apply_all(*, checks_room: bool) -> GroupMetadata:
            group = view.metadata
            has_changed.clear()
            failed.clear()
            for change in batch:
                try:
                    after = change.apply(group, checks_room)
                except Exception as error:  # noqa: BLE001 - it concerns that member alone
                    failed[change] = error
                    continue
                has_changed[change] = after is not group and after != group
                group = after
            return group

        def decide_all() -> GroupMetadata:
            group = apply_all(checks_room=len(batch) == 1)
            if len(batch) > 1 and group.members.keys() - view.metadata.members.keys():
                try:
                    self.require_room(group)
                except GroupTooLarge:
                    return apply_all(checks_room=True)
            return group

        is_large = len(batch) * len(view.metadata.members) > LARGE_BATCH
        try:
            group = await compute(decide_all, is_large=is_large)
            if any(has_changed.values()):
                await self.write(group, view.version)
                self._collisions, self._outdated = 0, view
        except Exception as error:  # noqa: BLE001 - each member gets it
            if isinstance(error, BadVersion):
                self._collisions = min(self._collisions + 1, 10)
            for each in batch:
                failed.setdefault(each, error)
        for each, problem in failed.items():
            _fail(each, problem)
        for each, value in has_changed.items():
            if not each.done.done():
                each.done.set_result(value)

    # ------------------------------------------------------------------ one request

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
                    lambda: decode(node.data, self._name, self.initial_rebalance_delay_s),
                    is_large=len(node.data) > LARGE_BYTES,
                )
            except Mismatch as error:
                await self._begin_anew(node, str(error))
            now_s = self.clock.now_s() if self.clock.is_set else math.inf
            if problem := implausible(group, now_s, registered):
                await self._begin_anew(node, problem)
            self._last = node.stat.mzxid, group
            self._newest_generation = max(self._newest_generation, group.generation)
        return View(
            metadata=self._last[1],
            node=node,
            registered=registered,
            names=frozenset(members.names),
            absent=frozenset(
                member.id
                for member in self._last[1].members.values()
                if member.join.instance_id is not None and member.id not in registered
            ),
            read_at=time.monotonic(),
        )

    async def _begin_anew(self, node: Node, problem: str) -> NoReturn:
        """Put an empty group where ``node`` was read. Always raises Unreadable."""
        # Every generation is a write at least, so the version is not below what was lost.
        generation = max(self._newest_generation, node.stat.version) + 1
        empty = GroupMetadata(self._name, generation=generation)
        path = znodes.group(self._name)
        try:
            await quarantine.isolate(self._session, path, node, problem, put=encode(empty))
        finally:
            self._note_change()
        raise UnreadableGroup(f"the state of group {self._name!r} was quarantined: {problem}")

    async def give_up(self, view: View, problem: str) -> NoReturn:
        """What was read makes the members fail: begin anew. Always raises Unreadable."""
        await self._begin_anew(view.node, problem)

    async def remove_lasting(self, view: View) -> None:
        """Quarantine registrations that no session holds: no member would ever end them."""
        async with self._checking:
            await self._remove_lasting(view)

    async def _remove_lasting(self, view: View) -> None:
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
        try:
            self.clock.take(await self._session.set(path, content, version=version))
        finally:
            self._note_change()  # perhaps also after an error

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
        self._note_change()  # the view must contain the registration

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


def group_store(session: ZkSession, name: str, initial_rebalance_delay_s: float) -> GroupStore:
    """Return the store that all members of group ``name`` in this session share."""
    stores = _stores.setdefault(session, WeakValueDictionary())
    store = stores.get(name)
    if store is None:
        stores[name] = store = GroupStore(session, name, initial_rebalance_delay_s)
    # Each member has a delay of its own (see Life); damage is judged by the longest one.
    longest_s = max(store.initial_rebalance_delay_s, initial_rebalance_delay_s)
    store.initial_rebalance_delay_s = longest_s
    return store


_stores: WeakKeyDictionary[ZkSession, WeakValueDictionary[str, GroupStore]] = WeakKeyDictionary()


def _retrieve(task: asyncio.Task[None]) -> None:
    """Members that are cancelled do not ask for the error of their reading."""
    if not task.cancelled():
        task.exception()


def _fail(change: _Change, error: Exception) -> None:
    if not change.done.done():
        change.done.set_exception(error)


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
