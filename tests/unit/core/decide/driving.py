"""Drive ``decide`` by hand: a cluster of one line per step, without queue, database or clock."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.core.decide import decide
from shoal.core.definition.model import WorkflowSpec
from shoal.core.definition.selection import Selection
from shoal.core.runs.events import (
    Begun,
    Event,
    SlotGranted,
    TaskClaimed,
    TaskEnded,
    TaskRequeued,
    TaskStarted,
    TimeReached,
)
from shoal.core.runs.run import (
    AskSlot,
    Attempt,
    Decision,
    Enqueue,
    Kill,
    Run,
    WakeAt,
    Withdraw,
    WorkflowPlan,
)
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState

START = datetime(2026, 1, 1, tzinfo=UTC)


def spec(tasks: dict[str, dict[str, Any]], **fields: Any) -> WorkflowSpec:
    """A definition of SHELL tasks: ``{"b": {"depends_on": ["a"]}}``."""
    return WorkflowSpec.model_validate(
        {
            "name": "w",
            "tasks": [
                {"name": name, "type": "SHELL", "params": {"script": "true"}, **task}
                for name, task in tasks.items()
            ],
            **fields,
        }
    )


class Driver:
    """One run, its queue and its workers, moved on by method calls."""

    def __init__(
        self,
        definition: WorkflowSpec,
        selection: Selection | None = None,
        admitted_at: datetime | None = START,
    ) -> None:
        self.ids = itertools.count(1)
        plan = WorkflowPlan.of(definition)
        self.slots: dict[int, str] = {}  # asked for, by task instance id
        attempts = {name: Attempt(name, 1, id=next(self.ids)) for name in plan.tasks}
        self.run = Run(
            1,
            plan,
            WorkflowState.QUEUED,
            0,
            attempts,
            START,
            START,
            admitted_at=admitted_at,
            selected=selection.of(plan.upstream, plan.downstream) if selection else None,
        )
        self.now = START
        self.queue: dict[int, str] = {}  # task instance id -> task
        self.workers: dict[int, str] = {}  # claimed
        self.to_kill: set[int] = set()
        self.wakes: list[datetime] = []
        self.history: dict[tuple[str, int], Attempt] = {}
        self.send(Begun(self.now))

    def send(self, event: Event) -> Decision:
        """Decide, store, act: what a master does."""
        decision = decide(self.run, event)
        self.run.apply(decision)
        for key, attempt in decision.attempts.items():
            if attempt.id is None:
                attempt = replace(attempt, id=next(self.ids))
                if self.run.attempts[attempt.task].number == attempt.number:
                    self.run.replace([attempt])
            old = self.history.get(key)
            assert old is None or not old.finished, f"{key} changed after its end"
            self.history[key] = attempt
        for action in decision.actions:
            self._act(action)
        if isinstance(event, TaskRequeued):
            self._see_returned(event.task_instance_id)
        self.check()
        return decision

    def _see_returned(self, task_instance_id: int) -> None:
        """Let go of what a worker has returned; it requeues itself what is queued."""
        attempt = self.run.attempt_by_id(task_instance_id)
        if attempt is not None and attempt.worker is None:
            self.workers.pop(task_instance_id, None)
            if attempt.state is TaskState.QUEUED:
                self.queue[task_instance_id] = attempt.task

    def _act(self, action: object) -> None:
        match action:
            case Enqueue((task, number)):
                attempt = self.run.attempts[task]
                assert attempt.number == number
                assert attempt.id is not None
                if attempt.id not in self.workers:
                    self.queue[attempt.id] = task
            case Withdraw((task, _)):
                attempt = self.run.attempts[task]
                self.queue.pop(attempt.id or 0, None)
            case Kill((task, _), _worker):
                self.to_kill.add(self.run.attempts[task].id or 0)
            case WakeAt(at):
                self.wakes.append(at)
            case AskSlot((task, _), group):
                self.slots[self.run.attempts[task].id or 0] = group

    def check(self) -> None:
        """What must hold after every step."""
        run = self.run
        fresh = Run(run.id, run.plan, run.state, 0, dict(run.attempts), START, START)
        assert fresh.unresolved == run.unresolved
        assert +fresh.counts == +run.counts
        assert fresh.task_of == run.task_of
        open_tasks = [a for a in run.attempts.values() if not a.finished]
        if run.state is WorkflowState.RUNNING:
            assert open_tasks, "a run without work must end"
            moving = (
                TaskState.QUEUED,
                TaskState.CLAIMED,
                TaskState.RUNNING,
                TaskState.UP_FOR_RETRY,
                TaskState.DELAYED,
                TaskState.BLOCKED,
            )
            assert any(a.state in moving for a in open_tasks), "nothing moves any more"
        for attempt in open_tasks:
            if attempt.state is TaskState.QUEUED:
                assert attempt.id in self.queue, "queued in the rows but in no queue"

    # -- workers -----------------------------------------------------------------------------

    def take(self, task: str, worker: str) -> int:
        """A worker takes the task out of the queue and does not begin yet."""
        task_id = next(i for i, t in self.queue.items() if t == task)
        del self.queue[task_id]
        self.workers[task_id] = worker
        self.send(TaskClaimed(task_id, worker, self.now))
        return task_id

    def claim(self, task: str, worker: str = "w1") -> int:
        """A worker takes the task out of the queue and starts it."""
        task_id = self.take(task, worker)
        self.send(TaskStarted(task_id, worker, self.now))
        return task_id

    def end(self, task: str, signal: TaskSignal = TaskSignal.SUCCEED) -> Decision:
        """The task's worker reports its end."""
        task_id = next(i for i in self.workers if self.run.task_of.get(i) == task)
        worker = self.workers.pop(task_id)
        self.to_kill.discard(task_id)
        return self.send(TaskEnded(task_id, signal, self.now, worker))

    def do(self, task: str, signal: TaskSignal = TaskSignal.SUCCEED) -> Decision:
        """Claim and end in one step."""
        self.claim(task)
        return self.end(task, signal)

    def end_with(self, task: str, outputs: dict[str, str]) -> Decision:
        """The task succeeds and gives something on."""
        task_id = self.claim(task)
        worker = self.workers.pop(task_id)
        return self.send(TaskEnded(task_id, TaskSignal.SUCCEED, self.now, worker, outputs=outputs))

    def grant(self, task: str) -> Decision:
        """The task gets a slot of its concurrency group."""
        task_id = self.run.attempts[task].id or 0
        del self.slots[task_id]
        return self.send(SlotGranted(task_id, self.now))

    def take_over(self) -> Decision:
        """Another master reads the run and goes on with it."""
        self.run = replace(self.run)
        self.queue.clear()
        self.wakes.clear()
        self.slots.clear()
        return self.send(Begun(self.now))

    def obey_kills(self) -> None:
        """Workers end what they were told to end."""
        for task_id in sorted(self.to_kill):
            if task_id in self.workers:
                self.end(self.run.task_of[task_id], TaskSignal.KILL)

    def pass_time(self, seconds: float) -> None:
        """Let time go by and fire the wake-ups that are due."""
        self.now += timedelta(seconds=seconds)
        due = [at for at in self.wakes if at <= self.now]
        self.wakes = [at for at in self.wakes if at > self.now]
        if due:
            self.send(TimeReached(self.now))

    def state(self) -> WorkflowState:
        """The instance's state now."""
        return self.run.state

    def states(self) -> dict[str, str]:
        """State names by task."""
        return {name: a.state.value for name, a in self.run.attempts.items()}
