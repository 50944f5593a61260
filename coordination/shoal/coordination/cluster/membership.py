"""Members announce themselves with an ephemeral znode that holds JSON."""

import asyncio
import json
import math
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import structlog

from shoal.coordination import background, quarantine, znodes
from shoal.coordination.cluster.own_clock import OwnClock
from shoal.coordination.errors import CoordinationError, NodeExists, NoNode
from shoal.coordination.session.defaults import REREAD_S, RETRY_S
from shoal.coordination.session.documents import read_object
from shoal.coordination.session.nodes import Node, SessionState, WatchEvent
from shoal.coordination.session.session import ZkSession
from shoal.coordination.session.turns import NodeTurn

log = structlog.get_logger()

INCARNATION = "incarnation"  # key in the data: which life of the member wrote it
CLOCK_AHEAD_S = "clock_ahead_s"  # key in the data: see OwnClock; only while its clock is off


class Membership:
    """Keep ``parent_path``/``member_id`` existing for the life of the ``async with`` block.

    After a lost session the member registers again with the next one. A node that an older
    session of this very object left behind is replaced at once; one of another process with the
    same id (or of this process before a restart) is waited for, for it may still be alive. So is
    another object of the same session with the same id: it stays registered until its block ends.
    Entering returns when the member is registered. A member whose wall clock is off by seconds
    adds by how much (MemberInfo.clock_ahead_s).

    Raises TooLarge at construction if ``data`` is too large for ZooKeeper. Errors that no retry can
    cure, such as AccessDenied, end it: entering raises them, and so does ``wait``. After any other
    error it registers again a second later.

    A member that leaves while its session is in doubt deletes its node when the session goes on.
    """

    def __init__(
        self,
        session: ZkSession,
        parent_path: str,
        member_id: str,
        data: Mapping[str, Any],
        *,
        reread_s: float = REREAD_S,
        clock: OwnClock | None = None,
    ) -> None:
        self._session, self.member_id = session, member_id
        self._path = znodes.member(parent_path, member_id)
        self._data = dict(data)
        self._incarnation = uuid.uuid4().hex
        self._reread_s = reread_s
        self._clock = clock or OwnClock()
        self.epoch = 0  # creation zxid of the node; grows with every registration
        self._registered = asyncio.Event()
        self._recheck = asyncio.Event()
        self._registered_in = 0  # generation of the session
        self._turn: NodeTurn | None = None  # inside the block
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None]
        session.require_room(f"the znode of member {member_id}", self._encoded())

    async def __aenter__(self) -> Self:
        self._unsubscribe = self._session.on_state(lambda _: self._recheck.set())
        self._turn = self._session.turns.queue(self._path)
        self._task = background.start(self._run(self._turn), f"member {self.member_id}")
        registered = asyncio.create_task(self._registered.wait())
        try:
            await asyncio.wait([registered, self._task], return_when=asyncio.FIRST_COMPLETED)
            if self._task.done():
                self._task.result()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        finally:
            registered.cancel()
        return self

    async def __aexit__(self, *_: object) -> None:
        """If it is cancelled, the node is deleted in the background."""
        self._unsubscribe()
        if (turn := self._turn) is None:
            return
        is_in_doubt = True
        try:
            await background.stop(self._task)
            if turn.is_current:
                await self._deregister()
            is_in_doubt = False
        except CoordinationError as failure:
            is_in_doubt = failure.retriable
            log.debug("member not deregistered", member=self.member_id, error=str(failure))
        finally:
            # Without the turn the node is another actor's, or there is none.
            if is_in_doubt and turn.is_current:
                name = f"leftover of member {self.member_id}"
                self._task = background.start(self._delete_leftover(turn), name)
            else:
                turn.end()

    async def _delete_leftover(self, turn: NodeTurn) -> None:
        """Delete our node if the session, in doubt when the block was left, continues.

        It would stand as long as the session, and others would take us for alive.
        """
        generation = self._session.generation
        try:
            while True:
                await asyncio.sleep(0)  # the change of state is at most one turn of the loop away
                waits = (self._session.connected(), self._session.lost())
                ends = [asyncio.create_task(wait) for wait in waits]
                try:
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for end in ends:
                        end.cancel()
                    await asyncio.gather(*ends, return_exceptions=True)
                is_connected = self._session.state is SessionState.CONNECTED
                if not is_connected or self._session.generation != generation:
                    return None  # the session is over, and the node has gone with it
                try:
                    return await self._deregister()
                except CoordinationError as failure:
                    if not failure.retriable:
                        log.warning("member left", member=self.member_id, error=str(failure))
                        return None
        finally:
            turn.end()

    async def wait(self) -> None:
        """Return when the block has been left. Raises what has ended the membership before that."""
        await background.ended(self._task)

    async def _deregister(self) -> None:
        try:
            node = await self._session.get(self._path)
        except NoNode:
            return
        if node.stat.session_id == self._session.session_id:
            await self._session.delete(self._path, missing_ok=True)

    async def update(self, data: Mapping[str, Any]) -> None:
        """Replace the data. Without a connection it is written after the next one is made.

        Raises TooLarge, and keeps the data that it has.
        """
        self._session.require_room(f"the znode of member {self.member_id}", self._encode(data))
        self._data = dict(data)
        is_current = self._turn is not None and self._turn.is_current
        if not is_current or self._registered_in != self._session.generation:
            self._recheck.set()  # the node may be another actor's; ours gets the new data
            return
        try:
            await self._write()
        except CoordinationError:
            self._recheck.set()  # the loop writes it as soon as it can

    async def _write(self) -> None:
        sent = self._clock.read()
        stat = await self._session.set(self._path, self._encoded())
        if self._clock.note(sent, stat.mtime_ms):
            await self._session.set(self._path, self._encoded())

    def _encoded(self) -> bytes:
        return self._encode(self._data)

    def _encode(self, data: Mapping[str, Any]) -> bytes:
        ahead_s = self._clock.ahead_s
        clock = {} if ahead_s is None else {CLOCK_AHEAD_S: ahead_s}
        return json.dumps({**data, **clock, INCARNATION: self._incarnation}).encode()

    async def _run(self, turn: NodeTurn) -> None:
        await turn.has_come.wait()
        while True:
            self._recheck.clear()
            await self._session.connected()
            try:
                await self._register()
            except NodeExists:
                continue  # it came after we read
            except CoordinationError as error:
                if error.is_final:
                    raise
                if not error.retriable:
                    log.warning("registration failed", member=self.member_id, error=str(error))
            except Exception:
                log.exception("registration failed", member=self.member_id)
                await asyncio.sleep(RETRY_S)
                continue
            try:
                async with asyncio.timeout(self._reread_s):
                    await self._recheck.wait()
            except TimeoutError:
                continue

    async def _register(self) -> None:
        """Read the node: absent, ours, left over by our older session, or another process's."""
        data = self._encoded()
        try:
            node = await self._session.get(self._path, watch=self._changed)
        except NoNode:
            created = await self._session.create(self._path, data, ephemeral=True, makepath=True)
            self._note(created.czxid)
            return
        is_ours = _decode(node.data).get(INCARNATION) == self._incarnation
        if node.stat.session_id == self._session.session_id:
            if not is_ours and node.stat.czxid != self.epoch:
                # An actor of this session that had its turn before us could not delete it.
                await self._session.delete(self._path, version=node.stat.version, missing_ok=True)
                self._recheck.set()
                return
            # Perhaps the answer to its create was lost, or update() found no connection.
            if node.data != data or self._clock.is_due:
                await self._write()
            self._note(node.stat.czxid)
        elif not node.stat.session_id:
            await quarantine.isolate(self._session, self._path, node, "no member: it lasts")
            self._recheck.set()
        elif is_ours:
            await self._session.delete(self._path, version=node.stat.version, missing_ok=True)
            self._recheck.set()
        else:
            log.warning(
                "another live session has this id; waiting for it to end",
                member=self.member_id,
                its_data=_decode(node.data),
            )

    def _changed(self, _: WatchEvent) -> None:
        self._recheck.set()

    def _note(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            log.info("member registered", member=self.member_id, epoch=epoch)
        self._registered_in = self._session.generation
        self._registered.set()


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """A member as it last announced itself. ``czxid`` grows with every registration."""

    id: str
    data: Mapping[str, Any]
    czxid: int
    # Of its wall clock against the ensemble's; None if they agree, or it is not known.
    clock_ahead_s: float | None = None


class Members:
    """Follow the members below ``parent_path``.

    Members have sessions: a lasting znode is not a member, and is quarantined. A member whose data
    cannot be read is there all the same, without data, until it writes them again.

    ``current()`` is the last view; without a connection it grows old, and stays. Entering
    returns with the first view. Changes of a member's data show within ``reread_s``.
    """

    def __init__(self, session: ZkSession, parent_path: str, *, reread_s: float = REREAD_S) -> None:
        self._session, self._path, self._reread_s = session, parent_path, reread_s
        self._view: dict[str, MemberInfo] = {}
        self._listeners: list[Callable[[Mapping[str, MemberInfo]], None]] = []
        self._recheck = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._session.retry(self._read)
        self._task = background.keep_running(self._run, f"members {self._path}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await background.stop(self._task)

    def current(self) -> Mapping[str, MemberInfo]:
        return self._view

    async def lookup(self, member_id: str) -> MemberInfo | None:
        """Return a member as of this call or later, None if there is none of this id."""
        sync = self._session.sync(self._path)  # our server may lag behind
        read = self._session.get(znodes.member(self._path, member_id))
        try:
            _, node = await asyncio.gather(sync, read)
        except NoNode:
            return None
        return _member(member_id, node)

    async def refresh(self) -> Mapping[str, MemberInfo]:
        """Read now and return the view, entered or not. Raises CoordinationError."""
        await self._session.retry(self._read)
        return self._view

    def on_change(self, listener: Callable[[Mapping[str, MemberInfo]], None]) -> Callable[[], None]:
        """Call ``listener`` with each new view, on the loop. Returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def changes(self) -> AsyncIterator[Mapping[str, MemberInfo]]:
        """Yield the present view, then each new one; views in between may be left out."""
        changed = asyncio.Event()
        unsubscribe = self.on_change(lambda _: changed.set())
        try:
            while True:
                changed.clear()
                yield self._view
                await changed.wait()
        finally:
            unsubscribe()

    def _changed(self, _: WatchEvent) -> None:
        self._recheck.set()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._reread_s):
                    await self._recheck.wait()
            except TimeoutError:
                pass
            self._recheck.clear()
            try:
                await self._session.retry(self._read)
            except CoordinationError as error:
                log.warning("members not read", path=self._path, error=str(error))

    async def _read(self) -> None:
        try:
            names = (await self._session.children(self._path, watch=self._changed)).names
        except NoNode:
            await self._session.ensure(self._path)
            names = (await self._session.children(self._path, watch=self._changed)).names
        gets = [self._session.get(f"{self._path}/{name}") for name in names]
        nodes = await asyncio.gather(*gets, return_exceptions=True)
        view: dict[str, MemberInfo] = {}
        for name, node in zip(names, nodes, strict=True):
            if isinstance(node, Node) and not node.stat.session_id:
                path = f"{self._path}/{name}"
                await quarantine.isolate(self._session, path, node, "no member: it lasts")
            elif isinstance(node, Node):
                member_id = znodes.decode_name(name)
                view[member_id] = _member(member_id, node)
            elif not isinstance(node, NoNode):
                raise node
        if view != self._view:
            self._view = view
            for listener in list(self._listeners):
                try:
                    listener(view)
                except Exception:
                    log.exception("listener of members failed", path=self._path)


def _member(member_id: str, node: Node) -> MemberInfo:
    data = _decode(node.data)
    data.pop(INCARNATION, None)
    return MemberInfo(member_id, data, node.stat.czxid, _seconds(data.pop(CLOCK_AHEAD_S, None)))


def _seconds(value: Any) -> float | None:
    """Return a member's number of seconds; anything may stand there."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _decode(data: bytes) -> dict[str, Any]:
    """Return the JSON object in ``data``; an empty one if something else is there."""
    return read_object(data) or {}
