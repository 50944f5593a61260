"""The attempts that this worker holds a claim on. Their states are in ``attempts/lifecycle.py``.

Everything here belongs to the event loop; the claimer adds, the runner moves, the log service and
the kill service read.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.coordination import TaskClaim
from shoal.core.errors import ShoalError
from shoal.core.task_types import TaskContext, TaskType
from shoal.proto import shoal_pb2 as pb
from shoal.worker.attempts.lifecycle import HOLDS_SLOT, AttemptEvent, AttemptState, next_state
from shoal.worker.processes.environment import Setup
from shoal.worker.processes.launcher import Launched
from shoal.worker.processes.program import LaunchRequest

KEPT_S = 0.1  # a slot is kept from less urgent tasks for so long while its end is reported
MOST = 64  # attempts ahead, unless the settings say otherwise
MOST_OF_A_SLOT = 8  # a task that turns out long keeps so many waiting at most


@dataclass(frozen=True)
class PrefetchTimes:
    """When attempts are prefetched, and how long they wait for a slot then."""

    window_s: float = 0.1  # what ended within this time is likely to be matched in the next
    short_s: float = 0.25  # an attempt that takes longer says nothing about the next moment
    patience_s: float = 0.25  # a granted attempt that waits longer for a slot is requeued
    # We stood still ourselves for so long, and slots may be free that we have not heard of yet.
    late_s: float = 0.1


PREFETCH_TIMES = PrefetchTimes()


class AttemptEnded(ShoalError):
    """The attempt was to end before its program was started."""

    def __init__(self, task_instance_id: int, why: str) -> None:
        self.task_instance_id, self.why = task_instance_id, why
        super().__init__(f"task instance {task_instance_id} does not start: {why}")


@dataclass(frozen=True)
class AtWork:
    """What a task type works with, and how its process is started; ``setup``: what comes before."""

    task_type: TaskType[Any]
    context: TaskContext
    params: Any
    request: LaunchRequest
    setup: Setup | None = None


@dataclass
class AttemptLaunch:
    """What an attempt runs with; it is empty until the attempt has a slot."""

    workflow: str | None = None  # see log_workflow
    work_dir: Path | None = None
    environment: str = ""  # that its program runs in, as NAME@VERSION
    masks: list[str] = field(default_factory=list)  # texts of its secrets that must not be shown
    publications: Sequence[pb.Publication] = ()  # what it hands over if it ends well
    largest_publication: int = 0  # bytes that each of them may have
    log_path: Path | None = None  # once it was to have a process, also when that has ended
    at_work: AtWork | None = None  # from then on, too
    process: Launched | None = None  # since it has started


@dataclass
class EndReasons:
    """Why an attempt is to end. There may be several reasons; the first of each kind counts."""

    killed: str | None = None  # by request: the result is KILLED
    interrupted: str | None = None  # there will be no result: it will be LOST
    type_failure: str | None = None  # its task type left its live process: FAILED

    def kill(self, reason: str) -> None:
        """Note a request to end it."""
        self.killed = self.killed or reason

    def interrupt(self, reason: str) -> None:
        """Note why it ends without a result."""
        self.interrupted = self.interrupted or reason

    @property
    def reason(self) -> str | None:
        """Why it must not start any longer, None if it may."""
        return self.interrupted or self.killed


class HeldAttempt:
    """One claimed task instance."""

    def __init__(self, claim: TaskClaim) -> None:
        self.claim = claim
        self.id = claim.entry.task_instance_id
        self.claimed_at = time.monotonic()
        self._state = AttemptState.CLAIMED
        self.granted = False  # a master has sent the payload; stays true after the end
        self.committed = False  # a master has stored its end: no worker will be granted it again
        self.began_at = 0.0  # when it got its slot, in monotonic seconds
        self.launch, self.end = AttemptLaunch(), EndReasons()
        self.work: asyncio.Task[object] | None = None  # while its task type is at work
        self.publishing: asyncio.Task[object] | None = None  # while its files are handed over
        self.over = asyncio.Event()  # set with END: its log is complete

    @property
    def ref(self) -> pb.AttemptRef:
        entry = self.claim.entry
        return pb.AttemptRef(
            workflow_instance_id=entry.workflow_instance_id,
            task_instance_id=entry.task_instance_id,
            partition=entry.partition,
        )

    @property
    def state(self) -> AttemptState:
        return self._state

    def apply(self, event: AttemptEvent) -> None:
        """Change the state. Raises IllegalTransition, and changes nothing then."""
        self._state = next_state(self._state, event)
        if event is AttemptEvent.GRANT:
            self.granted = True
        elif event is AttemptEvent.END:
            self.over.set()

    def require_startable(self) -> None:
        """Raise AttemptEnded if the attempt must no longer start."""
        if self.end.reason is not None:
            raise AttemptEnded(self.id, self.end.reason)

    def cancel_work(self) -> None:
        """Cancel a task type that has not started its process, or what comes after that has ended.

        Otherwise the process must end.
        """
        if self.publishing is not None:
            self.publishing.cancel()
        before_launch = self._state in (AttemptState.PREPARING, AttemptState.CANCELLING)
        if before_launch and self.work is not None:
            self.apply(AttemptEvent.CANCEL)
            self.work.cancel()


class Throughput:
    """Remembers the latest short attempts of a worker with ``slots`` slots.

    ``ahead`` never exceeds ``most``.
    """

    def __init__(self, slots: int, most: int, times: PrefetchTimes) -> None:
        self._times = times
        self._ends: deque[float] = deque(maxlen=min(most, MOST_OF_A_SLOT * slots))

    def note_end(self, began_at: float) -> None:
        """Count an attempt that ends now; it had its slot since ``began_at`` (monotonic s)."""
        now = time.monotonic()
        if now - began_at < self._times.short_s:
            self._ends.append(now)

    @property
    def ahead(self) -> int:
        """How many attempts to have ready beside those in the slots: 0 for an idle worker."""
        oldest = time.monotonic() - self._times.window_s
        ends = self._ends
        while ends and ends[0] < oldest:
            ends.popleft()
        return len(ends)


class HeldAttempts:
    """All held attempts, by task-instance id, and the slots: never more are taken than there are.

    ``prefetch``: at most so many are claimed beyond the slots.
    """

    def __init__(
        self, slots: int, prefetch: int = MOST, times: PrefetchTimes = PREFETCH_TIMES
    ) -> None:
        self.times = times
        self._slots = slots
        self._held: dict[int, HeldAttempt] = {}
        self._live = 0  # not over
        self._occupied = 0  # slots
        self._throughput = Throughput(slots, prefetch, times)
        self._reserved: set[int] = (
            set()
        )  # task instances whose slots are reserved for tasks likely to follow
        # Task instances that have ended well and are being reported: their priority, and until when
        # less urgent ones do not get the slot (monotonic seconds).
        self._kept: dict[int, tuple[int, float]] = {}
        self.keeps_slots = False  # answers to reports may bring tasks
        self._changed = asyncio.Event()
        self._wanting = asyncio.Event()
        self._on_free_slot: list[Callable[[], None]] = []
        self._on_forget: list[Callable[[HeldAttempt], None]] = []

    def when_slot_is_free(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` called whenever a slot has become free."""
        self._on_free_slot.append(callback)

    def when_forgotten(self, callback: Callable[[HeldAttempt], None]) -> None:
        """Have ``callback`` called with each attempt that is no longer held."""
        self._on_forget.append(callback)

    def __iter__(self) -> Iterator[HeldAttempt]:
        return iter(list(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)

    def get(self, task_instance_id: int) -> HeldAttempt | None:
        return self._held.get(task_instance_id)

    @property
    def live(self) -> list[HeldAttempt]:
        """Those that are not over."""
        return [attempt for attempt in self._held.values() if not attempt.over.is_set()]

    @property
    def occupied(self) -> int:
        """Slots in use."""
        return self._occupied

    @property
    def slot_is_free(self) -> bool:
        return self._occupied < self._slots

    def has_slot_for(self, workflow_priority: int) -> bool:
        """Whether a task of this priority may have a slot now.

        The slot of a more urgent task that has just ended is kept for what follows it, until its
        report is answered: a matter of milliseconds.
        """
        if not self.slot_is_free or not self._kept:
            return self.slot_is_free
        now = time.monotonic()
        kept = sum(p < workflow_priority and now < until for p, until in self._kept.values())
        return self._occupied + kept < self._slots

    @property
    def has_enough(self) -> bool:
        """Whether there is an attempt for every slot."""
        return self._live >= self._slots

    @property
    def room(self) -> int:
        """How many more attempts the worker has use for in the next moment."""
        return max(0, self._slots + self._throughput.ahead - self._live)

    @property
    def wanted(self) -> int:
        """How many to claim now: 0 while that would be few and no slot stands empty for it."""
        ahead = self._throughput.ahead
        room = self._slots + ahead - self._live - len(self._reserved)
        return room if room > ahead or (room > 0 and 2 * room >= ahead) else 0

    def add(self, claim: TaskClaim) -> HeldAttempt:
        """Take a new claim in."""
        attempt = HeldAttempt(claim)
        self._held[attempt.id] = attempt
        self._live += 1
        self._note()
        return attempt

    def take_slot(self, attempt: HeldAttempt) -> None:
        """Give ``attempt`` a slot until it has ended. One has to be free."""
        assert self.slot_is_free
        attempt.apply(AttemptEvent.TAKE_SLOT)
        attempt.began_at = time.monotonic()
        self._occupied += 1
        self._note()

    def end(self, attempt: HeldAttempt, *, succeeded: bool = False) -> None:
        """Note that nothing of the attempt is alive: its slot is free. Repeating it is harmless.

        ``succeeded``: it is reported now, and the answer may bring what follows it.
        """
        if attempt.over.is_set():
            return
        held_slot = attempt.state in HOLDS_SLOT
        attempt.apply(AttemptEvent.END)
        self._live -= 1
        if held_slot:
            self._occupied -= 1
            if succeeded and self.keeps_slots:
                priority = attempt.claim.entry.workflow_priority
                self._kept[attempt.id] = priority, time.monotonic() + KEPT_S
            self._throughput.note_end(attempt.began_at)
            for notify in self._on_free_slot:
                notify()
        self._note()

    def reserve_slot(self, task_instance_id: int) -> None:
        """Claim nothing for the slot that it had, until ``release_slot``."""
        self._reserved.add(task_instance_id)

    def release_slot(self, task_instance_id: int) -> None:
        """Claim for its slot again, and give it to any task."""
        if self._kept.pop(task_instance_id, None) and self.slot_is_free:
            for notify in self._on_free_slot:
                notify()
        if task_instance_id in self._reserved:
            self._reserved.discard(task_instance_id)
            self._note()

    def forget(self, attempt: HeldAttempt) -> None:
        """Drop an attempt that is over for the masters, too."""
        self.end(attempt)
        if self._held.get(attempt.id) is attempt:
            del self._held[attempt.id]
            attempt.apply(AttemptEvent.FORGET)
            for notify in self._on_forget:
                notify(attempt)
            self._note()

    def _note(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
        if self.wanted:
            self._wanting.set()

    async def changed(self) -> None:
        """Return after the next change. Read the state first, without awaiting in between."""
        await self._changed.wait()

    async def until_wanted(self) -> int:
        """Return how many attempts to claim, as soon as a claim pays."""
        while not (wanted := self.wanted):
            self._wanting.clear()
            await self._wanting.wait()
        return wanted

    async def until_any(self) -> None:
        """Return as soon as any attempt is held."""
        while not self._held:
            await self.changed()

    async def idle(self) -> None:
        """Return when no attempt is alive."""
        while self._live:
            await self.changed()
