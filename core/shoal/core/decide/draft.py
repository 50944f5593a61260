"""The working copy on which one decision is made: a ``Run`` overlaid with changes.

The run below is only read. Reads see the overlay first, so one decision can cascade through the
graph; the cost is in what changed, not in the size of the graph.
"""

import sys
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Mapping
from copy import copy
from datetime import datetime
from typing import Any, cast

from shoal.core.definition.kinds import LogicKind
from shoal.core.definition.model import FailureStrategy, RunWhen, TaskSpec
from shoal.core.errors import LONGEST_REASON, shortened
from shoal.core.macros.placeholders import RENDER_CHARACTERS, RENDER_STEPS
from shoal.core.runs.commands import Parent
from shoal.core.runs.run import (
    Action,
    Attempt,
    AttemptKey,
    Decision,
    Message,
    Run,
    SkipCause,
    TellParent,
)
from shoal.core.runs.states import (
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
from shoal.core.untrusted import Budget, OverBudget

FAILURES = frozenset({TaskState.FAILED, TaskState.LOST, TaskState.KILLED})
# What a parent wants to know of unasked: where an instance stays, and that it has left there.
_WORTH_TELLING = FINISHED_WORKFLOW | {WorkflowState.PAUSED, WorkflowState.RUNNING}


_SHORT_STEPS = 5_000  # some 10 ms
# Of one decision; a MAP that needs more goes on with the next report of one of its children.
_MOST_STEPS, _MOST_CHARACTERS = 10 * RENDER_STEPS, 4 * RENDER_CHARACTERS


class LongDecision(Exception):
    """More follows from an event than it was allowed to; nothing has happened."""


class _ShortBudget(Budget):
    """The budget of a decision that must not take long: beyond it, another thread decides."""

    def spend(self, steps: int, characters: int = 0) -> None:
        """Take from what is left. Raises LongDecision."""
        try:
            super().spend(steps, characters)
        except OverBudget:
            raise LongDecision from None


class Draft:
    """Changes to ``run`` as of ``at``; ``decision()`` returns them.

    Raises LongDecision as soon as more than ``most`` attempts change, or have to be judged, or
    texts of tasks that the master runs take long to render. ``rendering`` is the budget of these
    texts.
    """

    def __init__(self, run: Run, at: datetime, most: int = sys.maxsize) -> None:
        self.run = run
        self.at = at
        self._most = most
        self.rendering = (
            Budget(_MOST_STEPS, _MOST_CHARACTERS)
            if most == sys.maxsize
            else _ShortBudget(_SHORT_STEPS, RENDER_CHARACTERS // 16)
        )
        self.state = run.state
        self.reason: str | None = None
        self.parent = run.parent
        self.asked_by: Parent | None = None  # wants an answer even if nothing changes
        self.admitted_at: datetime | None = None
        self.warned_at: datetime | None = None
        self.late_at: datetime | None = None
        self.timed_out = False
        self.overdue: list[str] = []
        self.actions: list[Action] = []
        self.messages: list[Message] = []
        self.refusal: str | None = None
        # Tasks whose readiness may have changed, each with the upstream task that changed it
        # (None: check all of them).
        self.to_judge: list[tuple[str, str | None]] = []
        # Tasks that wait but may start; True: it was judged so in this decision, so a choice of
        # the same moment counts still; False: it is so whatever the upstream tasks have come to.
        self.ready: dict[str, bool] = {}
        self._newest: dict[str, Attempt] = {}
        self._written: dict[AttemptKey, Attempt] = {}
        self._unresolved: dict[str, int] = {}
        self._counts: defaultdict[TaskState, int] = defaultdict(int)
        self._handled: defaultdict[TaskState, int] = defaultdict(int)

    @property
    def has_room_for_texts(self) -> bool:
        """Whether one more task may use its whole budget for texts."""
        return (
            self.rendering.steps >= RENDER_STEPS and self.rendering.characters >= RENDER_CHARACTERS
        )

    # -- reading -----------------------------------------------------------------------------

    def attempt(self, task: str) -> Attempt:
        """Return the newest attempt of a task."""
        return self._newest.get(task) or self.run.attempts[task]

    def attempts(self) -> Iterable[Attempt]:
        """Return the newest attempt of every task: O(tasks), for requests and takeovers only."""
        return [self.attempt(task) for task in self.run.plan.tasks]

    def newest(self, task_instance_id: int) -> Attempt | None:
        """Return the attempt with this id if it is still the newest of its task."""
        attempt = self.run.attempt_by_id(task_instance_id)
        if attempt is None:
            return None
        newest = self.attempt(attempt.task)
        return newest if newest.id == task_instance_id else None

    def spec(self, task: str) -> TaskSpec:
        """Return a task's definition."""
        return self.run.plan.tasks[task]

    def kind(self, task: str) -> LogicKind | None:
        """Return which kind of task the master runs here; None: workers run it."""
        return self.run.plan.kinds.get(task)

    def rule(self, task: str) -> RunWhen:
        """Return when a task starts; CONDITIONS uses all results, whatever they are."""
        if self.kind(task) is LogicKind.CONDITIONS:
            return RunWhen.ALL_DONE
        return self.spec(task).run_when

    def unresolved(self, task: str) -> int:
        """How many upstream tasks have no final result yet."""
        return self.run.unresolved[task] + self._unresolved.get(task, 0)

    def count(self, *states: TaskState) -> int:
        """How many tasks' newest attempts are in one of ``states``."""
        stored, since = self.run.counts, self._counts
        return sum([stored.get(state, 0) + since.get(state, 0) for state in states])

    def unhandled(self, *states: TaskState) -> int:
        """As ``count``, without the tasks whose failure a CONDITIONS task deals with."""
        stored, since = self.run.handled, self._handled
        handled = sum([stored.get(state, 0) + since.get(state, 0) for state in states])
        return self.count(*states) - handled

    @property
    def open(self) -> int:
        """Tasks without a final result."""
        return len(self.run.plan.tasks) - self.count(*FINISHED_TASK)

    @property
    def held(self) -> int:
        """Tasks that a worker, or the master, works on."""
        return self.count(*HELD_BY_WORKER)

    @property
    def failing(self) -> bool:
        """Whether a failure keeps other tasks from starting."""
        strategy = self.run.plan.spec.on_failure
        return strategy in (FailureStrategy.FAIL_FAST, FailureStrategy.FINISH_RUNNING) and (
            self.unhandled(TaskState.FAILED, TaskState.LOST) > 0
        )

    def view(self) -> Run:
        """Return a run to read that shows the changes: for what tasks see of each other."""
        found = copy(self.run)
        found.attempts = ChainMap(self._newest, cast(dict[str, Attempt], self.run.attempts))
        found.givers = {
            *(task for task in self.run.givers if task not in self._newest),
            *(task for task, attempt in self._newest.items() if attempt.outputs),
        }
        return found

    # -- changing ----------------------------------------------------------------------------

    def act(self, action: Action) -> None:
        """Add something to do after the changes are stored."""
        self.actions.append(action)

    def send(self, message: Message) -> None:
        """Add something to send to another instance, stored with the changes."""
        self.messages.append(message)

    def move(self, signal: WorkflowSignal, reason: str | None = None) -> None:
        """Change the instance's state. Raises IllegalTransition."""
        self.state = next_workflow_state(self.state, signal)
        self.reason = reason

    def signal(self, task: str, signal: TaskSignal, **fields: Any) -> Attempt:
        """Change the state of a task's newest attempt, and ``fields`` of it with it."""
        before = self.attempt(task)
        state = next_task_state(before.state, signal)
        if state in FINISHED_TASK:
            fields["finished_at"] = fields.get("finished_at", before.finished_at) or self.at
        if reason := fields.get("reason"):
            fields["reason"] = shortened(reason, LONGEST_REASON)
        after = before.changed(state=state, **fields)
        self._put(before, after)
        return after

    def skip(self, task: str, cause: SkipCause, reason: str) -> None:
        """Decide that a task will not run."""
        self.signal(task, TaskSignal.SKIP, skip_cause=cause, reason=reason)

    def note(self, task: str, **fields: Any) -> Attempt:
        """Change ``fields`` of a task's newest attempt, which is not finished; not its state."""
        before = self.attempt(task)
        after = before.changed(**fields)
        self._put(before, after)
        return after

    def reopen(
        self,
        task: str,
        *,
        failures: int = 0,
        losses: int = 0,
        due_at: datetime | None = None,
        detail: Mapping[str, Any] | None = None,
        ready: bool = False,
        **fields: Any,
    ) -> Attempt:
        """Add a new attempt of a task whose newest attempt is finished.

        ``ready``: it may start whatever its upstream tasks have come to; else it is judged.
        ``fields``: others of the attempt.
        """
        before = self.attempt(task)
        after = Attempt(
            task,
            before.number + 1,
            failures=failures,
            losses=losses,
            due_at=due_at,
            detail=detail or {},
            **fields,
        )
        self._put(before, after)
        if ready:
            self.ready[task] = False
        else:
            self.to_judge.append((task, None))
        return after

    def _put(self, before: Attempt, after: Attempt) -> None:
        task = after.task
        self._newest[task] = after
        self._written[task, after.number] = after
        self._counts[before.state] -= 1
        self._counts[after.state] += 1
        if self.run.plan.judges and self.run.is_handled(task):
            self._handled[before.state] -= 1
            self._handled[after.state] += 1
        if before.finished != after.finished:
            step = -1 if after.finished else +1
            for child in self.run.plan.downstream[task]:
                self._unresolved[child] = self._unresolved.get(child, 0) + step
                if after.finished:
                    self.to_judge.append((child, task))
        if len(self._written) + len(self.to_judge) > self._most:
            raise LongDecision

    # -- the result --------------------------------------------------------------------------

    def decision(self) -> Decision:
        """Return what has changed."""
        if self.refusal is not None:
            return Decision(
                refusal=self.refusal,
                messages=tuple(self._answer(self.run.state)),
                parent=self.parent if self.parent != self.run.parent else None,
            )
        changed = self.state is not self.run.state
        started = self.run.started_at is None and self.state is WorkflowState.RUNNING
        return Decision(
            attempts=self._written,
            moved=frozenset(key for key in self._written if self._has_moved(key)),
            state=self.state if changed else None,
            previous=self.run.state if changed else None,
            reason=self.reason,
            started_at=self.at if changed and started else None,
            finished_at=self.at if changed and self.state in FINISHED_WORKFLOW else None,
            actions=tuple(self.actions),
            messages=(*self.messages, *self._answer(self.state)),
            admitted_at=self.admitted_at,
            warned_at=self.warned_at,
            late_at=self.late_at,
            timed_out=self.timed_out,
            overdue=tuple(self.overdue),
            parent=self.parent if self.parent != self.run.parent else None,
        )

    def _has_moved(self, key: AttemptKey) -> bool:
        before = self.run.attempts[key[0]]
        return before.number != key[1] or before.state is not self._written[key].state

    def _answer(self, state: WorkflowState) -> Iterable[TellParent]:
        """Report to the parent if it has asked, or the instance has stopped or started to move."""
        parent = self.asked_by or self.parent
        news = state is not self.run.state and state in _WORTH_TELLING
        if parent is None or not (news or self.asked_by):
            return
        outputs = self._outputs() if state in FINISHED_WORKFLOW else {}
        refused = self.refusal is not None
        yield TellParent(parent, state, self.refusal or self.reason, outputs, refused)

    def _outputs(self) -> dict[str, str]:
        """What the tasks of the instance have given; of one name, what was given last."""
        given = [a for a in self.attempts() if a.outputs and a.finished_at is not None]
        given.sort(key=lambda a: (a.finished_at or self.at, a.task))
        return {name: value for a in given for name, value in a.outputs.items()}
