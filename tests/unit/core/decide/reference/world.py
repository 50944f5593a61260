"""``decide`` and the reference side by side: each event goes to both, and they must agree.

The world is what a cluster is to an instance: a store, a queue, workers, a clock. It does what
the decisions ask for and nothing else, so a forgotten action shows as a difference.
"""

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shoal.core.decide import decide
from shoal.core.definition.model import WorkflowSpec
from shoal.core.definition.selection import Selection, SelectionMode
from shoal.core.runs import events
from shoal.core.runs.run import (
    AskSlot,
    Attempt,
    Decision,
    Enqueue,
    Kill,
    Run,
    WakeAt,
    Watch,
    Withdraw,
    WorkflowPlan,
)
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState
from tests.unit.core.decide.reference.cases import Case, as_written
from tests.unit.core.decide.reference.happening import Reference
from tests.unit.core.decide.reference.instances import Difference, Letter, NestedInstances
from tests.unit.core.decide.reference.model import BETWEEN_LOOKS, HELD, NESTED, Key, Try
from tests.unit.core.decide.reference.nested import complaint
from tests.unit.core.decide.reference.promises import broken
from tests.unit.core.decide.reference.running import after

EVERY = 7  # every how many events decide is asked twice
NESTED_ALIVE = HELD | {"PAUSED"}
START = datetime(2026, 1, 1, tzinfo=UTC)


class World:
    """One instance, decided upon by both."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.reference = Reference(case.definition, case.selected, case.admitted)
        self.ids = itertools.count(1)
        self.stored: dict[Key, Attempt] = {}
        self.key_of: dict[int, Key] = {}
        for name in case.definition["tasks"]:
            self.store((name, 1), Attempt(name, 1))
        self.run = Run(
            1,
            WorkflowPlan.of(WorkflowSpec.model_validate(as_written(case))),
            WorkflowState.QUEUED,
            0,
            {task: attempt for (task, _), attempt in self.stored.items()},
            START,
            START,
            selected=case.selected,
            admitted_at=START if case.admitted else None,
        )
        self.now = 0.0
        self.queue: set[Key] = set()
        self.kills: set[Key] = set()
        self.nested = NestedInstances()
        self.slots: set[Key] = set()  # asked for, of concurrency groups
        self.watched: set[Key] = set()  # DEPENDENT tasks whose runs somebody looks for
        self.wakes: set[float] = set()
        self.latest: tuple[events.Event, Callable[[], object]] | None = None
        self.log: list[tuple[float, events.Event]] = []
        self.refusals = self.sends = self.takeovers = 0
        self.visited: set[str] = set()  # corners, see ``coverage``
        # That the instance and its tasks were in; some names are the same.
        self.states: set[WorkflowState] = set()
        self.task_states: set[TaskState] = set()
        self.send(events.Begun(START), self.reference.begin)

    # -- both decide ---------------------------------------------------------------------------

    def send(self, event: events.Event, expect: Callable[[], object]) -> None:
        """One event for both. Raises Difference."""
        self.log.append((self.now, event))
        if not isinstance(event, (events.Begun, events.TimeReached, events.ChildChanged)):
            self.latest = event, expect
        refused = expect() is False
        try:
            decision = decide(self.run, event)
            again = decide(self.run, event) if self.sends % EVERY == 0 else decision
        except Exception as error:
            raise Difference(f"decide raised {error!r}") from error
        if decision != again:
            raise Difference(f"decide is not a pure function: {decision} and {again}")
        self.sends += 1
        if (decision.refusal is not None) != refused:
            raise Difference(f"refusal: {decision.refusal!r}, the reference: refused={refused}")
        self.refusals += refused
        self.carry_out(decision)
        if isinstance(event, events.TaskRequeued):  # the worker does it
            self.queue |= {k for k, a in decision.attempts.items() if a.state == "QUEUED"}
        if self.take_due_wakes():
            self.send(events.TimeReached(self.at()), lambda: self.reference.advance_to(self.now))
        self.compare()
        self.states.add(self.run.state)
        self.task_states.update(attempt.state for attempt in self.run.attempts.values())

    def carry_out(self, decision: Decision) -> None:
        """Store, then act: what a master does."""
        for promise in broken(self.run, decision):
            raise Difference(promise)
        self.run.apply(decision)
        for key, attempt in sorted(decision.attempts.items(), key=lambda item: item[0]):
            stored = self.store(key, attempt)
            if self.run.attempts[attempt.task].number == attempt.number:
                self.run.replace([stored])
        for action in decision.actions:
            match action:
                case Enqueue(key):
                    if self.stored[key].state not in HELD:
                        self.queue.add(key)
                case Withdraw(key):
                    self.queue.discard(key)
                case Kill(key, _):
                    self.kills.add(key)
                case AskSlot(key, _):
                    self.slots.add(key)
                case Watch(key):
                    self.watched.add(key)
                case WakeAt(at):
                    self.wakes.add((at - START).total_seconds())
        for message in decision.messages:
            self.reference.asked(*self.nested.take(message))
        self.kills = {key for key in self.kills if self.stored[key].state in HELD}

    def store(self, key: Key, attempt: Attempt) -> Attempt:
        """Write one attempt as the database does: final states stay."""
        old = self.stored.get(key)
        if old is not None and old.finished:
            raise Difference(f"{key} was {old.state} for good and became {attempt.state}")
        identity = old.id if old is not None else next(self.ids)
        if identity is None or attempt.id not in (None, identity):
            raise Difference(f"{key} has id {identity}, the decision says {attempt.id}")
        self.key_of[identity] = key
        self.stored[key] = attempt if attempt.id is not None else replace(attempt, id=identity)
        return self.stored[key]

    def compare(self) -> None:
        """Raise Difference unless both see the same."""
        if self.run.state != self.reference.state:
            raise Difference(f"state {self.run.state}, the reference: {self.reference.state}")
        for task, tries in self.reference.tries.items():
            ours, last = self.run.attempts[task], tries[-1]
            self.accept_jitter(task, ours, last)
            got = (ours.number, str(ours.state), ours.skip_cause and str(ours.skip_cause))
            want = (last.number, last.state, last.cause)
            if got != want or ours.forced != last.forced:
                raise Difference(f"task {task}: {got}, the reference: {want}")
            self.compare_looks(task, ours, last)
            # Whether who ends in the same moment is still warned of makes no difference.
            if not ours.finished and (ours.warned_at is not None) != last.warned:
                raise Difference(f"task {task}: warned at {ours.warned_at}, {last.warned}")
        if self.queue != self.reference.queued():
            raise Difference(f"queue {self.queue}, the reference: {self.reference.queued()}")
        if self.kills != self.reference.to_kill():
            raise Difference(f"to kill {self.kills}, the reference: {self.reference.to_kill()}")
        self.compare_nested()

    def compare_looks(self, task: str, ours: Attempt, last: Try) -> None:
        """Raise Difference unless both have counted looks, failures and losses alike."""
        since = ours.waiting_since and (ours.waiting_since - START).total_seconds()
        got = (ours.looks, since, ours.losses)
        want = (last.looks, last.since, last.losses)
        if not ours.finished and got != want:
            raise Difference(f"task {task}: looks {got}, the reference: {want}")

    def compare_nested(self) -> None:
        """Raise Difference unless what nested instances are asked for is right."""
        for task, tries in self.reference.tries.items():
            if self.reference.kind(task) not in NESTED or tries[-1].state not in NESTED_ALIVE:
                continue
            parallel = self.reference.parallel(task)
            wrong = complaint(tries[-1], self.reference.state, self.reference.items(task), parallel)
            if tries[-1].state == "PAUSED" and self.nested.noisy((task, tries[-1].number)):
                wrong = "it is paused, and nested instances work"
            if wrong:
                raise Difference(f"task {task}: {wrong}")

    def accept_jitter(self, task: str, ours: Attempt, last: Try) -> None:
        """Take over a delay that chance has made longer, if it is within its limits."""
        if last.exact or ours.number != last.number:
            return
        jitter = self.reference.tasks[task]["retry_jitter"]
        if ours.due_at is None:
            raise Difference(f"task {task}: a retry without a time")
        delay, longest = last.due - self.now, (last.due - self.now) * (1 + jitter)
        due = (ours.due_at - START).total_seconds()
        if not after(self.now, delay) <= due <= after(self.now, longest):
            raise Difference(f"task {task}: retry at {due} s, not in {delay} to {longest} s")
        last.due, last.exact = due, True

    # -- what can happen -------------------------------------------------------------------------

    def at(self) -> datetime:
        """Now."""
        return START + timedelta(seconds=self.now)

    def id_of(self, key: Key) -> int:
        """The task instance's id."""
        return self.stored[key].id or 0

    def in_state(self, *states: str) -> list[Key]:
        """Newest attempts in one of these states."""
        return [(t, a.number) for t, a in self.run.attempts.items() if a.state in states]

    def claim(self, key: Key, worker: str) -> None:
        """A worker takes it out of the queue and asks for its payload."""
        self.queue.discard(key)
        event = events.TaskClaimed(self.id_of(key), worker, self.at())
        self.send(event, lambda: self.reference.claim(key, worker))

    def requeue(self, key: Key, worker: str, *, late: bool = False) -> None:
        """A worker has not begun and puts it back; ``late``: what it has returned before."""
        attempt, returns = self.stored[key], self.reference.tries[key[0]][key[1] - 1].returns
        queued_at = attempt.queued_at or START
        if late:
            queued_at, returns = queued_at - timedelta(microseconds=1), returns - 1
        event = events.TaskRequeued(self.id_of(key), worker, queued_at, self.at())
        self.visited.add("returned late" if late else "returned")
        self.send(event, lambda: self.reference.requeue(key, worker, returns))

    def start(self, key: Key, worker: str) -> None:
        """Its process runs."""
        event = events.TaskStarted(self.id_of(key), worker, self.at())
        self.send(event, lambda: self.reference.start(key, worker))

    def end(self, key: Key, signal: str, worker: str | None, again: float = 0) -> None:
        """It is over; what looks may say when it looks again."""
        event = events.TaskEnded(
            self.id_of(key), TaskSignal(signal), self.at(), worker, again_s=again
        )
        self.send(event, lambda: self.reference.end(key, signal, worker, again))

    def grant(self, key: Key) -> None:
        """It gets a slot of its concurrency group."""
        event = events.SlotGranted(self.id_of(key), self.at())
        self.send(event, lambda: self.reference.grant(key))

    def depend(self, key: Key, verdict: str) -> None:
        """The runs that it waits for have been looked at."""
        event = events.DependencyJudged(
            self.id_of(key), events.DependencyVerdict(verdict), self.at()
        )
        self.send(event, lambda: self.reference.depend(key, verdict))

    def child(self, key: Key, item: int, letter: Letter, identity: int | None) -> None:
        """The task hears of a nested instance."""
        state = None if letter.state == "REFUSED" else WorkflowState(letter.state)
        event = events.ChildChanged(
            self.id_of(key),
            item,
            self.at(),
            None if state is None else identity,
            state,
            ask=letter.number,
            refused=letter.refused,
        )
        self.send(
            event,
            lambda: self.reference.child(key, item, letter.state, letter.number, letter.refused),
        )

    def read_letter(self, identity: int) -> None:
        """The next letter of a nested instance arrives."""
        nested = self.nested.all[identity]
        letter = nested.letters.popleft()
        if (is_aside := letter.aside) is not None:
            key, item = letter.parent, nested.item
            known = None if letter.state == "NEW" else identity
            event = events.ChildChanged(
                self.id_of(key), item, self.at(), known, None, ask=-1, is_quarantined=is_aside
            )
            self.visited.add("quarantined" if is_aside else "tried again")
            self.send(
                event, lambda: self.reference.quarantine(key, item, is_aside, known is not None)
            )
            return
        self.child(letter.parent, nested.item, letter, identity)

    def request(self, name: str, *details: str) -> None:
        """Somebody asks for something."""
        at, reference = self.at(), self.reference
        before = self.refusals
        waits = BETWEEN_LOOKS | {"PAUSED"}
        looking = [t for t, a in self.run.attempts.items() if a.looks and a.state in waits]
        match name:
            case "pause":
                self.send(events.PauseRequested(at), reference.pause)
            case "resume":
                self.send(events.ResumeRequested(at), reference.resume)
            case "stop":
                self.send(events.StopRequested(at), reference.stop)
            case "recover":
                self.send(events.RecoverRequested(at), reference.recover)
            case "kill":
                self.send(events.KillRequested(details[0], at), lambda: reference.kill(*details))
            case "force":
                event = events.ForceRequested(details[0], at, "somebody")
                self.send(event, lambda: reference.force(*details))
            case "rerun":
                mode, *named = details
                selection = Selection(tuple(named), SelectionMode(mode))
                self.send(
                    events.RerunRequested(selection, at), lambda: reference.rerun(named, mode)
                )
            case "admit":
                self.send(events.Admitted(at), reference.admit)
        refused = self.refusals > before
        self.visited.add(f"{name} refused" if refused else f"{name} carried out")
        if looking and not refused and (not details or details[0] in looking):
            self.visited.add(f"{name} between looks")

    def pass_time(self, seconds: float) -> None:
        """Time goes by; the instance hears of it only if it asked for that."""
        self.now = after(self.now, seconds)
        if self.take_due_wakes():
            self.send(events.TimeReached(self.at()), lambda: self.reference.advance_to(self.now))
        else:
            self.reference.advance_to(self.now)
            self.compare()

    def take_due_wakes(self) -> bool:
        """Whether the instance asked to be woken by now."""
        due = {wake for wake in self.wakes if wake <= self.now}
        self.wakes -= due
        return bool(due)

    def again(self) -> None:
        """The latest event comes once more, late."""
        if self.latest is not None:
            self.visited.add("late or repeated event")
            event, expect = self.latest
            if (
                isinstance(event, events.TaskClaimed)
                and self.key_of[event.task_instance_id] in self.queue
            ):
                return  # who claims takes it out of the queue
            self.send(replace(event, at=self.at()), expect)

    def take_over(self) -> None:
        """The master dies between storing and acting; another one has only what is stored."""
        self.visited.add("takeover")
        self.queue, self.kills, self.wakes = set(), set(), set()
        self.slots, self.watched = set(), set()
        newest = {
            task: attempt for (task, _), attempt in sorted(self.stored.items(), key=by_number)
        }
        kept = {f.name: getattr(self.run, f.name) for f in dataclasses.fields(Run) if f.init}
        self.run = Run(**{**kept, "attempts": newest})
        # Every second time it was quarantined, and others have been given its slots.
        self.takeovers += 1
        queued = [
            key
            for key in self.in_state("QUEUED")
            if self.takeovers % 2 and self.run.plan.tasks[key[0]].concurrency_group
        ]
        lost = frozenset(self.id_of(key) for key in queued)
        if queued:
            self.visited.add("lost slot")
        tasks = [task for task, _ in queued]
        self.send(events.Begun(self.at(), lost), lambda: self.reference.begin(tasks))


def by_number(item: tuple[Key, Attempt]) -> int:
    """Sort key: older attempts first."""
    return item[0][1]
