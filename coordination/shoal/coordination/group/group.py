"""A member of a group, for the life of a block."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import structlog

from shoal.coordination import background
from shoal.coordination.assignors import (
    Assignor,
    Partition,
    RebalanceProtocol,
    cooperative_sticky,
    name_of,
    protocol_of,
)
from shoal.coordination.assignors.member import NO_GENERATION
from shoal.coordination.errors import (
    CoordinationError,
    SessionLost,
)
from shoal.coordination.group.codec import MOST_PARTITIONS
from shoal.coordination.group.instance_claim import InstanceClaim
from shoal.coordination.group.listener import GroupListener, HeldPartitions, TooSlow
from shoal.coordination.group.membership import PATIENCE, Expelled, Life, wait_any
from shoal.coordination.group.model import GroupMetadata
from shoal.coordination.group.participant import Participant
from shoal.coordination.group.settings import GroupSettings
from shoal.coordination.group.store import group_store
from shoal.coordination.session.defaults import RETRY_S
from shoal.coordination.session.session import ZkSession
from shoal.core.untrusted import is_text

log = structlog.get_logger()


class Group:
    """Share the partitions of ``topics`` with all other members of the group ``name``.

    ::

        async with Group(session, "mail", topics={"jobs": 128}, listener=mine) as group:
            ...  # mine.on_assigned was, or will be, called with what is ours
            await group.wait()

    ``topics`` says how many partitions each has. Members may want different topics, and may
    disagree about a number: a member is given partitions below its own number. ``assignors`` are
    functions that the leader may use, the preferred one first; the group uses what all support and
    most prefer. Whether members stop (eager) or keep working (cooperative) follows from the
    assignors, so all of them must be of one kind (ValueError). ``data`` (JSON) is for observers, by
    ``Members(session, znodes.group_members(name))``.

    Entering returns when the group has taken the member in; its partitions come later. Leaving
    lets ``on_revoked`` finish, and then leaves; it takes 0.9 of the rebalance timeout and one
    session timeout at most.

    Every member id is used once. When the session can no longer be proven, is lost, or the group
    has evicted the member, ``on_lost`` is called and the member joins anew, under a new id.
    Errors that no repetition helps end it: InconsistentGroupProtocol (no assignor that all
    support), FencedInstanceId (another process has our ``instance_id``), AssignorFailed,
    GroupTooLarge, and all others that are ``is_final``, such as AccessDenied. ``poll`` and ``wait``
    raise them, and so does entering. Construction raises ValueError for topics that no group can
    share, and TooLarge for ``data``.

    The assignment says which member *should* have a partition, and no two members are given the
    same one. But a process that was paused beyond its session may take itself for the owner for a
    moment after it wakes. And eager static members that miss a rebalance keep what they had until
    they see it, as in Kafka. To be sure, hold the partition with a fencing number of its own (see
    ``Ownership``).
    """

    def __init__(
        self,
        session: ZkSession,
        name: str,
        *,
        topics: Mapping[str, int] = MappingProxyType({}),
        listener: GroupListener | None = None,
        assignors: Sequence[Assignor] = (cooperative_sticky,),
        settings: GroupSettings | None = None,
        data: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._session, self.name = session, name
        self._topics = checked_topics(topics)
        self._listener = listener or GroupListener()
        self._assignors = {name_of(assign): assign for assign in assignors}
        self._protocol = _protocol(assignors)
        self._settings = settings or GroupSettings()
        self._data = dict(data)
        session.require_room(
            f"the registration of a member of group {name!r}", json.dumps(self._data).encode()
        )
        self._store = group_store(session, name, self._settings.initial_rebalance_delay_s)
        self._metadata = GroupMetadata(name, self._settings.initial_rebalance_delay_s)
        self._held = HeldPartitions(
            self._listener, name, PATIENCE * self._settings.rebalance_timeout_s
        )
        self._member: Participant | None = None
        self._claim = InstanceClaim()
        self._registered_id = ""  # under which we may still be registered
        self._polls = _Polls(self._settings.max_poll_interval_s)
        self._listeners: list[Callable[[GroupMetadata], None]] = []
        self._joined = asyncio.Event()
        self._leaving = asyncio.Event()
        self._failure: CoordinationError | None = None  # why we leave
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None  # of a leave that was cancelled
        self._tail: asyncio.Task[None] | None = None  # the end of the present membership

    async def __aenter__(self) -> Self:
        self._polls.note()
        self._task = background.start(self._run(), f"group {self.name}")
        joined = asyncio.create_task(self._joined.wait())
        try:
            await asyncio.wait([joined, self._task], return_when=asyncio.FIRST_COMPLETED)
            self.raise_failure()
        except BaseException:
            # Perhaps the group has us as a member already and would wait for us.
            await self.__aexit__(None, None, None)
            raise
        finally:
            joined.cancel()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave. If it is cancelled, ``on_lost`` runs at once, and others see that we have gone."""
        assert self._task is not None
        self._leaving.set()
        # A task, so that a second cancellation ends no more than the wait for it.
        self._ending = background.start(self._end(self._task), f"end of group {self.name}")
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait([self._task])
            if self._tail is not None:
                await asyncio.wait([self._tail])
            raise

    async def _end(self, task: asyncio.Task[None]) -> None:
        """Delete the registration if the session, in doubt when the group was left, continues.

        Others that share the session may keep it for ever, and the group would wait for us.
        """
        await asyncio.wait([task])
        if self._registered_id:
            try:
                await self._store.deregister(self._registered_id)
            except CoordinationError as error:
                log.info("not deregistered", group=self.name, error=str(error))

    # ------------------------------------------------------------------ state

    @property
    def owned(self) -> frozenset[Partition]:
        """What was assigned to the listener and has not been revoked or lost.

        Nothing while the session cannot be proven.
        """
        return self._held.partitions if self._session.is_proven else frozenset()

    @property
    def member_id(self) -> str:
        """Our present id; "" before the first."""
        return self._member.id if self._member else ""

    @property
    def generation(self) -> int:
        """The generation in which we got what we own; -1 as long as we have been given nothing."""
        return self._member.generation if self._member else NO_GENERATION

    @property
    def is_leader(self) -> bool:
        """Whether we run the assignor. It is not a lock: to elect one process, share a topic of one
        partition; its owner is elected."""
        return self._session.is_proven and self._metadata.leader_id == self.member_id

    @property
    def metadata(self) -> GroupMetadata:
        """The group as we saw it last."""
        return self._metadata

    def on_change(self, listener: Callable[[GroupMetadata], None]) -> Callable[[], None]:
        """Call ``listener`` on the loop with each new view. Returns a function that ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # ------------------------------------------------------------------ taking part

    def poll(self) -> None:
        """Note that we are at work (see ``max_poll_interval_s``). Raises what ended the group."""
        self._polls.note()
        self.raise_failure()

    async def wait(self) -> None:
        """Return when the block has been left. Raises what ended the group before that."""
        if self._task:
            await asyncio.wait([self._task])
            self.raise_failure()

    def fail(self, error: CoordinationError) -> None:
        """Leave the group because of ``error``, which ``poll`` and ``wait`` raise then."""
        self._failure = self._failure or error
        self._leaving.set()

    def raise_failure(self) -> None:
        """Raise what has ended the group, if anything has."""
        if self._failure is not None:
            raise self._failure
        task = self._task
        if task and task.done() and not task.cancelled():
            task.result()

    async def _run(self) -> None:
        while True:
            await wait_any(None, self._session.proven(), self._leaving.wait())
            await wait_any(None, self._polls.in_time(), self._leaving.wait())
            if self._leaving.is_set():
                if self._failure is not None:
                    raise self._failure
                return
            try:
                await self._live()
            except (Expelled, TooSlow, SessionLost) as error:
                log.warning("out of the group; joining anew", group=self.name, reason=str(error))
            except CoordinationError as error:
                if error.is_final:
                    raise
                log.warning("group not reached", group=self.name, error=str(error))
                await wait_any(RETRY_S, self._leaving.wait())

    async def _live(self) -> None:
        """One membership, under a new id. However it ends, nothing is held afterwards."""
        member_id = f"{self._settings.client_id}-{uuid.uuid4().hex}"
        self._member = Participant(
            member_id,
            self._assignors,
            self._topics,
            rebalance_timeout_s=self._settings.rebalance_timeout_s,
            cooperative=self._protocol is RebalanceProtocol.COOPERATIVE,
            instance_id=self._settings.instance_id,
            client_id=self._settings.client_id,
            claim=self._claim,
        )
        life = Life(
            session=self._session,
            store=self._store,
            member=self._member,
            held=self._held,
            data={
                "client_id": self._settings.client_id,
                "instance_id": self._settings.instance_id,
                "data": self._data,
            },
            settings=self._settings,
            leaving=self._leaving,
            on_view=self._note,
        )
        living = asyncio.create_task(self._begin(life, member_id), name=f"member {member_id}")
        silent = asyncio.create_task(self._session.unproven())
        idle = asyncio.create_task(self._polls.overdue())
        ends = [living, silent, idle]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # A task, so that a cancellation by now does not skip ``on_lost``.
            self._tail = background.start(self._lose(ends), f"end of member {member_id}")
            try:
                await asyncio.shield(self._tail)
            except asyncio.CancelledError:
                for end in ends:
                    end.cancel()  # again: a callback that is finishing is cut short
                raise
        if silent.cancelled():
            await self._leave(life)
            if not living.cancelled():
                living.result()
        log.info("membership ended", group=self.name, member=member_id)

    async def _lose(self, ends: Sequence[asyncio.Task[None]]) -> None:
        """End the tasks of a membership; then nothing is held any longer."""
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        await self._held.lose()

    async def _begin(self, life: Life, member_id: str) -> None:
        """Live, once nothing is left of the life before.

        If its session was in doubt and went on, its registration is still there, and others would
        wait for it: also if the life that should have ended that was itself cut short.
        """
        if self._registered_id:
            await self._store.deregister(self._registered_id)
        self._registered_id = member_id
        await life.live()

    async def _leave(self, life: Life) -> None:
        try:
            async with asyncio.timeout(self._session.timeout_s):
                await life.leave()
            self._registered_id = ""
        except (TimeoutError, CoordinationError, Expelled) as error:
            log.info("not left; others will see", group=self.name, error=str(error))

    def _note(self, metadata: GroupMetadata) -> None:
        if self.member_id in metadata.members:
            self._joined.set()
        if metadata == self._metadata:
            return
        self._metadata = metadata
        for listener in list(self._listeners):
            try:
                listener(metadata)
            except Exception:
                log.exception("listener of a group's changes failed", group=self.name)


class _Polls:
    """When ``poll`` was last called."""

    def __init__(self, interval_s: float | None) -> None:
        self._interval_s = interval_s
        self._last = float("-inf")
        self._polled = asyncio.Event()

    def note(self) -> None:
        self._last = time.monotonic()
        self._polled.set()

    def _left_s(self) -> float:
        return (
            float("inf")
            if self._interval_s is None
            else (self._last + self._interval_s - time.monotonic())
        )

    async def in_time(self) -> None:
        """Return when the last call is recent enough."""
        while self._left_s() <= 0:
            self._polled.clear()
            await self._polled.wait()

    async def overdue(self) -> None:
        """Return when the last call is too long ago."""
        if self._interval_s is None:
            await asyncio.get_running_loop().create_future()
        while True:
            left_s = self._left_s()
            if left_s <= 0:
                return
            await asyncio.sleep(left_s)


def checked_topics(topics: Mapping[str, int]) -> dict[str, int]:
    """Return ``topics``. Raises ValueError for what no group can share."""
    for topic, count in topics.items():
        if not is_text(topic):
            raise ValueError(
                f"invalid topic {str(topic)[:80]!r}: use a text without lone surrogates"
            )
        if type(count) is not int or count < 0:
            raise ValueError(f"topic {topic[:80]!r} has {count!r:.80} partitions; give a count")
    if (total := sum(topics.values())) > MOST_PARTITIONS:
        raise ValueError(
            f"a group shares at most {MOST_PARTITIONS} partitions, not {total}; "
            "use fewer and larger ones, or several groups"
        )
    return dict(topics)


def _protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """Return the one protocol of all ``assignors``."""
    if not assignors:
        raise ValueError("a member of a group needs at least one assignor")
    kinds: dict[RebalanceProtocol, list[str]] = {}
    for assign in assignors:
        kinds.setdefault(protocol_of(assign), []).append(name_of(assign))
    if len(kinds) > 1:
        raise ValueError(
            f"a group is either eager or cooperative, but {kinds[RebalanceProtocol.EAGER]} "
            "need members that give up everything before a rebalance, and "
            f"{kinds[RebalanceProtocol.COOPERATIVE]} members that keep working; "
            "choose assignors of one kind"
        )
    return next(iter(kinds))
