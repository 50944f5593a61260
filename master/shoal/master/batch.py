"""What goes through the engine: events on their way, what a batch of them decides, what it ends."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from shoal.coordination.queue.entry import Place
from shoal.core.commands import Command
from shoal.core.errors import ShoalError
from shoal.core.events import Event
from shoal.core.run import Decision, Run


@dataclass(slots=True)
class Offer:
    """What a worker would take of the tasks directly behind those whose end it reports."""

    worker: str
    group: str
    room: int
    before: Place | None  # of the first that waits in the group's queue, as far as the worker knows
    taken: dict[int, int] = field(default_factory=dict)  # by the task instance that ended: so many

    @property
    def room_left(self) -> int:
        """How many tasks it would take still."""
        return self.room - sum(self.taken.values())


@dataclass(slots=True)
class Item:
    """One event on its way through the engine."""

    partition: int
    instance_id: int
    event: Event
    done: asyncio.Future[Run]  # the run after the event was stored
    command: Command | None = None  # the request behind the event: its outcome is stored too
    offer: Offer | None = None  # of the worker that reports it
    failed: bool = False  # nothing of it is to be stored

    def answer(self, run: Run) -> None:
        """Tell whoever waits that the event is stored."""
        if not self.done.done():
            self.done.set_result(run)

    def fail(self, error: ShoalError) -> None:
        """Tell whoever waits that nothing of the event is stored."""
        self.failed = True
        if not self.done.done():
            self.done.set_exception(error)


@dataclass(slots=True)
class Change:
    """All decisions of one batch about one run, merged."""

    run: Run
    decision: Decision = field(default_factory=Decision)
    _is_empty: bool = True

    def add(self, decision: Decision) -> None:
        """Merge: later attempts win, the first ``previous`` state is the guard."""
        if self._is_empty:
            self.decision, self._is_empty = decision, False
            return
        before = self.decision
        moved = decision.state is not None
        self.decision = Decision(
            attempts={**before.attempts, **decision.attempts},
            moved=before.moved | decision.moved,
            state=decision.state if moved else before.state,
            previous=decision.previous if before.state is None else before.previous,
            reason=decision.reason if moved else before.reason,
            started_at=before.started_at or decision.started_at,
            finished_at=decision.finished_at if moved else before.finished_at,
            actions=before.actions + decision.actions,
            messages=before.messages + decision.messages,
            admitted_at=decision.admitted_at or before.admitted_at,
            warned_at=decision.warned_at or before.warned_at,
            timed_out=decision.timed_out or before.timed_out,
            overdue=before.overdue + decision.overdue,
            parent=decision.parent or before.parent,
        )


class Ending(Protocol):
    """Part of one transaction that stores the end of runs; made before anything is written."""

    async def write(self, at: datetime) -> None:
        """Write what follows from the ends, which are written by now."""

    def committed(self) -> None:
        """Tell whom it concerns. A hint: it must not fail."""
