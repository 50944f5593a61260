"""One membership, from the registration to its end: read, step, call back, write, and again."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import structlog

from shoal.coordination import background
from shoal.coordination.errors import (
    BadVersion,
    ConnectionLoss,
    CoordinationError,
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupTooLarge,
    IllegalGroupTransition,
    InconsistentGroupProtocol,
    NoNode,
)
from shoal.coordination.group.coordinator import decide
from shoal.coordination.group.listener import HeldPartitions, TooSlow
from shoal.coordination.group.messages import Join, Leave, RefusedRequest, Request
from shoal.coordination.group.model import GroupMetadata
from shoal.coordination.group.participant import Participant, ParticipantStep
from shoal.coordination.group.settings import GroupSettings
from shoal.coordination.group.states import GroupState
from shoal.coordination.group.store import (
    LARGE_PARTITIONS,
    GroupStore,
    UnreadableGroup,
    View,
    compute,
)
from shoal.coordination.session.session import ZkSession

log = structlog.get_logger()

T = TypeVar("T")

# Fraction of the rebalance timeout after which a slow callback is stopped: before others can have
# evicted its member and taken what it holds.
PATIENCE = 0.9
# Members that look for registrations that no session holds while the leader has none.
DEPUTIES = 3


class Expelled(Exception):
    """The group goes on without this member: it was too slow, or its registration is gone."""


class Life:
    """A member under one id. ``live`` is cancelled when the session can no longer be proven."""

    def __init__(
        self,
        session: ZkSession,
        store: GroupStore,
        member: Participant,
        held: HeldPartitions,
        data: Mapping[str, Any],
        settings: GroupSettings,
        leaving: asyncio.Event,
        on_view: Callable[[GroupMetadata], None],
    ) -> None:
        self._session, self._store = session, store
        self._member, self._held = member, held
        self._data, self._settings = data, settings
        self._leaving = leaving  # set by the group when its block is left
        self._on_view = on_view
        self._changes = asyncio.Event()  # there may be some
        self._absent: dict[str, float] = {}  # static members without a session, since when

    async def live(self) -> None:
        """Take part until the group is left, then give everything up.

        Raises Expelled and TooSlow, after which the member may begin anew; GroupError, Mismatch
        and AccessDenied, which no repetition helps; and all other errors of ZooKeeper.
        """
        await self._store.register(self._member.id, self._data)
        stop_listening = self._store.listen(self._changes.set)
        try:
            await self._take_part()
        finally:
            stop_listening()

    async def _take_part(self) -> None:
        while not self._leaving.is_set():
            view = await self._read()
            if _to_assign(view.metadata) <= LARGE_PARTITIONS:
                step = await self._read_safely(view, self._step)
            elif (found := await self._large_step(view)) is not None:
                step = found
            else:
                break
            if step.revoked or step.assigned:
                await self._call_back(step)
            if step.request is not None:
                if not await self._write(view, step.request):
                    await self._wait(self._fresh_s(view))
            elif not (step.revoked or step.assigned):
                await self._wait(self._pause_s(view))
        await self._guarded(self._held.revoke(self._held.partitions))

    async def leave(self) -> None:
        """Leave the group, so that no other member has to find out.

        A static member only ends its registration: it keeps its place until its grace is over.
        """
        member_id = self._member.id
        await self._store.settled()  # perhaps a change of ours
        while self._member.instance_id is None:
            try:
                view = await self._view()
            except UnreadableGroup:
                break  # the group has no members now
            if member_id not in view.metadata.members and member_id not in view.metadata.pending:
                break
            await self._write(view, Leave(member_id))
        await self._store.deregister(member_id)

    # ------------------------------------------------------------------ reading

    async def _read(self) -> View:
        self._changes.clear()
        try:
            view = await self._view()
            deadline_s = view.metadata.deadline_s
            if deadline_s is not None and self._store.clock.age_s > self._settings.reread_s:
                await self._store.touch(self._member.id, self._data)
        except (NoNode, UnreadableGroup) as error:
            raise Expelled(str(error)) from error
        if self._member.id not in view.registered:
            raise Expelled(f"the registration of member {self._member.id} is gone")
        if self._member.id in _stewards(view):
            await self._store.remove_lasting(view)
        if view.metadata.state is GroupState.DEAD:
            raise CoordinatorNotAvailable(view.metadata.name)
        self._on_view(view.metadata)
        return view

    async def _view(self) -> View:
        view = await self._session.retry(lambda: self._store.current(self._settings.reread_s))
        delay_s = self._settings.initial_rebalance_delay_s
        if view.metadata.initial_rebalance_delay_s == delay_s:
            return view
        metadata = replace(view.metadata, initial_rebalance_delay_s=delay_s)
        return replace(view, metadata=metadata)

    def _fresh_s(self, view: View) -> float:
        """For how long the view may serve unless something changes."""
        return max(0.0, view.read_at + self._settings.reread_s - time.monotonic())

    async def _read_safely(
        self, view: View, use: Callable[[View], T], *, is_large: bool = False
    ) -> T:
        """Return ``use(view)``; begin the group anew if what is stored makes that fail.

        What was stored is well formed by then, and all that the coordinator writes is fine. So
        another program has written it, and every member would fail on it.
        """
        try:
            return await compute(partial(use, view), is_large=is_large)
        except (CoordinationError, Expelled) as error:
            if not isinstance(error, IllegalGroupTransition):
                raise
            problem = str(error)
        except MemoryError:
            raise  # a matter of this process
        except Exception as error:  # noqa: BLE001 - whatever it is, the state causes it
            problem = repr(error)
        log.error("group makes its members fail", group=view.metadata.name, problem=problem)
        try:
            await self._store.give_up(view, f"members fail on it: {problem}")
        except UnreadableGroup as error:
            raise Expelled(str(error)) from error

    async def _large_step(self, view: View) -> ParticipantStep | None:
        """Return the step, which takes long and is computed off the loop; None if we leave."""
        stepping = asyncio.create_task(self._read_safely(view, self._step, is_large=True))
        try:
            await wait_any(None, asyncio.wait([stepping]), self._leaving.wait())
            return stepping.result() if stepping.done() else None
        finally:
            await background.stop(stepping)

    def _step(self, view: View) -> ParticipantStep:
        now_s = self._store.clock.now_s()
        step = self._member.step(view.metadata, self._present(view), now_s)
        if self._member.is_fenced:
            name, instance_id = view.metadata.name, self._member.instance_id or ""
            raise FencedInstanceId(name, self._member.id, instance_id)
        if step.lost:
            raise Expelled(f"member {self._member.id} was evicted")
        return step

    def _present(self, view: View) -> Set[str]:
        """Return the registered members, and static ones that may yet come back."""
        now = time.monotonic()
        self._absent = {each: self._absent.get(each, now) for each in view.absent}
        grace_s = self._grace_s
        waiting = {each for each, since in self._absent.items() if now < since + grace_s}
        return view.registered | waiting if waiting else view.registered

    @property
    def _grace_s(self) -> float:
        grace_s = self._settings.static_grace_s
        return self._session.timeout_s if grace_s is None else grace_s

    def _pause_s(self, view: View) -> float:
        """How long there is nothing to do unless something changes."""
        pauses = [self._fresh_s(view)]
        if view.metadata.deadline_s is not None:
            pauses.append(view.metadata.deadline_s - self._store.clock.now_s())
        now = time.monotonic()
        if self._absent:
            pauses.append(min(self._absent.values()) + self._grace_s - now)
        return max(0.0, min(pauses))

    async def _wait(self, timeout_s: float) -> None:
        await wait_any(timeout_s, self._changes.wait(), self._leaving.wait())

    # ------------------------------------------------------------------ callbacks

    async def _call_back(self, step: ParticipantStep) -> None:
        if step.revoked:
            await self._guarded(self._held.revoke(step.revoked))
            self._must_be_in((await self._read()).metadata)
        await self._guarded(self._held.assign(step.assigned))

    async def _guarded(self, call: Coroutine[Any, Any, None]) -> None:
        """Run a callback; stop it when the group goes on without us."""
        calling = asyncio.create_task(call, name="group listener")
        watching = asyncio.create_task(self._until_out(), name="group watch")
        try:
            await asyncio.wait([calling, watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            calling.cancel()
            watching.cancel()
            await asyncio.gather(calling, watching, return_exceptions=True)
        (calling if not calling.cancelled() else watching).result()

    async def _until_out(self) -> None:
        """Raise Expelled when the group has gone on without us, TooSlow when it is about to."""
        while True:
            view = await self._read()
            group = view.metadata
            self._must_be_in(group)
            me = group.members.get(self._member.id)
            left_s = self._fresh_s(view)
            if me and group.state is GroupState.PREPARING_REBALANCE and not me.is_joining:
                assert group.deadline_s is not None
                spare_s = (1 - PATIENCE) * group.rebalance_timeout_s
                left_s = min(left_s, group.deadline_s - spare_s - self._store.clock.now_s())
                if left_s <= 0:
                    raise TooSlow("the group waits for us, and the rebalance timeout is near")
            await wait_any(left_s, self._changes.wait())

    def _must_be_in(self, group: GroupMetadata) -> None:
        if self._member.is_out(group):
            raise Expelled(f"member {self._member.id} was evicted or replaced")

    # ------------------------------------------------------------------ writing

    async def _write(self, view: View, request: Request) -> bool:
        """Write the group after ``request``; return whether to read it again at once.

        Whether the write was done is found out by the next reading.
        """
        known = (*view.metadata.members, *view.metadata.pending)
        present = self._present(view)
        gone = [each for each in known if each not in present]
        problem: Exception | None = None

        def apply(group: GroupMetadata, checks_room: bool) -> GroupMetadata:
            nonlocal problem
            problem = None
            try:
                return self._decide(group, request, gone, checks_room=checks_room)
            except Exception as error:  # noqa: BLE001 - raised below
                problem = error
                return group

        def result(_: View) -> None:
            if problem is not None:
                raise problem

        try:
            is_written = await self._store.change(view, apply)
        except BadVersion:
            # The problem may come of changes of other members that were not stored either.
            problem = None
            self._member.note_refusal()
            is_written = True
        except ConnectionLoss as error:
            problem = None
            log.debug("group perhaps not written", member=self._member.id, error=str(error))
            is_written = True
        except NoNode as error:
            raise Expelled(str(error)) from error
        await self._read_safely(view, result)
        return is_written

    def _decide(
        self, stored: GroupMetadata, request: Request, gone: Sequence[str], *, checks_room: bool
    ) -> GroupMetadata:
        """Return ``stored`` after ``request``. ``stored`` may have requests of other members that
        were made on the same view. Raises what ends the membership.

        ``gone`` are the members of that view that have no session.
        """
        delay_s = stored.initial_rebalance_delay_s
        group = replace(stored, initial_rebalance_delay_s=self._settings.initial_rebalance_delay_s)
        now_s = self._store.clock.now_s()
        decision = decide(group, request, now_s)
        for answer in decision.answers:
            if isinstance(answer, RefusedRequest) and answer.to == self._member.id:
                if isinstance(answer.error, InconsistentGroupProtocol) and gone:
                    # It may be theirs alone.
                    return self._decide(stored, Leave(gone[0]), gone, checks_room=checks_room)
                if isinstance(answer.error, (FencedInstanceId, InconsistentGroupProtocol)):
                    raise answer.error
                log.debug("group refused", member=self._member.id, error=str(answer.error))
        if decision.group == group:
            return stored
        if checks_room and isinstance(request, Join) and self._member.id not in group.members:
            # Before the others depend on it. Later the group could neither be assigned nor left.
            try:
                self._store.require_room(decision.group)
            except GroupTooLarge:
                if gone:  # there may be room without them
                    return self._decide(stored, Leave(gone[0]), gone, checks_room=checks_room)
                raise
        after = decision.group
        if isinstance(request, Leave):
            for other in gone:  # one rebalance for all that are gone
                after = decide(after, Leave(other), now_s).group
        return replace(after, initial_rebalance_delay_s=delay_s)


def _stewards(view: View) -> Set[str]:
    """Return who looks after the registrations: the leader, or a few while it is not registered.

    Not all members: each of them asks for every registration.
    """
    group = view.metadata
    if group.leader_id in view.registered:
        return {group.leader_id}
    return set(islice((each for each in group.members if each in view.registered), DEPUTIES))


def _to_assign(group: GroupMetadata) -> int:
    """Return how many partitions the leader has to assign now."""
    if group.state is not GroupState.COMPLETING_REBALANCE:
        return 0
    return sum(group.partition_counts.values())


async def wait_any(timeout_s: float | None, *waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one of ``waits`` has ended, or after ``timeout_s``; the others are cancelled.

    Raises what one of them raised.
    """
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        ended, _ = await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    for task in ended:
        task.result()
