"""What goes through the engine: events that wait, and what a batch of them decides."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from shoal.core.errors import ShoalError
from shoal.core.runs.commands import Command
from shoal.core.runs.events import Event
from shoal.core.runs.run import Action, Attempt, AttemptKey, Decision, Message, Run
from shoal.master.engine.eager_dispatch import EagerRequest


@dataclass(frozen=True)
class PublishedFile:
    """A file that a worker has written into the storage. ``size`` is in bytes."""

    path: str
    sha256: str
    size: int


@dataclass(slots=True)
class PendingEvent:
    """One event on its way through the engine."""

    partition: int
    instance_id: int
    event: Event
    done: asyncio.Future[Run]  # the run after the event was stored
    command: Command | None = None  # the request behind the event: its outcome is stored too
    eager: EagerRequest | None = None  # of the worker that reports it
    published: Sequence[
        PublishedFile
    ] = ()  # what the attempt hands over, if it has succeeded by this
    has_succeeded: bool = False  # it has, as the engine has decided
    failed: bool = False  # nothing of it is to be stored

    def answer(self, run: Run) -> None:
        """Let the caller know that the event is stored."""
        if not self.done.done():
            self.done.set_result(run)

    def fail(self, error: ShoalError) -> None:
        """Let the caller know that nothing of the event is stored."""
        self.failed = True
        if not self.done.done():
            self.done.set_exception(error)


class Inbox:
    """A queue of events, taken in batches."""

    def __init__(self) -> None:
        self._items: deque[PendingEvent] = deque()
        self._is_filled = asyncio.Event()

    def __iter__(self) -> Iterator[PendingEvent]:
        return iter(self._items)

    def put(self, item: PendingEvent) -> None:
        """Add an event behind all others."""
        self._items.append(item)
        self._is_filled.set()

    def requeue(self, items: Iterable[PendingEvent]) -> None:
        """Add events that were taken, before all others: the events of a run keep their order."""
        self._items.extendleft(reversed(list(items)))
        if self._items:
            self._is_filled.set()

    async def wait(self) -> None:
        """Wait until there are events."""
        await self._is_filled.wait()

    def take(
        self, most: int, most_tasks: int, tasks_of: Callable[[PendingEvent], int]
    ) -> list[PendingEvent]:
        """Take the next batch: at most so many events, about so many tasks unless it is one event.

        ``tasks_of`` returns how many tasks an event may be about.
        """
        items: list[PendingEvent] = []
        tasks = 0
        while self._items and len(items) < most:
            tasks += tasks_of(self._items[0])
            if items and tasks > most_tasks:
                break
            items.append(self._items.popleft())
        if not self._items:
            self._is_filled.clear()
        return items

    def clear(self) -> None:
        """Drop all events."""
        self._items.clear()
        self._is_filled.clear()


@dataclass(slots=True)
class RunChange:
    """All decisions of one batch about one run, merged."""

    run: Run
    _decisions: list[Decision] = field(default_factory=list)

    def add(self, decision: Decision) -> None:
        """Add what was decided after all others."""
        self._decisions.append(decision)

    @property
    def decision(self) -> Decision:
        """All of them as one: later attempts win, the first ``previous`` state is the guard."""
        # Merged once, when all are there: one may be about all tasks, with hundreds after it.
        if len(self._decisions) != 1:
            self._decisions = [_merged(self._decisions)]
        return self._decisions[0]


def _merged(decisions: Sequence[Decision]) -> Decision:
    # One pass with plain variables: of each task that runs some decisions are merged.
    attempts: dict[AttemptKey, Attempt] = {}
    moved: set[AttemptKey] = set()
    actions: list[Action] = []
    messages: list[Message] = []
    overdue: list[str] = []
    state = previous = reason = parent = None
    started_at = finished_at = admitted_at = warned_at = late_at = None
    timed_out = False
    for one in decisions:
        attempts.update(one.attempts)
        moved |= one.moved
        actions += one.actions
        messages += one.messages
        overdue += one.overdue
        timed_out = timed_out or one.timed_out
        if one.state is not None:
            previous = one.previous if state is None else previous
            state, reason, finished_at = one.state, one.reason, one.finished_at
        started_at = one.started_at if started_at is None else started_at
        admitted_at = admitted_at if one.admitted_at is None else one.admitted_at
        warned_at = warned_at if one.warned_at is None else one.warned_at
        late_at = late_at if one.late_at is None else one.late_at
        parent = parent if one.parent is None else one.parent
    return Decision(
        attempts=attempts,
        moved=frozenset(moved),
        state=state,
        previous=previous,
        reason=reason,
        started_at=started_at,
        finished_at=finished_at,
        actions=tuple(actions),
        messages=tuple(messages),
        admitted_at=admitted_at,
        warned_at=warned_at,
        late_at=late_at,
        timed_out=timed_out,
        overdue=tuple(overdue),
        parent=parent,
    )
