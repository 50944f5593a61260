"""Honest histories for the checker's own tests: random runs of ``decide``, without a cluster.

Every batch of events is stored as a master stores it, and every run of a task keeps its ledger.
What comes out is evidence in which there is nothing to find.
"""

import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from shoal.core.decide import decide
from shoal.core.definition.model import TaskSpec, WorkflowSpec
from shoal.core.runs.events import (
    Begun,
    Event,
    PauseRequested,
    RecoverRequested,
    ResumeRequested,
    StopRequested,
    TaskClaimed,
    TaskEnded,
    TaskStarted,
    TimeReached,
    WholeRequest,
)
from shoal.core.runs.run import Attempt as CoreAttempt
from shoal.core.runs.run import Plan, Run
from shoal.core.runs.states import (
    FINISHED_WORKFLOW,
    HELD_BY_WORKER,
    TaskSignal,
    TaskState,
    WorkflowState,
)
from tests.chaos.judging.evidence import Attempt, Change, Command, Evidence, Instance, Step, Task
from tests.chaos.records import FaultRecord
from tests.chaos.workload.dags import Site, random_workflow
from tests.chaos.workload.ledger import Kind, Row
from tests.chaos.workload.task import FAILED
from tests.chaos.workload.workload import Asked

_START = datetime(2026, 1, 1, tzinfo=UTC)
_EPOCH = 1000
_REQUESTS: Mapping[str, type[WholeRequest]] = {
    "PAUSE": PauseRequested,
    "RESUME": ResumeRequested,
    "STOP": StopRequested,
    "RECOVER": RecoverRequested,
}


class Simulation:
    """Runs some instances one after the other, all of them to their end."""

    def __init__(self, seed: int, instances: int = 3) -> None:
        self.rng = random.Random(seed)
        self.ids = count(1)
        self.now_s = 0.0
        self.commands: list[Command] = []
        self.asked: list[Asked] = []
        self.changes: list[Change] = []
        self.rows: list[Row] = []
        self.attempts: list[Attempt] = []
        self.instances: dict[int, Instance] = {}
        self.steps: list[Step] = [Step("partition", 1, "900", str(_EPOCH))]
        for _ in range(instances):
            _History(self).live()

    def evidence(self) -> Evidence:
        """Return all of it. One fault covers the whole time: attempts may be LOST."""
        fault = FaultRecord("kill-worker", "worker-1", 0.0, self.now_s, self.now_s, True, "died")
        return Evidence(
            self.commands,
            self.instances,
            self.attempts,
            self.changes,
            {1: _EPOCH},
            self.steps,
            sorted(self.rows, key=lambda row: row.boot_ns),
            self.asked,
            [fault],
        )

    def tick(self) -> float:
        """Let a second go by; return the time."""
        self.now_s += 1.0
        return self.now_s

    def command(self, kind: str, instance: int | None, done: bool, result: int) -> int:
        """Store a command that is handled right now; return its id."""
        number = len(self.commands) + 1
        key = f"key-{number}"
        self.asked.append(Asked(key, kind, instance, {number}))
        state = "DONE" if done else "REFUSED"
        outcome = result if done else None
        handled_s = self.now_s
        self.commands.append(
            Command(number, kind, key, state, instance, outcome, handled_s=handled_s)
        )
        return number


class _History:
    """The life of one instance."""

    def __init__(self, simulation: Simulation) -> None:
        self.all = simulation
        self.rng = simulation.rng
        self.id = len(simulation.instances) + 1
        site = Site(Path("/nowhere"), "marker")
        definition = random_workflow("w", self.rng, site)
        self.spec = WorkflowSpec.model_validate(definition)
        plan = Plan.of(self.spec)
        attempts = {t: CoreAttempt(t, 1, id=next(simulation.ids)) for t in plan.tasks}
        self.run = Run(
            self.id, plan, WorkflowState.QUEUED, 1, attempts, _START, _START, admitted_at=_START
        )
        self.stored: dict[tuple[str, int], CoreAttempt] = {(t, 1): a for t, a in attempts.items()}
        self.alive: set[int | None] = set()  # task-instance ids with a START row
        self.requests = self.rng.choice((0, 0, 1, 3))
        simulation.tick()
        self.command_id = simulation.command("START", None, True, self.id)
        self._note(state="QUEUED")

    def live(self) -> None:
        """Run to the end, and add what it was to the simulation."""
        self._commit(1)
        while not self._over():
            self._commit(self.rng.choice((1, 1, 1, 3)))
        self._keep()

    def _over(self) -> bool:
        return self._ended() and self.requests <= 0

    def _ended(self) -> bool:
        return self.run.state in FINISHED_WORKFLOW

    def _at(self) -> datetime:
        return _START + timedelta(seconds=self.all.now_s)

    # -- what a master makes of it -----------------------------------------------------------

    def _commit(self, events: int) -> None:
        """Decide some events, and store what has changed as one transaction."""
        self.all.tick()
        before = self.run.state
        asked: list[tuple[str, bool]] = []
        touched: dict[tuple[str, int], CoreAttempt] = {}
        stepped: set[tuple[str, int]] = set()
        moved = False
        for _ in range(events):
            kind, event = self._event(touched)
            decision = decide(self.run, event)
            self.run.apply(decision)
            if kind is not None:
                asked.append((kind, decision.refusal is None))
            touched.update(decision.attempts)
            stepped |= decision.moved
            moved = moved or decision.state is not None
        if moved:
            self._note(state=self.run.state.value, previous=before.value)
            self.all.steps.append(
                Step("workflow_instance", self.id, before.value, self.run.state.value)
            )
        for key, attempt in touched.items():
            self._store(attempt, key in stepped)
        for kind, done in asked:
            self.all.command(kind, self.id, done, self.id)

    def _store(self, attempt: CoreAttempt, stepped: bool) -> None:
        key = (attempt.task, attempt.number)
        if attempt.id is None:
            attempt = replace(attempt, id=next(self.all.ids))
            if self.run.attempts[attempt.task].number == attempt.number:
                self.run.replace([attempt])
        elif (before := self.stored[key].state) is not attempt.state:
            step = Step("task_instance", attempt.id or 0, before.value, attempt.state.value)
            self.all.steps.append(step)
        self.stored[key] = attempt
        if stepped:
            self._note(state=attempt.state.value, task=attempt.task, attempt=attempt.number)

    def _note(self, **fields: Any) -> None:
        number = len(self.all.changes) + 1
        self.all.changes.append(Change(number, self.all.now_s, self.id, **fields))

    # -- what happens ------------------------------------------------------------------------

    def _event(self, touched: Collection[tuple[str, int]]) -> tuple[str | None, Event]:
        """Return something that can happen now, and which command it is if it is one."""
        if self.run.state is WorkflowState.QUEUED:
            return None, Begun(self._at())
        if self.requests > 0 and self.rng.random() < 0.1:
            self.requests -= 1
            return self._request(self.rng.choice(list(_REQUESTS)))
        if self.run.state is WorkflowState.PAUSED:
            return self._request("RESUME")
        # Nobody knows yet of what is not stored.
        able = [
            attempt
            for attempt in self.run.attempts.values()
            if (attempt.task, attempt.number) not in touched
            and (attempt.state is TaskState.QUEUED or attempt.state in HELD_BY_WORKER)
        ]
        if not able:
            if not touched and self._ended() and self.rng.random() < 0.2:
                self.requests = 0
            return None, TimeReached(self._at())
        return None, self._progress(self.rng.choice(able))

    def _request(self, kind: str) -> tuple[str, Event]:
        return kind, _REQUESTS[kind](self._at())

    def _progress(self, attempt: CoreAttempt) -> Event:
        """Claim, start or end an attempt, as its worker would report it."""
        assert attempt.id is not None
        if attempt.state is TaskState.QUEUED:
            return TaskClaimed(attempt.id, "w", self._at())
        if attempt.state is TaskState.CLAIMED and self.rng.random() < 0.7:
            self._begin(attempt)
            return TaskStarted(attempt.id, "w", self._at())
        kind = self.rng.random()
        if kind < 0.1:
            if attempt.id in self.alive and self.rng.random() < 0.5:
                self._row(Kind.END, attempt, exit=0)
            return TaskEnded(attempt.id, TaskSignal.LOSE, self._at())
        if self.run.state is WorkflowState.STOPPING and kind < 0.8:
            return TaskEnded(attempt.id, TaskSignal.KILL, self._at(), "w")
        return self._end(attempt)

    def _begin(self, attempt: CoreAttempt) -> None:
        if attempt.id not in self.alive:
            self.alive.add(attempt.id)
            self._row(Kind.START, attempt)

    def _end(self, attempt: CoreAttempt) -> Event:
        assert attempt.id is not None
        self._begin(attempt)
        status = FAILED if self.rng.random() < 0.2 else 0
        self._row(Kind.END, attempt, exit=status)
        signal = TaskSignal.FAIL if status else TaskSignal.SUCCEED
        return TaskEnded(attempt.id, signal, self._at(), "w", exit_code=status)

    def _row(self, kind: Kind, attempt: CoreAttempt, **fields: Any) -> None:
        assert attempt.id is not None
        now_ns = int(self.all.now_s * 1e9) + len(self.all.rows)
        who = (self.id, attempt.task, attempt.number, attempt.id, _EPOCH)
        pid, ticks = attempt.id + 100, attempt.id
        self.all.rows.append(Row(kind, *who, pid, ticks, now_ns, now_ns, **fields))

    # -- what remains ------------------------------------------------------------------------

    def _keep(self) -> None:
        """Write the rows as they are at the end."""
        self.all.instances[self.id] = Instance(
            self.id,
            self.run.state.value,
            1,
            self.command_id,
            self.spec.on_failure.value,
            {task.name: _task(task) for task in self.spec.tasks},
        )
        for attempt in self.stored.values():
            assert attempt.id is not None
            self.all.attempts.append(
                Attempt(
                    attempt.id,
                    self.id,
                    attempt.task,
                    attempt.number,
                    attempt.state.value,
                    attempt.worker,
                    attempt.exit_code,
                    attempt.failures,
                    attempt.losses,
                    attempt.reason or "",
                )
            )


def _task(spec: TaskSpec) -> Task:
    return Task(
        spec.name, spec.depends_on, spec.run_when.value, spec.enabled, spec.retries, spec.timeout
    )
