"""What the runs of other workflows mean for a DEPENDENT task: section 7 of docs/semantics.md.

``question_of`` says once which runs count, ``judge`` what those that were found mean.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.core.logic import intervals
from shoal.core.logic.dependent import Dependency, IfMissing
from shoal.core.runs.events import DependencyVerdict
from shoal.core.runs.run import SkipCause
from shoal.core.runs.states import FINISHED_WORKFLOW, TaskState, WorkflowState
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import and_more, say

WorkflowName = tuple[str, str]  # project, name

MOST_RUNS = 5  # named for each interval
_SECOND = timedelta(seconds=1)
_V = DependencyVerdict


@dataclass(frozen=True)
class TaskRun:
    """How a task stands in one run: its newest attempt, and whether any succeeded."""

    task_instance_id: int
    state: TaskState
    succeeded: bool
    skip_cause: SkipCause | None = None


@dataclass(frozen=True)
class WorkflowRun:
    """One run of a workflow that a task may wait for."""

    instance_id: int
    logical_time: datetime
    state: WorkflowState
    succeeded: bool  # now or at any time before: a later rerun does not take that back
    is_whole: bool = True  # not of chosen tasks only
    tasks: Mapping[str, TaskRun] = field(default_factory=dict)  # those that are asked for


@dataclass(frozen=True)
class LogicalInterval:
    """An interval of logical time in which a run is wanted."""

    label: str  # its start, in the zone of the run that waits
    start: datetime  # UTC
    end: datetime  # UTC, excluded

    def holds(self, run: WorkflowRun) -> bool:
        """Say whether a run is for an instant in the interval."""
        return self.start <= run.logical_time < self.end


@dataclass(frozen=True)
class DependencyItem:
    """A workflow, or a task of it, that must have run in each of ``windows``."""

    workflow: WorkflowName
    task: str | None
    date: str
    if_missing: IfMissing
    windows: tuple[LogicalInterval, ...]

    def __str__(self) -> str:
        name = "/".join(self.workflow)
        return name if self.task is None else f"task {self.task} of {name}"


@dataclass(frozen=True)
class QuestionGroup:
    """Several questions, of which all or any must come true."""

    is_all: bool
    members: tuple["Question", ...]


Question = DependencyItem | QuestionGroup


@dataclass(frozen=True)
class DependencyJudgement:
    """The verdict, in one sentence why, and every run that was considered."""

    verdict: DependencyVerdict
    reason: str | None
    detail: Mapping[str, Any]


# What was found; None: there is no such workflow. Runs are in any order.
FoundRuns = Mapping[WorkflowName, Sequence[WorkflowRun] | None]


def question_of(when: Dependency, base: datetime, project: str) -> Question:
    """Return what a DEPENDENT task asks. ``base``: the logical time of its run, in its zone.

    Raises DateOutOfRange.
    """
    if when.workflow is not None:
        assert when.date is not None, "checked with the definition"
        found = intervals.intervals(when.date, base)
        try:
            windows = tuple(_window(*one) for one in found)
        except OverflowError:
            raise intervals.DateOutOfRange(when.date, base) from None
        return DependencyItem(
            (when.project or project, when.workflow),
            when.task,
            when.date,
            when.if_missing,
            windows,
        )
    members = tuple(question_of(one, base, project) for one in (*(when.all_ or when.any_ or ()),))
    return QuestionGroup(when.all_ is not None, members)


def _window(start: datetime, end: datetime) -> LogicalInterval:
    midnight = (start.hour, start.minute, start.second) == (0, 0, 0)
    whole_day = midnight and end.date() == start.date() and end.hour == 23
    label = start.strftime("%Y-%m-%d" if whole_day else "%Y-%m-%d %H:%M")
    # Intervals are closed and of whole seconds; logical times may have fractions.
    return LogicalInterval(label, start.astimezone(UTC), end.astimezone(UTC) + _SECOND)


def items_of(question: Question) -> Iterator[DependencyItem]:
    """Yield the items of a question in their order."""
    if isinstance(question, DependencyItem):
        yield question
    else:
        for member in question.members:
            yield from items_of(member)


@dataclass(frozen=True)
class _Finding:
    """The verdict on a part of the question, and what led to it."""

    verdict: DependencyVerdict
    reasons: tuple[str, ...] = ()


def judge(question: Question, found: FoundRuns, own_id: int) -> DependencyJudgement:
    """Judge what was found. ``own_id``: the instance that waits, which cannot wait for itself."""
    shown: list[dict[str, Any]] = []
    finding = _judge(question, found, own_id, shown)
    reason = None
    if finding.reasons:
        reason = and_more(finding.reasons[0], len(finding.reasons) - 1)
    return DependencyJudgement(finding.verdict, reason, {"items": shown})


def _judge(
    question: Question, found: FoundRuns, own_id: int, shown: list[dict[str, Any]]
) -> _Finding:
    if isinstance(question, DependencyItem):
        return _judge_item(question, found, own_id, shown)
    # Every member is judged, also once the verdict is clear: people see all of them.
    findings = [_judge(member, found, own_id, shown) for member in question.members]
    return _combined(_ALL if question.is_all else _ANY, findings)


# The first of these that one of the parts has is the verdict on the whole.
_ALL = (_V.FAILURE, _V.WAIT, _V.SKIP, _V.SUCCESS)
_ANY = (_V.SUCCESS, _V.WAIT, _V.FAILURE, _V.SKIP)


def _combined(order: Sequence[DependencyVerdict], findings: Sequence[_Finding]) -> _Finding:
    verdict = min((one.verdict for one in findings), key=order.index)
    reasons = [r for one in findings if one.verdict is verdict for r in one.reasons]
    return _Finding(verdict, tuple(reasons))


def _judge_item(
    item: DependencyItem, found: FoundRuns, own_id: int, shown: list[dict[str, Any]]
) -> _Finding:
    runs = found.get(item.workflow)
    others = [run for run in runs or () if run.instance_id != own_id]
    findings, windows = [], []
    for window in item.windows:
        outcomes = [
            (outcome, run)
            for run in others
            if window.holds(run) and (outcome := _outcome(item, run)) is not None
        ]
        outcomes.sort(key=lambda one: (_BEST.index(one[0]), -one[1].instance_id))
        finding = _judge_window(item, window, outcomes, is_known=runs is not None)
        findings.append(finding)
        windows.append(_shown(item, window, finding.verdict, outcomes))
    whole = _combined(_ALL, findings)
    shown.append(
        {
            "project": item.workflow[0],
            "workflow": item.workflow[1],
            "task": item.task,
            "date": item.date,
            "exists": runs is not None,
            "verdict": whole.verdict,
            "intervals": windows,
        }
    )
    return whole


_BEST = (_V.SUCCESS, _V.WAIT, _V.FAILURE)


def _outcome(item: DependencyItem, run: WorkflowRun) -> DependencyVerdict | None:
    """Return what one run says about the item; None: nothing."""
    has_ended = run.state in FINISHED_WORKFLOW
    if item.task is None:
        if not run.is_whole:
            return None
        succeeded = run.succeeded
    else:
        task = run.tasks.get(item.task)
        if task is None or (task.skip_cause is SkipCause.NOT_SELECTED and not task.succeeded):
            return None
        succeeded = task.succeeded or task.skip_cause is SkipCause.DISABLED
    if succeeded:
        return _V.SUCCESS
    return _V.FAILURE if has_ended else _V.WAIT


_MISSING: Mapping[IfMissing, DependencyVerdict] = {
    IfMissing.WAIT: _V.WAIT,
    IfMissing.FAIL: _V.FAILURE,
    IfMissing.SKIP: _V.SKIP,
}


def _judge_window(
    item: DependencyItem,
    window: LogicalInterval,
    outcomes: Sequence[tuple[DependencyVerdict, WorkflowRun]],
    *,
    is_known: bool,
) -> _Finding:
    named = {"upstream": item.task, "project": item.workflow[0], "workflow": item.workflow[1]}
    when = {"from_": window.label, "date": item.date}
    if not outcomes:
        verdict = _MISSING[item.if_missing]
        if is_known:
            missing = say(Code.REASON_DEPENDENCY_MISSING, **named, **when)
        else:
            missing = say(Code.REASON_DEPENDENCY_NO_WORKFLOW, **named)
        return _Finding(verdict, (missing,))
    verdict, run = outcomes[0]
    if verdict is _V.SUCCESS:
        return _Finding(verdict)
    code, state = Code.REASON_DEPENDENCY_RUN, str(run.state)
    if item.task is not None and verdict is _V.FAILURE:
        code, state = Code.REASON_DEPENDENCY_TASK, str(run.tasks[item.task].state)
    what = say(code, **named, **when, instance=run.instance_id, state=state)
    return _Finding(verdict, (what,))


def _shown(
    item: DependencyItem,
    window: LogicalInterval,
    verdict: DependencyVerdict,
    outcomes: Sequence[tuple[DependencyVerdict, WorkflowRun]],
) -> dict[str, Any]:
    runs = []
    for _, run in outcomes[:MOST_RUNS]:
        shown: dict[str, Any] = {"instance": run.instance_id, "state": run.state}
        if item.task is not None:
            task = run.tasks[item.task]
            shown |= {"task_instance": task.task_instance_id, "task_state": task.state}
        runs.append(shown)
    return {
        "from": window.start.isoformat(),
        "until": window.end.isoformat(),
        "verdict": verdict,
        "runs": runs,
        **({"more": len(outcomes) - MOST_RUNS} if len(outcomes) > MOST_RUNS else {}),
    }
