"""Own partitions: hold an ephemeral znode for each one that we want.

The node's creation zxid is the epoch of the ownership. It grows with every change of hands (and
with every new beginning of the same owner). Every write on behalf of a partition carries it, and
the database refuses older ones. Owning is decided by a successful create alone.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar

import structlog

from shoal.coordination import background, quarantine
from shoal.coordination.errors import (
    BadVersion,
    CoordinationError,
    NodeExists,
    NoNode,
    NotOwner,
    SessionLost,
    TransactionFailed,
)
from shoal.coordination.session.defaults import REREAD_S, RETRY_S
from shoal.coordination.session.nodes import Create, Created, Delete, Operation, SetData, WatchEvent
from shoal.coordination.session.session import ZkSession
from shoal.coordination.session.turns import NodeTurn
from shoal.core.errors import ShoalError
from shoal.runtime.limits import memory_shortage

log = structlog.get_logger()

P = TypeVar("P")  # how the user of an ownership names partitions

REREAD_TURNS = 12  # in which all owner nodes are read again


@dataclass(frozen=True)
class OwnershipListener(Generic[P]):
    """What an owner does when partitions change hands. ``Ownership`` says when each is called."""

    on_acquired: Callable[[P, int], Awaitable[None]]  # the partition and its epoch
    on_released: Callable[[P], Awaitable[None]]
    on_lost: Callable[[frozenset[P]], Awaitable[None]]


@dataclass(frozen=True)
class OwnerNodes(Generic[P]):
    """The owner nodes of an owner: where each partition's is, and the JSON that ours hold."""

    path: Callable[[P], str]
    owner_id: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Ownership:
    """Acquire what ``set_wanted`` names, keep it, and release it in order.

    The callbacks of ``listener``, all on the loop:

    - ``on_acquired(partition, epoch)``: we own it. If it fails, the partition is released and
      acquired again a second later. To await a task that is cancelled is a failure, too.
    - ``on_released(partition)``: no longer wanted; runs *before* the node is deleted, so it may
      finish work as the owner. It comes only after its ``on_acquired`` has returned.
    - ``on_lost(partitions)``: ownership is gone or can no longer be proven: do not write any
      more. A running ``on_acquired`` or ``on_released`` of theirs has been cancelled before.

    SUSPENDED changes nothing by itself. When ``session.proven_until`` passes, and when the
    session is LOST, everything is lost; it is acquired again, with higher epochs, once a session
    is proven. What is no longer wanted by then is released: a session in doubt may have gone
    on, and others would wait for our node for ever. A clean release is recorded in the parent of
    the owner node, so a successor need not wait; after an owner that vanished it waits
    ``takeover_delay_s``.

    Other ownerships of the same session may want the same partition. They take turns: the next
    one begins when ours has been released or ``on_lost`` has run.

    The parent of an owner node is made if it is missing. Its data is ours, and nothing but owner
    nodes may come and go below it (one lasting node may be there).

    ``give_up`` is for an owner whose node stands although the store that its epochs fence knows a
    newer owner: the node goes, and a pause later a new one is made.

    An owner node that is deleted from outside, or replaced, is noticed by a watch, at the latest
    after ``REREAD_TURNS * reread_s``: that partition is lost (``on_lost``) and then acquired
    again, with a higher epoch. A node without a session at an owner's path is quarantined.

    An unexpected error while a partition is acquired or released is logged. Acquiring or releasing
    is tried again a second later, and meanwhile other ownerships of the session have their turn.
    A CoordinationError that ``is_final`` while it acquires (``on_acquired`` included) ends the
    ownership: everything is released, ``wait`` raises it, and ``on_failure`` is called with it.
    Raises TooLarge at construction if the data of its nodes is too large for ZooKeeper.
    """

    def __init__(
        self,
        session: ZkSession,
        nodes: OwnerNodes[int],
        listener: OwnershipListener[int],
        *,
        takeover_delay_s: float = 0.0,
        reread_s: float = REREAD_S,
        on_failure: Callable[[CoordinationError], None] = lambda _: None,
    ) -> None:
        self._on_failure = on_failure
        self._failure: CoordinationError | None = None
        self._over = asyncio.Event()  # the block is left, or it has failed
        self._session, self.owner_id, self._owner_path = session, nodes.owner_id, nodes.path
        self._data = json.dumps({**nodes.data, "owner_id": nodes.owner_id}).encode()
        session.require_room(f"the owner node of {nodes.owner_id}", self._data)
        self._listener = listener
        self._takeover_delay_s, self._reread_s = takeover_delay_s, reread_s
        self._wanted: frozenset[int] = frozenset()
        self._held: dict[int, _Hold] = {}  # every partition that we work on
        self._epochs: dict[int, int] = {}  # what we own
        self._leftover: set[int] = set()  # not owned, but perhaps a node of ours stands
        self._resting: dict[int, float] = {}  # given up until then (monotonic)
        self._ready = False  # the session is proven
        self._idle = asyncio.Event()  # nothing is held
        self._idle.set()
        self._leaving = asyncio.Event()  # the block is being left
        self._unwatched: set[int] = set()  # owned, and no watch is on the node
        self._has_unwatched = asyncio.Event()
        self._turn = 0  # of the nodes that are read again
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._leaving.clear()
        self._over.clear()
        loops = {"ownership": self._run, "owner nodes": self._watch_nodes}
        self._tasks = [
            background.keep_running(loop, f"{name} of {self.owner_id}")
            for name, loop in loops.items()
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Release everything; while the session is not proven there is nothing to release.

        If it is cancelled, what is not released by then is lost: ``on_lost`` runs, and the nodes
        are deleted in the background.
        """
        self._leaving.set()
        self.set_wanted(())
        try:
            while self._held:  # what was given up is held again at once, to delete its node
                await self._idle.wait()
            await self._end()
        except asyncio.CancelledError:
            await self.abandon()
            raise

    async def abandon(self) -> None:
        """Leave the block at once: everything is lost, as if ``__aexit__`` had been cancelled."""
        self._leaving.set()
        self.set_wanted(())
        # A task, for another cancellation ends the wait only: no loop and no hold may stay.
        name = f"end of ownership of {self.owner_id}"
        await asyncio.shield(background.start(self._abandon(), name))

    async def _abandon(self) -> None:
        while self._held:
            await self._lose(self._held)
            await self._idle.wait()  # another call may be losing some of them
        await self._end()

    async def _end(self) -> None:
        self._ready = False  # nothing is held for what is wanted later, until the next block
        self._over.set()
        for task in self._tasks:
            await background.stop(task)
        if self._leftover:
            name = f"leftover owner nodes of {self.owner_id}"
            self._tasks = [background.start(self._delete_leftovers(), name)]

    async def _delete_leftovers(self) -> None:
        """Delete our nodes if the session, in doubt when the block was left, continues.

        They would stand as long as the session: others that share it may keep it for ever.
        """
        ends = [asyncio.create_task(end) for end in (self._session.proven(), self._session.lost())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        for partition in self._leftover:
            try:
                turn = self._session.turns.queue(self._owner_path(partition))
                try:
                    # If another actor of the session has the turn, the node is its own now.
                    if turn.is_current and turn.may_stand:
                        turn.may_stand = not await self._delete(partition)
                finally:
                    turn.end()
            except Exception:
                log.exception("leftover owner node not deleted", partition=partition)

    def set_wanted(self, partitions: Iterable[int]) -> None:
        """Acquire and keep exactly these from now on; release the others.

        While the block is being left nothing is acquired, whatever is wanted.

        Raises what ``path`` of the owner nodes raises for a new one of them; then nothing changes.
        """
        is_ending = self._leaving.is_set() and not self._over.is_set()
        wanted = frozenset(() if is_ending or self._failure is not None else partitions)
        for partition in wanted - self._held.keys():
            self._owner_path(partition)
        self._wanted = wanted
        for partition, hold in self._held.items():
            if partition not in self._wanted:
                hold.unwanted.set()
        self._begin_holds()

    async def wait(self) -> None:
        """Return when the block has been left. Raises what has ended the ownership before that."""
        await self._over.wait()
        self.raise_failure()

    def raise_failure(self) -> None:
        """Raise what has ended the ownership, if anything has."""
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: CoordinationError) -> None:
        """No repetition helps: release everything, and tell the owner."""
        if self._failure is None:
            log.error("ownership ended", owner=self.owner_id, error=str(error))
            self._failure = error
            self._over.set()
            self.set_wanted(())
            self._on_failure(error)

    async def released(self, partitions: Iterable[int]) -> None:
        """Return when those of ``partitions`` that are no longer wanted are not ours either.

        Their ``on_released`` has run and their owner nodes are gone; or they were lost, and
        ``on_lost`` has run.
        """
        named = frozenset(partitions)
        while unwanted := named & self._held.keys() - self._wanted:
            await asyncio.gather(*(self._held[partition].gone.wait() for partition in unwanted))

    def owned(self) -> Mapping[int, int]:
        """Return the epoch of each partition that we own and can prove to own at this moment.

        Partitions whose ``on_acquired`` is still running are among them.
        """
        proven = self._session.is_proven
        return MappingProxyType(dict(self._epochs) if proven else {})

    def epoch_of(self, partition: int) -> int:
        """Return the epoch. Raises NotOwner."""
        if (epoch := self.owned().get(partition)) is None:
            raise NotOwner(partition, self.owner_id)
        return epoch

    async def confirmed(self, partitions: Iterable[int]) -> Mapping[int, int]:
        """Return the epochs of those of ``partitions`` whose owner nodes, read now, are ours.

        Unlike ``owned`` it sees a node that was replaced, if no watch has fired yet. Raises
        ConnectionLoss, SessionLost.
        """
        named = list(partitions)
        await self._session.sync()
        stats = await asyncio.gather(*(self._session.exists(self._owner_path(p)) for p in named))
        epochs = self.owned()
        return {
            partition: stat.czxid
            for partition, stat in zip(named, stats, strict=True)
            if stat is not None and stat.czxid == epochs.get(partition)
        }

    async def give_up(self, epochs: Mapping[int, int], pause_s: float) -> frozenset[int]:
        """Lose partitions whose epochs are these, and acquire them again after ``pause_s``.

        ``on_lost`` runs, then their nodes are deleted if they are ours. Partitions with other
        epochs by now are left alone. Returns those that were given up. If it is cancelled, all this
        is done in the background.
        """
        given = frozenset(p for p, epoch in epochs.items() if self._epochs.get(p) == epoch)
        until_s = time.monotonic() + pause_s
        self._resting.update(dict.fromkeys(given, until_s))
        # A task, so that cancelling the caller ends only its wait: no hold may stay half lost.
        name = f"partitions given up by {self.owner_id}"
        await asyncio.shield(background.start(self._renew(given), name))
        return given

    async def _renew(self, partitions: Iterable[int]) -> None:
        """Lose ``partitions`` and acquire again those that are wanted."""
        await self._lose(partitions)
        self._begin_holds()

    async def _run(self) -> None:
        while True:
            try:
                await self._session.proven()
            except CoordinationError as error:  # the session is over for good
                self._fail(error)
                return
            self._ready = True
            self._begin_holds()
            await self._session.unproven()
            self._ready = False
            await self._lose(self._held)

    async def _lose(self, partitions: Iterable[int]) -> None:
        """End the holds of ``partitions``, except those that another call ends already."""
        holds = {p: self._held[p] for p in partitions if p in self._held}
        holds = {p: hold for p, hold in holds.items() if not hold.is_lost}
        for hold in holds.values():
            hold.is_lost = True  # it is not begun anew before ``on_lost`` has run
            hold.task.cancel()
        await asyncio.gather(*(hold.task for hold in holds.values()), return_exceptions=True)
        # A hold may have come to its own end meanwhile.
        holds = {p: hold for p, hold in holds.items() if self._held.get(p) is hold}
        lost = frozenset(p for p in holds if self._epochs.pop(p, None) is not None)
        for partition, hold in holds.items():
            if hold.turn.is_current:
                hold.turn.may_stand = True
                self._leftover.add(partition)
        if lost:
            log.warning("partitions lost", owner=self.owner_id, partitions=sorted(lost))
            await self._guarded("on_lost", self._listener.on_lost(lost))
        for partition, hold in holds.items():
            del self._held[partition]
            hold.turn.end()  # not before ``on_lost`` has run
            hold.gone.set()
        if not self._held:
            self._idle.set()

    # ------------------------------------------------------------------ owner nodes

    async def _watch_nodes(self) -> None:
        """Lose what has lost its node. Watches fire then; each is read again now and then, too."""
        try:
            await self._follow_nodes()
        except CoordinationError as error:
            if not error.is_final:
                raise
            self._fail(error)

    async def _follow_nodes(self) -> None:
        # After an error the loop begins again, and what it was about to read is forgotten.
        self._unwatched |= self._epochs.keys()
        self._has_unwatched.set()
        while True:
            await _wait_any(self._reread_s, self._has_unwatched)
            await self._session.connected()
            # What is owned is read after the wait, in which all of it may have been lost.
            partitions = self._unwatched if self._has_unwatched.is_set() else self._next_part()
            self._has_unwatched.clear()
            partitions, self._unwatched = self._epochs.keys() & partitions, set()
            gone = await self._nodeless({p: self._epochs[p] for p in partitions})
            if gone:
                log.warning("owner nodes are gone", owner=self.owner_id, partitions=sorted(gone))
                await self._renew(gone)

    def _next_part(self) -> Sequence[int]:
        """Return the owned partitions whose nodes are read again by turns, watches or not."""
        self._turn = (self._turn + 1) % REREAD_TURNS
        return sorted(self._epochs)[self._turn :: REREAD_TURNS]

    async def _nodeless(self, epochs: Mapping[int, int]) -> list[int]:
        """Return those of ``epochs`` whose node is not the one that gave it; watch the others."""
        reads = [
            self._session.exists(self._owner_path(p), watch=_NodeWatch(self, p)) for p in epochs
        ]
        gone: list[int] = []
        is_refused = False
        stats = await asyncio.gather(*reads, return_exceptions=True)
        for (partition, epoch), stat in zip(epochs.items(), stats, strict=True):
            if isinstance(stat, CoordinationError) and not stat.is_final:
                self._doubt(partition)  # whether it is there shows the next time
                is_refused = is_refused or not stat.retriable
            elif isinstance(stat, BaseException):
                raise stat
            elif self._epochs.get(partition) != epoch:
                continue  # it was released meanwhile
            elif stat is None or stat.czxid != epoch:
                gone.append(partition)
            elif stat.version != self._held[partition].version:
                is_refused = await self._write_again(partition, stat.version) or is_refused
        if is_refused and not gone:
            await asyncio.sleep(RETRY_S)
        return gone

    async def _write_again(self, partition: int, version: int) -> bool:
        """Another process has written into our node: others would not find us by it.

        Return whether the server refuses that.
        """
        log.warning("owner node was overwritten", owner=self.owner_id, partition=partition)
        path, hold = self._owner_path(partition), self._held[partition]
        try:
            hold.version = (await self._session.set(path, self._data, version=version)).version
        except CoordinationError as error:
            if error.is_final:
                raise
            self._doubt(partition)
            return not error.retriable and not isinstance(error, BadVersion)
        return False

    def _node_changed(self, partition: int) -> None:
        if hold := self._held.get(partition):
            hold.recheck.set()
        self._doubt(partition)

    def _doubt(self, partition: int) -> None:
        if partition in self._epochs:
            self._unwatched.add(partition)
            self._has_unwatched.set()

    def _begin_holds(self) -> None:
        if not self._ready:
            return
        for partition in (self._wanted | self._leftover) - self._held.keys():
            turn = self._session.turns.queue(self._owner_path(partition))
            task = background.start(self._hold(partition), f"hold partition {partition}")
            self._held[partition] = hold = _Hold(task, turn)
            self._idle.clear()
            if partition not in self._wanted:
                hold.unwanted.set()

    async def _hold(self, partition: int) -> None:
        """The whole life of one ownership, from wanting to releasing.

        When ownership is lost this task is cancelled, and ``_lose`` tidies up after it.
        """
        await asyncio.sleep(0)  # until set_wanted has noted us
        hold = self._held[partition]
        has_failed = False
        try:
            pause_s = await self._keep(partition, hold)
        except (Exception, asyncio.CancelledError) as error:
            if background.is_cancelled():
                raise
            memory_shortage.report(error)
            has_failed = True
            if isinstance(error, CoordinationError) and error.is_final:
                self._fail(error)
            else:
                log.exception(
                    "holding a partition failed; it is tried again",
                    owner=self.owner_id,
                    partition=partition,
                )
            if hold.turn.is_current:
                hold.turn.may_stand = True
                self._leftover.add(partition)
        hold.turn.end()
        if has_failed:
            # Also what is not wanted: its node may stand, and is deleted at the next try.
            await _wait_any(RETRY_S, self._leaving)
        else:
            await _wait_any(pause_s, hold.unwanted)
        del self._held[partition]
        hold.gone.set()
        if not (has_failed and self._leaving.is_set()):
            self._begin_holds()  # it may be wanted again
        if not self._held:
            self._idle.set()

    async def _keep(self, partition: int, hold: "_Hold") -> float:
        """Acquire the partition, own it until it is unwanted, and release it.

        Returns how many seconds to wait before it is held again. An error comes only before
        ``on_acquired`` or after ``on_released``.
        """
        if (until_s := self._resting.pop(partition, None)) is not None:
            if hold.turn.is_current:
                hold.turn.may_stand = not await self._delete(partition)
            hold.turn.end()
            await _wait_any(max(0.0, until_s - time.monotonic()), hold.unwanted)
            hold.turn = self._session.turns.queue(self._owner_path(partition))
        epoch = None
        if await hold.has_turn():
            epoch = await self._acquire(partition, hold)
            if epoch is None and hold.turn.may_stand:
                hold.turn.may_stand = not await self._delete(partition)
        # Without a turn there is nothing to delete: the actor that has it takes care of the node.
        self._leftover.discard(partition)
        if epoch is None:
            return 0.0
        self._epochs[partition] = hold.turn.last_epoch = epoch
        self._doubt(partition)  # it has no watch yet
        log.debug("partition acquired", partition=partition, epoch=epoch)
        acquired = await self._guarded("on_acquired", self._listener.on_acquired(partition, epoch))
        if acquired:
            hold.raise_lost()
            await hold.unwanted.wait()
            await self._guarded("on_released", self._listener.on_released(partition))
        hold.raise_lost()
        del self._epochs[partition]
        hold.turn.may_stand = not await self._delete(partition)
        log.debug("partition released", partition=partition, epoch=epoch)
        return 0.0 if acquired else RETRY_S

    async def _guarded(self, name: str, call: Awaitable[None]) -> bool:
        """Await a callback; its failure is its own, not ours."""
        try:
            await call
        except ShoalError as error:
            # Logged for each partition, again and again while a database is away: no traces.
            log.warning(
                "ownership callback failed", callback=name, owner=self.owner_id, error=str(error)
            )
            if name == "on_acquired" and isinstance(error, CoordinationError) and error.is_final:
                self._fail(error)  # as a fence that we may not write
            return False
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and background.is_cancelled():
                raise
            # A callback that awaits a cancelled task fails with that task's cancellation.
            log.exception("ownership callback failed", callback=name, owner=self.owner_id)
            return False
        return True

    # ------------------------------------------------------------------ acquiring

    async def _acquire(self, partition: int, hold: "_Hold") -> int | None:
        """Return the epoch when we own the partition, None if it is no longer wanted."""
        vanished_at: float | None = None
        while not hold.unwanted.is_set():
            hold.recheck.clear()
            try:
                wait_s = 0.0
                if self._takeover_delay_s:
                    vanished_at = await self._vanished(partition, vanished_at, hold)
                    if vanished_at is not None:
                        wait_s = vanished_at + self._takeover_delay_s - time.monotonic()
                if wait_s <= 0:
                    epoch = await self._create(partition, hold)
                    if epoch is not None:
                        return epoch
                    vanished_at, wait_s = None, self._reread_s
            except CoordinationError as error:
                if error.is_final:
                    raise
                wait_s = 0.0
                hold.turn.may_stand = True  # perhaps the node was created
                if not error.retriable:
                    log.warning("acquiring failed", partition=partition, error=str(error))
                    wait_s = RETRY_S
                await self._session.connected()
            await _wait_any(min(wait_s, self._reread_s), hold.recheck, hold.unwanted)
        return None

    async def _create(self, partition: int, hold: "_Hold") -> int | None:
        """Create the owner node. Returns None, with a watch set, if another session has it."""
        path = self._owner_path(partition)
        try:
            created = await self._session.create(path, self._data, ephemeral=True, makepath=True)
            return created.czxid
        except NodeExists:
            pass
        try:
            node = await self._session.get(path, watch=_NodeWatch(self, partition))
        except NoNode:
            hold.recheck.set()
            return None
        if not node.stat.session_id:
            await quarantine.isolate(self._session, path, node, "not the node of an owner")
            hold.recheck.set()
            return None
        if node.stat.session_id != self._session.session_id:
            return None
        # Our own, since it is our turn. Either the answer to its create was lost, or we (or the
        # actor before us) lost it in doubt of a session that continued: then a new node gives the
        # new beginning its own epoch.
        if node.stat.czxid > hold.turn.last_epoch and node.data == self._data:
            return node.stat.czxid
        operations: list[Operation] = [Delete(path), Create(path, self._data, ephemeral=True)]
        created_again = (await self._session.multi(operations))[1]
        assert isinstance(created_again, Created)
        return created_again.czxid

    async def _vanished(self, partition: int, since: float | None, hold: "_Hold") -> float | None:
        """Return when we first saw that an owner had gone without releasing; None if none did.

        While another session is the owner it is never (infinity), and a watch wakes the hold when
        that changes: a create just after the owner vanished would succeed without a delay.

        The last change among the children of the parent is the deletion of the owner node (or, if
        there never was one, the creation of the notification's). A clean release changes the data
        in the same transaction, so then both changes have the same zxid.
        """
        path = self._owner_path(partition)
        owner, parent = await asyncio.gather(
            self._session.exists(path, watch=_NodeWatch(self, partition)),
            self._session.exists(_parent(path)),
        )
        if owner is not None and owner.session_id != self._session.session_id:
            return float("inf")
        if owner is not None or parent is None:
            return None
        never_owned = parent.children_version <= 1
        if never_owned or parent.mzxid == parent.pzxid:
            return None
        return time.monotonic() if since in (None, float("inf")) else since

    async def _delete(self, partition: int) -> bool:
        """Release in one step: delete our node and record that this was a clean release.

        Returns whether it is certainly gone.
        """
        path = self._owner_path(partition)
        release: list[Operation] = [Delete(path), SetData(_parent(path), b"")]

        async def delete() -> None:
            node = await self._session.get(path)  # never delete a successor's
            if node.stat.session_id == self._session.session_id:
                await self._session.multi(release)

        try:
            await self._session.retry(delete)
        except NoNode:
            return True  # gone already: an earlier try whose answer was lost
        except TransactionFailed as error:
            return isinstance(error.cause, NoNode)  # the same, between the reading and the multi
        except CoordinationError as error:
            log.info("not released: gone with its session", partition=partition, error=str(error))
            return isinstance(error, SessionLost)
        return True


class _Hold:
    """What the task that holds one partition waits for."""

    def __init__(self, task: asyncio.Task[None], turn: NodeTurn) -> None:
        self.task, self.turn = task, turn
        self.version = 0  # of the owner node, as we wrote it
        self.is_lost = False  # the task is being cancelled
        self.unwanted = asyncio.Event()
        self.gone = asyncio.Event()  # nothing is left of the hold
        self.recheck = asyncio.Event()  # the owner node changed

    async def has_turn(self) -> bool:
        """Wait until it is our turn at the node; False if it is no longer wanted before that."""
        if not self.turn.has_come.is_set():
            await _wait_any(None, self.turn.has_come, self.unwanted)
        return self.turn.is_current

    def raise_lost(self) -> None:
        """Raise CancelledError if the task was cancelled and a callback has swallowed that."""
        if self.is_lost:
            raise asyncio.CancelledError


@dataclass(frozen=True, slots=True)
class _NodeWatch:
    """The callback of all watches that an ownership sets on one owner node.

    They are equal, so the session keeps one of them, however often the partition is wanted anew.
    """

    ownership: Ownership
    partition: int

    def __call__(self, _: WatchEvent) -> None:
        self.ownership._node_changed(self.partition)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


async def _wait_any(timeout_s: float | None, *events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
