"""The working copy on which one decision is made: a ``Run`` overlaid with changes.

The run below is only read. Reads see the overlay first, so one decision can cascade through the
graph; the cost is in what changed, not in the size of the graph.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from shoal.core.model import FailureStrategy, TaskSpec
from shoal.core.run import Action, Attempt, AttemptKey, Decision, Run
from shoal.core.states import (
    FINISHED_TASK,
    FINISHED_WORKFLOW,
    HELD_BY_WORKER,
    TaskSignal,
    TaskState,
    WorkflowSignal,
    WorkflowState,
    next_task_state,
    next_workflow_state,
)

FAILURES = frozenset({TaskState.FAILED, TaskState.LOST, TaskState.KILLED})


class Draft:
    """Changes to ``run`` as of ``at``; ``decision()`` returns them."""

    def __init__(self, run: Run, at: datetime) -> None:
        self.run = run
        self.at = at
        self.state = run.state
        self.reason: str | None = None
        self.actions: list[Action] = []
        self.refusal: str | None = None
        # Tasks whose readiness may have changed, each with the upstream task that changed it
        # (None: look at all of them).
        self.to_judge: list[tuple[str, str | None]] = []
        self._newest: dict[str, Attempt] = {}
        self._written: dict[AttemptKey, Attempt] = {}
        self._unresolved: dict[str, int] = {}
        self._counts: Counter[TaskState] = Counter()

    # -- reading -----------------------------------------------------------------------------

    def attempt(self, task: str) -> Attempt:
        """Return the newest attempt of a task."""
        return self._newest.get(task) or self.run.attempts[task]

    def attempts(self) -> Iterable[Attempt]:
        """Return the newest attempt of every task: O(tasks), for requests and takeovers only."""
        return [self.attempt(task) for task in self.run.plan.tasks]

    def spec(self, task: str) -> TaskSpec:
        """Return a task's definition."""
        return self.run.plan.tasks[task]

    def unresolved(self, task: str) -> int:
        """How many upstream tasks have no final result yet."""
        return self.run.unresolved[task] + self._unresolved.get(task, 0)

    def count(self, *states: TaskState) -> int:
        """How many tasks' newest attempts are in one of ``states``."""
        return sum(self.run.counts[state] + self._counts[state] for state in states)

    @property
    def open(self) -> int:
        """Tasks without a final result."""
        return len(self.run.plan.tasks) - self.count(*FINISHED_TASK)

    @property
    def held(self) -> int:
        """Tasks that a worker holds."""
        return self.count(*HELD_BY_WORKER)

    @property
    def failing(self) -> bool:
        """Whether a failure keeps other tasks from starting."""
        strategy = self.run.plan.spec.on_failure
        return strategy in (FailureStrategy.FAIL_FAST, FailureStrategy.FINISH_RUNNING) and (
            self.count(TaskState.FAILED, TaskState.LOST) > 0
        )

    def passed(self, task: str) -> bool:
        """Whether downstream tasks may take this one for a success."""
        state = self.attempt(task).state
        if state is TaskState.SKIPPED:
            return not self.spec(task).enabled
        if self.run.plan.spec.on_failure is FailureStrategy.IGNORE and state in FAILURES:
            return True
        return state is TaskState.SUCCEEDED

    # -- changing ----------------------------------------------------------------------------

    def act(self, action: Action) -> None:
        """Add something to do after the changes are stored."""
        self.actions.append(action)

    def move(self, signal: WorkflowSignal, reason: str | None = None) -> None:
        """Change the instance's state. Raises IllegalTransition."""
        self.state = next_workflow_state(self.state, signal)
        self.reason = reason

    def signal(self, task: str, signal: TaskSignal, **fields: Any) -> Attempt:
        """Change the state of a task's newest attempt, and ``fields`` of it with it."""
        before = self.attempt(task)
        after = replace(before, state=next_task_state(before.state, signal), **fields)
        if after.finished:
            after = replace(after, finished_at=after.finished_at or self.at)
        self._put(before, after)
        return after

    def reopen(
        self, task: str, *, failures: int = 0, losses: int = 0, due_at: datetime | None = None
    ) -> Attempt:
        """Add a new attempt of a task whose newest attempt is finished."""
        before = self.attempt(task)
        after = Attempt(task, before.number + 1, failures=failures, losses=losses, due_at=due_at)
        self._put(before, after)
        self.to_judge.append((task, None))
        return after

    def _put(self, before: Attempt, after: Attempt) -> None:
        task = after.task
        self._newest[task] = after
        self._written[task, after.number] = after
        self._counts[before.state] -= 1
        self._counts[after.state] += 1
        if before.finished != after.finished:
            step = -1 if after.finished else +1
            for child in self.run.plan.downstream[task]:
                self._unresolved[child] = self._unresolved.get(child, 0) + step
                if after.finished:
                    self.to_judge.append((child, task))

    def decision(self) -> Decision:
        """Return what has changed."""
        if self.refusal is not None:
            return Decision(refusal=self.refusal)
        changed = self.state is not self.run.state
        started = changed and self.run.started_at is None and self.state is WorkflowState.RUNNING
        return Decision(
            attempts=self._written,
            state=self.state if changed else None,
            previous=self.run.state if changed else None,
            reason=self.reason,
            started_at=self.at if started else None,
            finished_at=self.at if changed and self.state in FINISHED_WORKFLOW else None,
            actions=tuple(self.actions),
        )
