"""DEPENDENT tasks: which runs there are, and what they mean for the tasks that wait for them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from shoal.core.definition.kinds import LogicKind
from shoal.core.logic.dependency_rules import (
    DependencyItem,
    LogicalInterval,
    Question,
    TaskRun,
    WorkflowName,
    WorkflowRun,
    items_of,
    judge,
    question_of,
)
from shoal.core.logic.dependent import DependentParams
from shoal.core.runs.events import DependencyJudged
from shoal.core.runs.run import Run, SkipCause
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.insight.simulate.engine.workflow import SimulatedWorkflow

_BEFORE = -1  # the id of runs from before the simulation


@dataclass(frozen=True)
class _Waiting:
    run: Run
    question: Question
    names: frozenset[WorkflowName]


class SimulatedDependencies:
    """Knows the runs of those workflows that DEPENDENT tasks name.

    Of the time before ``start`` no runs are known: where the timetable of a workflow has a fire
    time, or it has no timetable, its run is taken to have succeeded.
    """

    def __init__(self, workflows: Mapping[str, SimulatedWorkflow], start: datetime) -> None:
        self._workflows, self._start = workflows, start
        self._tasks: defaultdict[WorkflowName, set[str]] = defaultdict(set)  # that are asked for
        for workflow in workflows.values():
            for item in _named(workflow):
                self._tasks[item.workflow].update({item.task} if item.task is not None else ())
        self._runs: defaultdict[WorkflowName, list[_Seen]] = defaultdict(list)
        self._of: dict[int, _Seen] = {}
        self._waiting: dict[int, _Waiting] = {}  # by task instance id
        self._waiting_for: defaultdict[WorkflowName, dict[int, None]] = defaultdict(dict)
        self._before: dict[tuple[WorkflowName, LogicalInterval], list[WorkflowRun]] = {}
        self.assumes = False  # whether a run from before the start has counted

    # -- runs that are waited for ----------------------------------------------------------------

    def created(self, run: Run) -> None:
        """Note a run, if a DEPENDENT task could wait for it."""
        name = _name_of(run)
        if name in self._tasks:
            seen = _Seen(run, frozenset(self._tasks[name]))
            self._runs[name].append(seen)
            self._of[run.id] = seen

    def changed(self, run: Run) -> list[int]:
        """Note what has changed of a run; return the task instances that may go on now."""
        seen = self._of.get(run.id) if self._of else None
        if seen is None or not seen.update():
            return []
        return list(self._waiting_for[_name_of(run)])

    # -- tasks that wait -------------------------------------------------------------------------

    def watch(self, run: Run, task: str, task_instance_id: int) -> None:
        """Note a task that waits from now on."""
        when = DependentParams.model_validate(run.plan.tasks[task].params).when
        base = run.logical_time.astimezone(ZoneInfo(run.timezone))
        question = question_of(when, base, run.plan.spec.project)
        names = frozenset(item.workflow for item in items_of(question))
        self._waiting[task_instance_id] = _Waiting(run, question, names)
        for name in names:
            self._waiting_for[name][task_instance_id] = None

    def judge(self, task_instance_id: int, now: datetime) -> tuple[Run, DependencyJudged] | None:
        """Return what the runs mean for a task now; None: it no longer waits."""
        waiting = self._waiting.get(task_instance_id)
        if waiting is None:
            return None
        attempt = waiting.run.attempt_by_id(task_instance_id)
        if attempt is None or attempt.state is not TaskState.RUNNING:
            del self._waiting[task_instance_id]
            for name in waiting.names:
                self._waiting_for[name].pop(task_instance_id, None)
            return None
        found: dict[WorkflowName, list[WorkflowRun] | None] = {}
        for item in items_of(waiting.question):
            if "/".join(item.workflow) not in self._workflows:
                found[item.workflow] = None
                continue
            runs = found.setdefault(item.workflow, [])
            assert runs is not None, "the workflow is known"
            runs += self._found(item)
        judged = judge(waiting.question, found, waiting.run.id)
        event = DependencyJudged(
            task_instance_id, judged.verdict, now, judged.reason, judged.detail
        )
        return waiting.run, event

    def _found(self, item: DependencyItem) -> Iterator[WorkflowRun]:
        first = min((window.start for window in item.windows), default=self._start)
        last = max((window.end for window in item.windows), default=self._start)
        for seen in self._runs[item.workflow]:
            if first <= seen.run.logical_time < last:
                yield seen.shown()
        for window in item.windows:
            if window.start < self._start:
                yield from self._earlier(item.workflow, window)

    def _earlier(self, name: WorkflowName, window: LogicalInterval) -> list[WorkflowRun]:
        """Return the runs that are taken to have been in a window before the start."""
        known = self._before.get((name, window))
        if known is None:
            known = self._before[name, window] = list(self._invented(name, window))
        self.assumes = self.assumes or bool(known)
        return known

    def _invented(self, name: WorkflowName, window: LogicalInterval) -> Iterator[WorkflowRun]:
        end = min(window.end, self._start)
        schedules = self._workflows["/".join(name)].schedules
        times = [window.start] if not schedules else []
        for schedule in schedules:
            first = next(
                iter(
                    schedule.timetable.between(window.start - schedule.shift, end - schedule.shift)
                ),
                None,
            )
            if first is not None:
                times.append(first.astimezone(UTC) + schedule.shift)
        done = TaskRun(_BEFORE, TaskState.SUCCEEDED, succeeded=True)
        for time in times[:1]:
            tasks = dict.fromkeys(self._tasks[name], done)
            yield WorkflowRun(_BEFORE, time, WorkflowState.SUCCEEDED, succeeded=True, tasks=tasks)


class _Seen:
    """What DEPENDENT tasks see of a run: also that something succeeded that runs again."""

    def __init__(self, run: Run, tasks: frozenset[str]) -> None:
        self.run = run
        self._tasks = sorted(tasks & run.plan.tasks.keys())
        self._succeeded = False
        self._tasks_succeeded: set[str] = set()
        self._told: tuple[object, ...] = ()

    def update(self) -> bool:
        """Take over how the run stands; say whether that is news."""
        self._succeeded = self._succeeded or self.run.state is WorkflowState.SUCCEEDED
        told: list[object] = [self.run.state]
        for task in self._tasks:
            attempt = self.run.attempts[task]
            if attempt.state is TaskState.SUCCEEDED:
                self._tasks_succeeded.add(task)
            told.append(attempt.state)
        news, self._told = tuple(told) != self._told, tuple(told)
        return news

    def shown(self) -> WorkflowRun:
        """Return it as the core judges it."""
        tasks: dict[str, TaskRun] = {}
        for task in self._tasks:
            attempt = self.run.attempts[task]
            cause: SkipCause | None = attempt.skip_cause
            succeeded = task in self._tasks_succeeded
            tasks[task] = TaskRun(attempt.id or 0, attempt.state, succeeded, cause)
        run = self.run
        return WorkflowRun(run.id, run.logical_time, run.state, self._succeeded, tasks=tasks)


def _named(workflow: SimulatedWorkflow) -> Iterator[DependencyItem]:
    """Yield what the DEPENDENT tasks of a workflow wait for; the windows do not matter."""
    spec = workflow.spec
    for task, kind in workflow.plan.kinds.items():
        if kind is LogicKind.DEPENDENT:
            when = DependentParams.model_validate(workflow.plan.tasks[task].params).when
            yield from items_of(question_of(when, datetime(2026, 1, 1, tzinfo=UTC), spec.project))


def _name_of(run: Run) -> WorkflowName:
    return run.plan.spec.project, run.plan.spec.name
