"""DEPENDENT: the verdict of section 7, by cases and against a slow reference of the page."""

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from shoal.core.logic import intervals as dependent
from shoal.core.logic.dependency_rules import (
    DependencyJudgement,
    TaskRun,
    WorkflowRun,
    items_of,
    judge,
    question_of,
)
from shoal.core.logic.dependent import Dependency
from shoal.core.runs.events import DependencyVerdict
from shoal.core.runs.run import SkipCause
from shoal.core.runs.states import FINISHED_WORKFLOW, TaskState, WorkflowState

_T, _W, V = TaskState, WorkflowState, DependencyVerdict
BERLIN = ZoneInfo("Europe/Berlin")
BASE = datetime(2026, 3, 5, 6, tzinfo=UTC)  # a Thursday
A = ("p", "a")
OWN = 99
_ids = itertools.count(1_000)


def run(
    day: int = 5,
    state: WorkflowState = _W.SUCCEEDED,
    *,
    instance_id: int | None = None,
    succeeded: bool | None = None,
    whole: bool = True,
    **tasks: TaskRun,
) -> WorkflowRun:
    """A run for 06:00 of a day in March."""
    return WorkflowRun(
        next(_ids) if instance_id is None else instance_id,
        datetime(2026, 3, day, 6, tzinfo=UTC),
        state,
        state is _W.SUCCEEDED if succeeded is None else succeeded,
        whole,
        tasks,
    )


def task(
    state: TaskState, *, succeeded: bool | None = None, cause: SkipCause | None = None
) -> TaskRun:
    return TaskRun(7, state, state is _T.SUCCEEDED if succeeded is None else succeeded, cause)


def judged(when: Mapping[str, Any], *runs: WorkflowRun, own: int = OWN) -> DependencyJudgement:
    """Judge with these runs of workflow ``a``; all other workflows have none."""
    question = question_of(Dependency.model_validate(when), BASE, "p")
    names = {item.workflow for item in items_of(question)}
    return judge(question, {name: list(runs) if name == A else [] for name in names}, own)


TODAY = {"workflow": "a", "date": "today"}
TASK = {**TODAY, "task": "t"}


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([run()], V.SUCCESS),
        ([run(state=_W.RUNNING)], V.WAIT),
        ([run(state=_W.PAUSED)], V.WAIT),
        ([run(state=_W.QUEUED)], V.WAIT),
        ([run(state=_W.FAILED)], V.FAILURE),
        ([run(state=_W.STOPPED)], V.FAILURE),
        ([run(state=_W.FAILED), run(state=_W.RUNNING)], V.WAIT),
        ([run(state=_W.RUNNING), run()], V.SUCCESS),
        ([run(), run(state=_W.FAILED)], V.SUCCESS),  # a later run that fails changes nothing
        ([run(state=_W.FAILED, succeeded=True)], V.SUCCESS),  # nor does a rerun inside it
        ([run(state=_W.RUNNING, succeeded=True)], V.SUCCESS),
        ([run(whole=False)], V.WAIT),  # of chosen tasks: says nothing about the whole
        ([run(state=_W.FAILED, whole=False), run()], V.SUCCESS),
        ([run(day=4), run(day=6)], V.WAIT),
        ([], V.WAIT),
    ],
)
def test_whole_instances(runs: list[WorkflowRun], verdict: DependencyVerdict) -> None:
    for order in itertools.permutations(runs):
        assert judged(TODAY, *order).verdict is verdict


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([run(t=task(_T.SUCCEEDED))], V.SUCCESS),
        ([run(state=_W.RUNNING, t=task(_T.SUCCEEDED))], V.SUCCESS),
        ([run(state=_W.FAILED, t=task(_T.SUCCEEDED))], V.SUCCESS),
        ([run(state=_W.FAILED, t=task(_T.FAILED, succeeded=True))], V.SUCCESS),
        ([run(t=task(_T.SKIPPED, cause=SkipCause.DISABLED))], V.SUCCESS),
        ([run(state=_W.RUNNING, t=task(_T.WAITING))], V.WAIT),
        ([run(state=_W.RUNNING, t=task(_T.FAILED))], V.WAIT),  # it can be recovered
        ([run(state=_W.FAILED, t=task(_T.FAILED))], V.FAILURE),
        ([run(state=_W.STOPPED, t=task(_T.KILLED))], V.FAILURE),
        ([run(t=task(_T.SKIPPED, cause=SkipCause.BRANCH))], V.FAILURE),
        ([run(state=_W.FAILED, t=task(_T.SKIPPED, cause=SkipCause.UPSTREAM))], V.FAILURE),
        ([run(t=task(_T.SKIPPED, cause=SkipCause.NOT_SELECTED))], V.WAIT),
        (
            [run(t=task(_T.SKIPPED, succeeded=True, cause=SkipCause.NOT_SELECTED))],
            V.SUCCESS,
        ),
        ([run(whole=False, t=task(_T.SUCCEEDED))], V.SUCCESS),
        ([run()], V.WAIT),  # a version without the task
    ],
)
def test_tasks(runs: list[WorkflowRun], verdict: DependencyVerdict) -> None:
    assert judged(TASK, *runs).verdict is verdict


@pytest.mark.parametrize(
    ("if_missing", "verdict"), [("wait", V.WAIT), ("fail", V.FAILURE), ("skip", V.SKIP)]
)
def test_every_interval_needs_a_run(if_missing: str, verdict: DependencyVerdict) -> None:
    when = {"workflow": "a", "date": "last3Days", "if_missing": if_missing}
    assert judged(when, run(2), run(3), run(4)).verdict is V.SUCCESS
    found = judged(when, run(2), run(4))
    assert found.verdict is verdict
    assert found.reason == "p/a: no run for 2026-03-03 (last3Days)"
    assert judged(when, run(2, _W.FAILED), run(3), run(4)).verdict is V.FAILURE


def test_own_run_is_left_out() -> None:
    assert judged(TODAY, run(instance_id=OWN), own=OWN).verdict is V.WAIT
    assert judged(TODAY, run(instance_id=OWN), run(), own=OWN).verdict is V.SUCCESS


MISSING = {"workflow": "none", "date": "today"}
GOOD, BAD, OPEN, SKIP = (
    TODAY,
    {**MISSING, "if_missing": "fail"},
    MISSING,
    {**MISSING, "if_missing": "skip"},
)


@pytest.mark.parametrize(
    ("parts", "whole_all", "whole_any"),
    [
        ([GOOD, GOOD], V.SUCCESS, V.SUCCESS),
        ([GOOD, OPEN], V.WAIT, V.SUCCESS),
        ([GOOD, BAD], V.FAILURE, V.SUCCESS),
        ([GOOD, SKIP], V.SKIP, V.SUCCESS),
        ([OPEN, BAD], V.FAILURE, V.WAIT),
        ([OPEN, SKIP], V.WAIT, V.WAIT),
        ([BAD, SKIP], V.FAILURE, V.FAILURE),
        ([BAD, BAD], V.FAILURE, V.FAILURE),
        ([SKIP, SKIP], V.SKIP, V.SKIP),
    ],
)
def test_all_and_any(
    parts: list[dict[str, Any]], whole_all: DependencyVerdict, whole_any: DependencyVerdict
) -> None:
    for order in (parts, parts[::-1]):
        assert judged({"all": order}, run()).verdict is whole_all
        assert judged({"any": order}, run()).verdict is whole_any
    assert judged({"any": [{"all": parts}, GOOD]}, run()).verdict is V.SUCCESS
    assert judged({"all": [{"any": parts}, GOOD]}, run()).verdict is whole_any


def test_reason_and_detail_name_what_was_found() -> None:
    good, bad = run(), run(state=_W.FAILED)
    found = judged({"all": [TODAY, {**MISSING, "project": "q"}]}, bad, good)
    assert found.reason == "q/none: no run for 2026-03-05 (today)"
    first, second = found.detail["items"]
    assert (first["verdict"], second["verdict"]) == ("SUCCESS", "WAIT")
    assert first["intervals"] == [
        {
            "from": "2026-03-05T00:00:00+00:00",
            "until": "2026-03-06T00:00:00+00:00",
            "verdict": "SUCCESS",
            "runs": [
                {"instance": good.instance_id, "state": "SUCCEEDED"},
                {"instance": bad.instance_id, "state": "FAILED"},
            ],
        }
    ]
    failed = judged({"all": [TODAY, TASK]}, run(state=_W.STOPPED, instance_id=4, t=task(_T.LOST)))
    assert failed.reason == "p/a for 2026-03-05 (today): instance 4 is STOPPED; and 1 more"
    only_task = judged(TASK, run(state=_W.FAILED, instance_id=4, t=task(_T.LOST)))
    assert only_task.reason == "task t of p/a for 2026-03-05 (today): it is LOST in instance 4"
    assert only_task.detail["items"][0]["intervals"][0]["runs"] == [
        {"instance": 4, "state": "FAILED", "task_instance": 7, "task_state": "LOST"}
    ]
    assert judged(TODAY, run()).reason is None


def test_unknown_workflow_is_a_missing_run_that_says_so() -> None:
    question = question_of(Dependency.model_validate(TODAY), BASE, "p")
    found = judge(question, {A: None}, OWN)
    assert found.verdict is V.WAIT
    assert found.reason == "p/a: the project p has no such workflow"
    assert found.detail["items"][0]["exists"] is False


def test_many_runs_are_counted_not_listed() -> None:
    runs = [run(state=_W.FAILED) for _ in range(9)]
    (interval,) = judged(TODAY, *runs).detail["items"][0]["intervals"]
    assert [one["instance"] for one in interval["runs"]] == [r.instance_id for r in runs[:3:-1]]
    assert interval["more"] == 4


def test_intervals_are_those_of_the_zone_and_end_with_their_last_instant() -> None:
    base = datetime(2026, 3, 29, 12, tzinfo=BERLIN)  # a day of 23 hours
    question = question_of(Dependency.model_validate(TODAY), base, "p")
    (item,) = items_of(question)
    (window,) = item.windows
    midnight = datetime(2026, 3, 28, 23, tzinfo=UTC)
    assert (window.start, window.end) == (midnight, midnight + timedelta(hours=23))
    assert window.label == "2026-03-29"
    last = WorkflowRun(1, window.end - timedelta(microseconds=1), _W.SUCCEEDED, succeeded=True)
    assert judge(question, {A: [last]}, OWN).verdict is V.SUCCESS
    late = WorkflowRun(1, window.end, _W.SUCCEEDED, succeeded=True)
    assert judge(question, {A: [late]}, OWN).verdict is V.WAIT


# -- against a slow reference ----------------------------------------------------------------------


def _page_says(when: Mapping[str, Any], runs: Mapping[str, Sequence[WorkflowRun]]) -> str:
    """Section 7, read aloud."""
    if "all" in when:
        parts = [_page_says(one, runs) for one in when["all"]]
        return next((v for v in ("FAILURE", "WAIT", "SKIP") if v in parts), "SUCCESS")
    if "any" in when:
        parts = [_page_says(one, runs) for one in when["any"]]
        return next(v for v in ("SUCCESS", "WAIT", "FAILURE", "SKIP") if v in parts)
    of_intervals = []
    for start, end in dependent.intervals(when["date"], BASE):
        inside = [
            r
            for r in runs[when["workflow"]]
            if start <= r.logical_time.replace(microsecond=0) <= end and r.instance_id != OWN
        ]
        name = when.get("task")
        if name is None:
            inside = [r for r in inside if r.is_whole]
            good = [r for r in inside if r.succeeded]
        else:
            inside = [r for r in inside if name in r.tasks]
            good = [
                r
                for r in inside
                if r.tasks[name].succeeded or r.tasks[name].skip_cause is SkipCause.DISABLED
            ]
            left_out = [r for r in inside if r.tasks[name].skip_cause is SkipCause.NOT_SELECTED]
            inside = [r for r in inside if r in good or r not in left_out]
        going = [r for r in inside if r.state not in FINISHED_WORKFLOW]
        if good:
            of_intervals.append("SUCCESS")
        elif going:
            of_intervals.append("WAIT")
        elif inside:
            of_intervals.append("FAILURE")
        else:
            missing = {"wait": "WAIT", "fail": "FAILURE", "skip": "SKIP"}
            of_intervals.append(missing[when.get("if_missing", "wait")])
    return next((v for v in ("FAILURE", "WAIT", "SKIP") if v in of_intervals), "SUCCESS")


def _random_when(dice: random.Random, depth: int = 2) -> dict[str, Any]:
    if depth and dice.random() < 0.5:
        members = [_random_when(dice, depth - 1) for _ in range(dice.randint(1, 3))]
        return {dice.choice(["all", "any"]): members}
    item = {
        "workflow": dice.choice("ab"),
        "date": dice.choice(["today", "last1Days", "last2Days", "thisWeek", "last3Hours"]),
        "if_missing": dice.choice(["wait", "fail", "skip"]),
    }
    return item | dice.choice([{}, {"task": "t"}])


def _random_run(dice: random.Random) -> WorkflowRun:
    state, causes = dice.choice(list(TaskState)), [None, None, *SkipCause]
    found = task(state, succeeded=dice.random() < 0.2 or None, cause=dice.choice(causes))
    return WorkflowRun(
        dice.choice([next(_ids), next(_ids), OWN]),
        BASE + timedelta(minutes=15 * dice.randint(-3 * 96, 96)),
        dice.choice(list(WorkflowState)),
        dice.random() < 0.3,
        dice.random() < 0.8,
        {"t": found} if dice.random() < 0.8 else {},
    )


def test_verdict_is_the_pages() -> None:
    dice = random.Random(7)
    seen: Counter[str] = Counter()
    for case in range(1_200):
        when = _random_when(dice)
        runs = {name: [_random_run(dice) for _ in range(dice.randint(0, 12))] for name in "ab"}
        question = question_of(Dependency.model_validate(when), BASE, "p")
        found = judge(question, {("p", name): some for name, some in runs.items()}, OWN)
        assert found.verdict == _page_says(when, runs), (case, when, runs)
        assert (found.reason is None) == (found.verdict is V.SUCCESS)
        assert len(found.detail["items"]) == len(list(items_of(question)))
        seen[found.verdict] += 1
    assert min(seen[verdict] for verdict in V) > 60, seen
