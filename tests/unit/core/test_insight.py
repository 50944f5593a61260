"""What results of jobs mean: which baseline counts, what is slower, when a run will end."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from statistics import NormalDist, median, quantiles
from typing import Any

import pytest

from shoal.core.insight import expectation
from shoal.core.insight.baselines import Baseline, Baselines
from shoal.core.insight.comparison import (
    Verdict,
    compare,
    sentence,
    verdict_of,
    when_of,
)
from shoal.core.insight.days import RunDay, TaskDay, runs_of, tasks_of
from shoal.core.insight.expectation import Basis
from shoal.core.insight.windows import DayWindow, weighted, window_of
from shoal.core.runs.records import Instance, TaskInstance
from shoal.core.runs.states import FINISHED_TASK, TaskState, WorkflowState
from shoal.core.runs.why.codes import Code
from tests.support.insight.rollups import baseline

MONDAY = datetime(2026, 2, 2, 2, 0, tzinfo=UTC)  # 02:00
_T, _W = TaskState, WorkflowState


def after(seconds: float) -> datetime:
    return MONDAY + timedelta(seconds=seconds)


def run(state: WorkflowState = _W.RUNNING, **changes: Any) -> Instance:
    """A run that was created 5 s before Monday, 02:00, and began then."""
    values: dict[str, Any] = {
        "id": 17,
        "workflow_id": 1,
        "project": "p",
        "workflow": "w",
        "version": 1,
        "state": state,
        "reason": None,
        "partition": 0,
        "priority": 2,
        "parameters": {},
        "logical_time": MONDAY,
        "timezone": "UTC",
        "command_id": 1,
        "rerun_of": None,
        "run_number": 1,
        "schedule_id": None,
        "created_at": after(-5),
        "started_at": MONDAY,
        "finished_at": None,
    }
    return Instance(**{**values, **changes})


def attempt(task: str, state: TaskState, *times: float | None, **changes: Any) -> TaskInstance:
    """An attempt; ``times``: queued, started and finished, in seconds from Monday, 02:00."""
    given = [None if one is None else after(one) for one in times]
    queued, started, finished = (*given, None, None, None)[:3]
    values: dict[str, Any] = {
        "id": sum(map(ord, task)),
        "workflow_instance_id": 17,
        "project": "p",
        "workflow": "w",
        "task": task,
        "type": "SHELL",
        "attempt": 1,
        "state": state,
        "worker_group": "default",
        "worker": None,
        "reason": None,
        "exit_code": None,
        "due_at": None,
        "queued_at": queued,
        "started_at": started,
        "finished_at": finished,
    }
    return TaskInstance(**{**values, **changes})


def newest(*attempts: TaskInstance) -> dict[str, TaskInstance]:
    return {one.task: one for one in attempts}


# -- windows --------------------------------------------------------------------------------------

DAY = date(2026, 1, 31)


def test_window_is_the_last_four_weeks_that_there_are() -> None:
    window = window_of(DAY, None, None)
    assert window == DayWindow(date(2026, 1, 4), DAY)
    assert window is not None
    assert window.length == window.before.length == 28
    assert window.before.last == date(2026, 1, 3)
    assert window_of(None, DAY, DAY) is None
    assert window_of(DAY, date(2026, 1, 30), None) == DayWindow(date(2026, 1, 30), DAY)
    assert window_of(DAY, None, date(2026, 1, 10)) == DayWindow(
        date(2025, 12, 14), date(2026, 1, 10)
    )


def test_one_day_is_exact_and_several_are_weighted() -> None:
    assert weighted([(10.0, 3), (50.0, 1), (None, 9), (7.0, 0)]) == 20.0
    assert weighted([(None, 1)]) is None
    day = RunDay(runs=4, duration_p50=10.0, duration_max=90.0)
    other = RunDay(runs=1, duration_p50=60.0, duration_max=60.0, failed=1)
    assert runs_of([day]) is day
    both = runs_of([day, other])
    assert (both.runs, both.failed, both.duration_p50, both.duration_max) == (5, 1, 20.0, 90.0)
    assert runs_of([]) == RunDay()
    assert tasks_of([TaskDay(attempts=1), TaskDay(attempts=2, busy_s=3.0)]).busy_s == 3.0
    assert tasks_of([TaskDay(attempts=1), TaskDay(attempts=2)]).busy_s is None


# -- baselines ------------------------------------------------------------------------------------


def test_the_nearest_baseline_counts() -> None:
    """(weekday, hour), then the hour of any day, then any hour of the weekday, then any time."""
    rows = [
        baseline(p50=1.0, weekday=0, hour=2),
        baseline(p50=2.0, weekday=-1, hour=2),
        baseline(p50=3.0, weekday=0, hour=-1),
        baseline(p50=4.0),
    ]
    assert _p50(rows, MONDAY) == 1.0
    assert _p50(rows[1:], MONDAY) == 2.0
    assert _p50(rows[2:], MONDAY) == 3.0
    assert _p50(rows[3:], MONDAY) == 4.0
    assert _p50([], MONDAY) is None
    assert _p50(rows, MONDAY + timedelta(days=1)) == 2.0
    assert _p50(rows, MONDAY + timedelta(hours=1)) == 3.0
    assert _p50(rows, MONDAY + timedelta(days=1, hours=1)) == 4.0
    assert Baselines(rows).of("other", MONDAY) is None


def _p50(rows: Sequence[Mapping[str, Any]], at: datetime) -> float | None:
    found = Baselines(rows).of("", at)
    return None if found is None else found.p50_s


# -- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("took", "p50", "mad", "verdict"),
    [
        (131.0, 100.0, 10.0, Verdict.SLOWER),  # beyond three times the MAD
        (129.0, 100.0, 10.0, Verdict.USUAL),
        (69.0, 100.0, 10.0, Verdict.FASTER),
        (71.0, 100.0, 10.0, Verdict.USUAL),
        (111.0, 100.0, 0.0, Verdict.SLOWER),  # a tenth of the median
        (109.0, 100.0, 0.0, Verdict.USUAL),
        (2.1, 1.0, 0.0, Verdict.SLOWER),  # a second
        (1.9, 1.0, 0.0, Verdict.USUAL),
        (None, 1.0, 0.0, Verdict.UNKNOWN),
    ],
)
def test_verdict_is_by_the_spread_of_what_was_before(
    took: float | None, p50: float, mad: float, verdict: Verdict
) -> None:
    usual = Baseline(-1, -1, 5, p50, p50, mad, p50 * 2)
    assert verdict_of(took, usual) is verdict
    assert verdict_of(took, usual._replace(n=4)) is Verdict.UNKNOWN
    assert verdict_of(took, None) is Verdict.UNKNOWN
    so_far = verdict_of(took, usual, is_open=True)
    assert so_far is (Verdict.USUAL if verdict is Verdict.FASTER else verdict)


def test_what_made_a_run_slower_comes_first_and_adds_up() -> None:
    """extract → load, and a side task that took longer but that nothing waited for."""
    rows = [
        baseline("", 100.0, mad_s=5.0),
        baseline("extract", 40.0, mad_s=2.0, wait_p50_s=1.0),
        baseline("load", 57.0, mad_s=2.0, wait_p50_s=2.0),
        baseline("side", 5.0, mad_s=1.0),
    ]
    done = run(_W.SUCCEEDED, finished_at=after(220))
    tasks = [
        attempt("extract", _T.SUCCEEDED, 0, 1, 42),
        attempt("side", _T.SUCCEEDED, 0, 1, 101),
        attempt("load", _T.SUCCEEDED, 42, 70, 220),
    ]
    found = compare(done, tasks, ["extract", "load"], Baselines(rows), after(500))
    assert (found.run.verdict, found.run.took_s, found.run.waited_s) == (
        Verdict.SLOWER,
        220.0,
        5.0,
    )
    assert [one.attempt.task for one in found.tasks] == ["load", "extract", "side"]
    load, extract, side = found.tasks
    assert (load.compared.difference_s, load.path_wait_s, load.effect_s) == (93.0, 28.0, 119.0)
    assert (extract.effect_s, extract.compared.verdict) == (1.0, Verdict.USUAL)
    assert (side.path_wait_s, side.effect_s) == (None, None)
    assert side.compared.verdict is Verdict.SLOWER
    effects = sum(one.effect_s or 0.0 for one in found.tasks)
    assert effects == found.run.took_s - 100.0 if found.run.took_s else False


def test_sentence_says_what_took_longer() -> None:
    causes = [("load", 300.0), ("waits", 60.0), ("extract", -10.0), ("tiny", 3.0)]
    said = sentence(17, 840.0, 480.0, Verdict.SLOWER, when_of(0, 2), causes)
    assert said == (
        "Run 17 took 14m 00s, 6m 00s longer than usual (8m 00s on Mondays at 02): "
        "load +5m 00s, waits +1m 00s"
    )
    less = sentence(17, 240.0, 480.0, Verdict.FASTER, when_of(-1, -1), [("load", -200.0)])
    assert less == "Run 17 took 4m 00s, 4m 00s less than usual (8m 00s): load -3m 20s"
    usual = sentence(17, 481.0, 480.0, Verdict.USUAL, when_of(-1, 2), [])
    assert usual == "Run 17 took 8m 01s, as usual (8m 00s at 02)"
    open_ = sentence(17, 840.0, 480.0, Verdict.SLOWER, "", [], is_open=True)
    assert open_.startswith("Run 17 has been running for 14m 00s, 6m 00s longer")
    assert "nothing is known" in sentence(17, 1.0, None, Verdict.UNKNOWN, "", [])
    assert sentence(17, None, 480.0, Verdict.UNKNOWN, "", []) == "Run 17 has not begun to work"


# -- expected ends --------------------------------------------------------------------------------

CHAIN = {"a": (), "b": ("a",), "c": ("b",)}
KNOWN = Baselines(
    [
        baseline("", 100.0, late_after_s=180.0),
        baseline("a", 20.0, wait_p50_s=0.0),
        baseline("b", 30.0, wait_p50_s=5.0),
        baseline("c", 40.0, wait_p50_s=0.0),
        baseline("long", 500.0, wait_p50_s=0.0),
    ]
)


def test_run_is_expected_to_end_as_those_before_it() -> None:
    found = expectation.of_run(run(), KNOWN, after(10))
    assert (found.end_at, found.late_after_at) == (after(100), after(180))
    assert found.basis is Basis.RUN
    overdue = expectation.of_run(run(), KNOWN, after(500))
    assert overdue.end_at is not None
    assert after(500) < overdue.end_at < after(530), "later than now, and not much"
    assert expectation.of_run(run(), Baselines(), after(10)) == expectation.NOTHING


def test_nothing_is_expected_of_what_is_held_has_not_begun_or_has_ended() -> None:
    held = expectation.of_run(run(_W.PAUSED), KNOWN, after(10))
    assert (held.end_at, held.late_after_at) == (None, after(180))
    queued = run(_W.QUEUED, started_at=None)
    ended = run(_W.SUCCEEDED, finished_at=after(5))
    for one in (queued, ended):
        assert expectation.of_run(one, KNOWN, after(10)) == expectation.NOTHING
        assert expectation.of_tasks(one, CHAIN, {}, KNOWN, after(10)) == expectation.NOTHING
    assert expectation.of_tasks(run(_W.PAUSED), CHAIN, {}, KNOWN, after(10)).end_at is None


def test_open_tasks_tell_the_end_along_the_longest_way() -> None:
    tasks = newest(
        attempt("a", _T.SUCCEEDED, 0, 0, 50),  # it was slow: 30 s behind
        attempt("b", _T.RUNNING, 50, 52),
        attempt("c", _T.WAITING),
    )
    found = expectation.of_tasks(run(), CHAIN, tasks, KNOWN, after(60))
    assert (found.end_at, found.basis) == (after(52 + 30 + 40), Basis.TASKS)
    assert found.late_after_at == after(180)
    slow = expectation.of_tasks(run(), CHAIN, tasks, KNOWN, after(90))
    assert slow.end_at is not None
    assert after(90 + 40) < slow.end_at < after(95 + 40), "what is slow goes on for a while"
    queued = {**tasks, "b": attempt("b", _T.QUEUED, 50)}
    assert expectation.of_tasks(run(), CHAIN, queued, KNOWN, after(52)).end_at == after(
        50 + 5 + 30 + 40
    )
    waiting = {**tasks, "b": attempt("b", _T.WAITING)}
    assert expectation.of_tasks(run(), CHAIN, waiting, KNOWN, after(60)).end_at == after(
        60 + 5 + 30 + 40
    )
    both = {**CHAIN, "long": ("a",)}
    side = {**tasks, "long": attempt("long", _T.RUNNING, 50, 51)}
    assert expectation.of_tasks(run(), both, side, KNOWN, after(60)).end_at == after(551)


def test_delay_and_what_will_not_run_are_taken_into_account() -> None:
    tasks = newest(
        attempt("a", _T.SUCCEEDED, 0, 0, 20),
        attempt("b", _T.UP_FOR_RETRY, 20, 25, due_at=after(300)),
        attempt("c", _T.WAITING),
    )
    found = expectation.of_tasks(run(), CHAIN, tasks, KNOWN, after(60))
    assert found.end_at == after(300 + 5 + 30 + 40)
    skipped = {**tasks, "b": attempt("b", _T.SKIPPED)}
    assert expectation.of_tasks(run(), CHAIN, skipped, KNOWN, after(60)).end_at == after(60 + 40)


def test_where_an_open_task_has_no_past_the_runs_before_tell_the_end() -> None:
    tasks = newest(
        attempt("a", _T.RUNNING, 0, 0), attempt("new", _T.WAITING), attempt("b", _T.WAITING)
    )
    plan = {"a": (), "new": ("a",), "b": ("new",)}
    found = expectation.of_tasks(run(), plan, tasks, KNOWN, after(10))
    assert (found.end_at, found.basis) == (after(100), Basis.RUN)
    done = {**tasks, "new": attempt("new", _T.SUCCEEDED, 0, 0, 30)}
    assert expectation.of_tasks(run(), plan, done, KNOWN, after(60)).basis is Basis.TASKS


def test_findings_say_what_is_expected_and_what_is_late() -> None:
    found = expectation.of_run(run(), KNOWN, after(60))
    [said] = expectation.findings(found, after(60))
    assert said.code is Code.RUN_EXPECTED
    assert said.text == "usually takes 1m 40s; expected to end at 2026-02-02T02:01:40+00:00"
    assert not said.waits
    late = expectation.of_run(run(), KNOWN, after(240))
    _, second = expectation.findings(late, after(240))
    assert second.code is Code.RUN_SLOWER
    assert second.arguments == {"since": after(180).isoformat(), "by_s": 60.0}
    assert second.text.startswith("later than usual by 1m 00s")
    assert list(expectation.findings(expectation.NOTHING, after(5))) == []


def made_history(chance: random.Random) -> tuple[Baselines, list[list[float]]]:
    """Baselines of 60 runs of a chain of three tasks, and 200 more runs to predict.

    Durations are log-normal, as those of real tasks: the medians are 60, 120 and 300 s.
    """

    def durations() -> list[float]:
        return [middle * chance.lognormvariate(0, 0.5) for middle in (60, 120, 300)]

    past = [durations() for _ in range(60)]
    values = {"": [sum(one) for one in past]}
    values |= {task: [one[place] for one in past] for place, task in enumerate(CHAIN)}
    rows = [
        baseline(task, median(took), p95_s=quantiles(took, n=20)[-1], wait_p50_s=0.0)
        for task, took in values.items()
    ]
    return Baselines(rows), [durations() for _ in range(200)]


def test_error_of_expected_ends(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a made history: as a run proceeds its tasks tell the end better than its past."""
    histories = [made_history(random.Random(seed)) for seed in range(5)]
    errors: dict[tuple[float, Basis], list[float]] = {}
    for known, durations in ((known, one) for known, runs in histories for one in runs):
        total = sum(durations)
        for share in (0.0, 0.25, 0.5, 0.75):
            now = share * total
            ends = [sum(durations[: place + 1]) for place in range(3)]
            tasks = newest(*(_at(task, place, ends, now) for place, task in enumerate(CHAIN)))
            by_tasks = expectation.of_tasks(run(), CHAIN, tasks, known, after(now))
            by_run = expectation.of_run(run(), known, after(now))
            for one in (by_tasks, by_run):
                assert one.end_at is not None
                assert one.basis is not None
                assert one.end_at >= after(now)
                error = abs((one.end_at - after(total)).total_seconds()) / total
                errors.setdefault((share, one.basis), []).append(error)
    of = {key: median(values) for key, values in errors.items()}
    with capsys.disabled():
        shown = ", ".join(
            f"{share:.0%}: {of[share, Basis.TASKS]:.1%} ({of[share, Basis.RUN]:.1%} by runs)"
            for share in (0.0, 0.25, 0.5, 0.75)
        )
        said = "median error of expected ends when so much of a run is over"
        print(f"\n{said}: {shown}")  # noqa: T201 - a figure
    assert of[0.0, Basis.TASKS] < 0.25
    for share in (0.25, 0.5, 0.75):
        assert of[share, Basis.TASKS] < of[share, Basis.RUN], share
    assert of[0.75, Basis.TASKS] < 0.15


def _at(task: str, place: int, ends: Sequence[float], now: float) -> TaskInstance:
    start = ends[place - 1] if place else 0.0
    if now >= ends[place]:
        return attempt(task, _T.SUCCEEDED, start, start, ends[place])
    if now >= start:
        return attempt(task, _T.RUNNING, start, start)
    return attempt(task, _T.WAITING)


def test_what_goes_on_lasts_as_the_median_of_what_took_longer() -> None:
    """Against a simulation: of log-normal durations those beyond the time that has gone by."""
    chance = random.Random(3)
    spread = 0.6
    some = sorted(100 * chance.lognormvariate(0, spread) for _ in range(200_000))
    p95 = 100 * math.exp(spread * NormalDist().inv_cdf(0.95))
    usual = Baseline(-1, -1, 30, 100.0, p95, 10.0, 300.0)
    for elapsed in (0.0, 30.0, 100.0, 200.0, 400.0):
        longer = median(one for one in some if one >= elapsed)
        assert expectation.lasting_s(usual, elapsed) == pytest.approx(longer, rel=0.02)
    for elapsed in (1e4, 1e9):
        assert elapsed < expectation.lasting_s(usual, elapsed) < 2 * elapsed
    same = usual._replace(p95_s=100.0)
    assert expectation.lasting_s(same, 30.0) == 100.0
    assert expectation.lasting_s(same, 130.0) == 130.0
    assert expectation.lasting_s(usual._replace(p50_s=0.0), 3.0) == 3.0


def test_open_states_are_all_told_of() -> None:
    """Each state of an open task gives a time: none is forgotten."""
    for state in set(TaskState) - FINISHED_TASK:
        tasks = newest(
            replace(attempt("a", state), started_at=MONDAY, queued_at=MONDAY),
            attempt("b", _T.WAITING),
            attempt("c", _T.WAITING),
        )
        found = expectation.of_tasks(run(), CHAIN, tasks, KNOWN, after(1))
        assert found.end_at is not None
        assert found.end_at > after(70), state
