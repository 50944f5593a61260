"""Runs that work for each other: what masters do with the messages of ``decide``.

Messages for one run keep their order (those of different children of one task need not), others
arrive in any order. Whatever is not stored can be lost at any time: ``take_over``.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.core.decide import decide
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs import events
from shoal.core.runs.commands import CommandType, Parent
from shoal.core.runs.run import (
    AskChild,
    Attempt,
    AttemptKey,
    Decision,
    Enqueue,
    Kill,
    Run,
    StartChild,
    TellParent,
    WakeAt,
    Withdraw,
    WorkflowPlan,
)
from shoal.core.runs.states import TaskSignal, WorkflowState

START = datetime(2026, 1, 1, tzinfo=UTC)
W = WorkflowState
ASKS = {
    CommandType.PAUSE: events.PauseRequested,
    CommandType.RESUME: events.ResumeRequested,
    CommandType.STOP: events.StopRequested,
    CommandType.RECOVER: events.RecoverRequested,
}
_OPEN_STATES = {W.QUEUED, W.RUNNING, W.PAUSING, W.STOPPING}


@dataclass
class Member:
    """One run and what the world knows of it."""

    run: Run
    name: str
    queue: dict[int, str] = field(default_factory=dict)  # task instance id -> task
    working: dict[int, str] = field(default_factory=dict)  # on workers
    to_kill: set[int] = field(default_factory=set)
    wakes: list[datetime] = field(default_factory=list)
    stored: dict[AttemptKey, Attempt] = field(default_factory=dict)


class Family:
    """All runs. ``waits``: workflows whose runs are admitted by ``admit`` only."""

    def __init__(
        self, workflows: Mapping[str, Mapping[str, Mapping[str, Any]]], waits: Iterable[str] = ()
    ) -> None:
        self.plans = {
            name: WorkflowPlan.of(_spec(name, tasks)) for name, tasks in workflows.items()
        }
        self.waits = set(waits)
        self.ids = itertools.count(1)
        self.now = START
        self.members: dict[int, Member] = {}
        self.started: dict[tuple[int, int], int | None] = {}  # (task instance, item) -> instance
        self.key_of: dict[int, tuple[int, int]] = {}  # the other way round
        self.lines: dict[Hashable, list[Callable[[], object]]] = {}  # messages on their way
        self.parameters: dict[int, Mapping[str, str]] = {}
        self.asked: list[tuple[int, CommandType]] = []  # what children were asked, in order

    # -- what masters do -----------------------------------------------------------------------

    def create(self, name: str, parent: Parent | None = None) -> int:
        """A new run, begun unless it has to wait; return its id."""
        instance = next(self.ids)
        plan = self.plans[name]
        attempts = {task: Attempt(task, 1, id=next(self.ids)) for task in plan.tasks}
        admitted = None if name in self.waits else self.now
        run = Run(
            instance, plan, W.QUEUED, 0, attempts, self.now, START, parent=parent,
            admitted_at=admitted,
        )  # fmt: skip
        member = self.members[instance] = Member(run, name)
        member.stored = {(a.task, 1): a for a in attempts.values()}
        if parent is not None and admitted is None:
            self._tell(parent, instance, W.QUEUED)
        self.send(instance, events.Begun(self.now))
        return instance

    def send(self, instance: int, event: events.Event) -> Decision:
        """Decide, store, and do what was decided."""
        member = self.members[instance]
        decision = decide(member.run, event)
        member.run.apply(decision)
        for key, attempt in decision.attempts.items():
            old = member.stored.get(key)
            assert old is None or not old.finished, f"{key} changed after its end"
            if attempt.id is None:
                attempt = replace(attempt, id=next(self.ids))
                member.run.replace([attempt])
            member.stored[key] = attempt
        for message in decision.messages:
            self._post(member, message)
        for action in decision.actions:
            self._act(member, action)
        return decision

    def _post(self, member: Member, message: StartChild | AskChild | TellParent) -> None:
        if isinstance(message, TellParent):
            detail = {
                "reason": message.reason,
                "outputs": message.outputs,
                "refused": message.refused,
            }
            self._tell(message.parent, member.run.id, message.state, **detail)
            return
        attempt_id = member.stored[message.key].id
        assert attempt_id is not None
        of = (attempt_id, message.index)
        number = message.number if isinstance(message, AskChild) else 0
        depth = 1 if member.run.parent is None else member.run.parent.depth + 1
        parent = Parent(member.run.id, attempt_id, 0, message.index, depth, number)
        if isinstance(message, StartChild):
            if message.workflow not in self.plans:
                self.started[of] = None
                self._tell(parent, None, None, reason="there is no such workflow")
                return
            assert of not in self.lines, "an item is started once"
            self.lines[of] = [lambda: self._start(of, parent, message)]
            return
        key = of if message.instance_id is None else self.key_of[message.instance_id]
        self.lines.setdefault(key, []).append(lambda: self._ask(key, parent, message.type))

    def _start(self, of: tuple[int, int], parent: Parent, message: StartChild) -> None:
        assert of not in self.started, "an item is started once"
        child = self.started[of] = self.create(message.workflow, parent)
        self.key_of[child] = of
        self.parameters[child] = message.parameters

    def _ask(self, of: tuple[int, int], parent: Parent, request: CommandType) -> None:
        child = self.started[of]
        if child is not None:
            self.asked.append((child, request))
            self.send(child, ASKS[request](self.now, parent=parent))

    def _tell(
        self, parent: Parent, instance: int | None, state: WorkflowState | None, **detail: Any
    ) -> None:
        ask = None if state is None else parent.ask
        event = events.ChildChanged(
            parent.task_instance_id, parent.index, self.now, instance, state, ask=ask, **detail
        )
        line = ("tell", parent.task_instance_id, parent.index)
        self.lines.setdefault(line, []).append(lambda: self.send(parent.instance_id, event))

    def hear_of_quarantine(self, child: int, *, is_quarantined: bool | None = True) -> None:
        """A run's parent learns that its master cannot work with it, or tries again."""
        parent = self.members[child].run.parent
        assert parent is not None
        event = events.ChildChanged(
            parent.task_instance_id,
            parent.index,
            self.now,
            child,
            state=None,
            ask=-1,
            is_quarantined=is_quarantined,
        )
        self.send(parent.instance_id, event)

    def quarantine(self, child: int, *, is_quarantined: bool = True) -> None:
        """As ``hear_of_quarantine``, and all that follows."""
        self.hear_of_quarantine(child, is_quarantined=is_quarantined)
        self.deliver_all()

    def _act(self, member: Member, action: object) -> None:
        match action:
            case Enqueue((task, _)):
                attempt_id = member.run.attempts[task].id or 0
                if attempt_id not in member.working:
                    member.queue[attempt_id] = task
            case Withdraw((task, _)):
                member.queue.pop(member.run.attempts[task].id or 0, None)
            case Kill((task, _), _worker):
                member.to_kill.add(member.run.attempts[task].id or 0)
            case WakeAt(at):
                member.wakes.append(at)

    # -- what happens --------------------------------------------------------------------------

    def deliver(self, line: Hashable) -> None:
        """The first message of a line arrives."""
        message = self.lines[line].pop(0)
        if not self.lines[line]:
            del self.lines[line]
        message()

    def deliver_all(self) -> None:
        """All messages arrive, and those that they cause."""
        while self.lines:
            self.deliver(next(iter(self.lines)))

    def ask(self, instance: int, request: CommandType) -> Decision:
        """Somebody asks for something."""
        return self.send(instance, ASKS[request](self.now))

    def claim(self, instance: int, task: str) -> None:
        """A worker takes a task and starts it."""
        member = self.members[instance]
        task_id = next(i for i, t in member.queue.items() if t == task)
        del member.queue[task_id]
        member.working[task_id] = task
        self.send(instance, events.TaskClaimed(task_id, "w", self.now))
        self.send(instance, events.TaskStarted(task_id, "w", self.now))

    def end(
        self, instance: int, task: str, signal: TaskSignal = TaskSignal.SUCCEED, **outputs: str
    ) -> None:
        """The worker reports the end."""
        member = self.members[instance]
        task_id = next(i for i, t in member.working.items() if t == task)
        del member.working[task_id]
        if task_id in member.to_kill:
            signal = TaskSignal.KILL
        member.to_kill.discard(task_id)
        event = events.TaskEnded(task_id, signal, self.now, "w", outputs=outputs)
        self.send(instance, event)

    def do(
        self, instance: int, task: str, signal: TaskSignal = TaskSignal.SUCCEED, **outputs: str
    ) -> None:
        """Claim and end a task, and let everybody hear of it."""
        self.claim(instance, task)
        self.end(instance, task, signal, **outputs)
        self.deliver_all()

    def admit(self, instance: int) -> None:
        """A run that waited for others may start."""
        self.send(instance, events.Admitted(self.now))

    def take_over(self, instance: int) -> None:
        """Another master goes on with what is stored."""
        member = self.members[instance]
        old = member.run
        newest = {task: member.stored[task, a.number] for task, a in old.attempts.items()}
        member.run = Run(
            old.id, old.plan, old.state, 0, newest, old.created_at, START,
            started_at=old.started_at, parent=old.parent, admitted_at=old.admitted_at,
        )  # fmt: skip
        member.queue, member.to_kill, member.wakes = {}, set(), []
        if old.state in _OPEN_STATES:
            self.send(instance, events.Begun(self.now))

    def pass_time(self, seconds: float) -> None:
        """Time goes by; who asked for it is woken."""
        self.now += timedelta(seconds=seconds)
        for instance, member in list(self.members.items()):
            if any(at <= self.now for at in member.wakes):
                member.wakes = [at for at in member.wakes if at > self.now]
                self.send(instance, events.TimeReached(self.now))

    # -- looking -------------------------------------------------------------------------------

    def state(self, instance: int) -> WorkflowState:
        return self.members[instance].run.state

    def task(self, instance: int, task: str) -> Attempt:
        """The newest attempt."""
        return self.members[instance].run.attempts[task]

    def of(self, name: str) -> list[int]:
        """The runs of a workflow, oldest first."""
        return [i for i, member in self.members.items() if member.name == name]

    def children(self, instance: int) -> list[int]:
        """The runs that work for the newest attempts of this one's tasks, as these know them."""
        return [
            child["instance"]
            for attempt in self.members[instance].run.attempts.values()
            for child in attempt.detail.get("children", {}).values()
            if child.get("instance") is not None
        ]


def _spec(name: str, tasks: Mapping[str, Mapping[str, Any]]) -> WorkflowSpec:
    shell = {"type": "SHELL", "params": {"script": "true"}}
    listed = [{"name": task, **shell, **fields} for task, fields in tasks.items()]
    return WorkflowSpec.model_validate({"name": name, "tasks": listed})


def sub(workflow: str, **fields: Any) -> dict[str, Any]:
    """A SUB_WORKFLOW task."""
    return {"type": "SUB_WORKFLOW", "params": {"workflow": workflow}, **fields}


def each(workflow: str, items: list[int], parallel: int, **fields: Any) -> dict[str, Any]:
    """A MAP task."""
    params = {"workflow": workflow, "items": items, "parallel": parallel}
    return {"type": "MAP", "params": params, **fields}
