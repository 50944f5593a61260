"""The sliding window: what starts when, how a backfill ends, how it goes on."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.backfill.request import (
    ENDED_BACKFILL,
    BackfillRunState,
    BackfillSignal,
    BackfillState,
    next_backfill_state,
)
from shoal.core.backfill.window import BackfillRun, DayOutcome, WindowStep, follow, retried, window
from shoal.core.runs.commands import CommandState
from shoal.core.runs.states import FINISHED_WORKFLOW, WorkflowState

S, W = BackfillRunState, WorkflowState
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def free(_run: BackfillRun) -> Collection[int]:
    """Nothing waits for anything."""
    return ()


class Backfill:
    """A backfill whose instances a test moves by hand; every try is an instance of its own."""

    def __init__(
        self,
        count: int,
        parallel: int = 1,
        stop_after: int | None = None,
        waits_for: Callable[[BackfillRun], Collection[int]] = free,
    ) -> None:
        self.runs = [BackfillRun(n, 1, FIRST + timedelta(days=n)) for n in range(count)]
        self.outcomes: dict[int, DayOutcome] = {}
        self.state = BackfillState.RUNNING
        self.reason: str | None = None
        self.started: list[int] = []
        self.most = 0
        self._options: dict[str, Any] = {
            "parallel": parallel,
            "stop_after": stop_after,
            "waits_for": waits_for,
        }

    def step(self) -> WindowStep:
        outcomes = {r.position: self.outcomes[r.position] for r in self.of(S.STARTED)}
        step = window(self.state, self.runs, outcomes, **self._options)
        self._take(step.changed)
        for position in step.start:
            self.outcomes[position] = DayOutcome(CommandState.PENDING)
        self.started += step.start
        if step.state is not None:
            self.state, self.reason = step.state, step.reason
        self.most = max(self.most, len(self.of(S.STARTED)))
        return step

    def _take(self, changed: Mapping[int, BackfillRun]) -> None:
        self.runs = [changed.get(run.position, run) for run in self.runs]

    def of(self, state: BackfillRunState) -> list[BackfillRun]:
        return [run for run in self.runs if run.state is state]

    def instance(self, position: int, state: WorkflowState, reason: str | None = None) -> None:
        self.outcomes[position] = DayOutcome(
            CommandState.DONE, 100 + position, state, partition=0, reason=reason
        )

    def end(self, position: int, state: WorkflowState = W.SUCCEEDED) -> WindowStep:
        self.instance(position, state)
        return self.step()

    def signal(self, signal: BackfillSignal) -> None:
        self.state = next_backfill_state(self.state, signal)
        if signal is BackfillSignal.RETRY:
            self._take(retried(self.runs, self.outcomes))

    def is_in(self, state: BackfillState) -> bool:
        return self.state is state

    def counts(self) -> Counter[BackfillRunState]:
        return Counter(run.state for run in self.runs)


def test_the_next_date_starts_when_any_ends() -> None:
    backfill = Backfill(6, parallel=3)
    assert backfill.step().start == (0, 1, 2)
    assert backfill.step() == WindowStep()
    assert backfill.end(1).start == (3,)
    assert backfill.end(3).start == (4,)
    backfill.instance(0, W.SUCCEEDED)
    assert backfill.end(2).start == (5,)
    for position in (4, 5):
        backfill.end(position)
    assert (backfill.state, backfill.reason) == (BackfillState.SUCCEEDED, None)
    assert backfill.most == 3


def test_serial_complement_ends_with_the_first_failure() -> None:
    backfill = Backfill(4, parallel=1, stop_after=1)
    assert backfill.step().start == (0,)
    assert backfill.end(0).start == (1,)
    assert backfill.end(1, W.FAILED).start == ()
    assert backfill.is_in(BackfillState.FAILED)
    assert backfill.reason == "1 of 4 runs failed, 2 did not start"
    assert [run.state for run in backfill.runs] == [S.SUCCEEDED, S.FAILED, *[S.CANCELLED] * 2]
    assert backfill.runs[3].reason == "not started: the backfill stops after 1 failure"


def test_what_runs_when_it_stops_may_finish() -> None:
    backfill = Backfill(5, parallel=2, stop_after=1)
    backfill.step()
    backfill.end(0, W.FAILED)
    assert backfill.is_in(BackfillState.RUNNING)
    assert backfill.counts() == {S.FAILED: 1, S.STARTED: 1, S.CANCELLED: 3}
    backfill.end(1)
    assert backfill.is_in(BackfillState.FAILED)


def test_continue_runs_every_date() -> None:
    backfill = Backfill(3, parallel=1, stop_after=None)
    backfill.step()
    for position in range(3):
        backfill.end(position, W.FAILED)
    assert backfill.started == [0, 1, 2]
    assert (backfill.state, backfill.reason) == (BackfillState.FAILED, "3 of 3 runs failed")


def test_dates_that_are_left_out_count_as_done() -> None:
    backfill = Backfill(2)
    backfill.runs[0] = replace(backfill.runs[0], state=S.SKIPPED)
    assert backfill.step().start == (1,)
    backfill.end(1)
    assert backfill.is_in(BackfillState.SUCCEEDED)


def test_a_start_that_is_refused_fails_its_date_with_the_reason() -> None:
    backfill = Backfill(2, parallel=1)
    backfill.step()
    backfill.outcomes[0] = DayOutcome(CommandState.REFUSED, reason="no such parameter")
    assert backfill.step().start == (1,)
    assert backfill.runs[0].state is S.FAILED
    assert backfill.runs[0].reason == "could not be started: no such parameter"


def test_a_run_that_somebody_stops_has_failed() -> None:
    run = BackfillRun(0, 1, FIRST, S.STARTED, 1, 5)
    stopped = DayOutcome(CommandState.DONE, 9, W.STOPPED, 0)
    assert follow(run, stopped).state is S.FAILED
    assert follow(run, stopped, cancelling=True).state is S.CANCELLED


@pytest.mark.parametrize("state", sorted(set(W) - FINISHED_WORKFLOW))
def test_a_run_that_has_not_ended_holds_its_place(state: WorkflowState) -> None:
    backfill = Backfill(2)
    backfill.step()
    step = backfill.end(0, state)
    assert (step.start, backfill.runs[0].state) == ((), S.STARTED)
    assert backfill.runs[0].instance_id == 100


def test_pause_starts_nothing_and_lets_what_runs_finish() -> None:
    backfill = Backfill(4, parallel=2)
    backfill.step()
    backfill.signal(BackfillSignal.PAUSE)
    assert backfill.end(0).start == ()
    assert backfill.end(1).start == ()
    assert backfill.is_in(BackfillState.PAUSED)
    backfill.signal(BackfillSignal.RESUME)
    assert backfill.step().start == (2, 3)


def test_paused_with_nothing_left_it_ends() -> None:
    backfill = Backfill(1)
    backfill.step()
    backfill.signal(BackfillSignal.PAUSE)
    backfill.end(0)
    assert backfill.is_in(BackfillState.SUCCEEDED)


def test_cancel_starts_nothing_and_ends_when_what_runs_has_ended() -> None:
    backfill = Backfill(4, parallel=2)
    backfill.step()
    backfill.signal(BackfillSignal.CANCEL)
    backfill.step()
    assert backfill.is_in(BackfillState.CANCELLING)
    assert backfill.counts() == {S.STARTED: 2, S.CANCELLED: 2}
    backfill.end(0, W.STOPPED)
    backfill.end(1, W.SUCCEEDED)
    assert backfill.is_in(BackfillState.CANCELLED)
    assert backfill.counts() == {S.SUCCEEDED: 1, S.CANCELLED: 3}


def test_retry_runs_what_failed_and_what_never_started() -> None:
    backfill = Backfill(3, parallel=1, stop_after=1)
    backfill.step()
    backfill.end(0, W.FAILED)
    backfill.signal(BackfillSignal.RETRY)
    assert backfill.step().start == (0,)
    assert backfill.runs[0].tries == 2
    for position in range(3):
        backfill.end(position)
    assert backfill.is_in(BackfillState.SUCCEEDED)
    assert [run.tries for run in backfill.runs] == [2, 1, 1]


def test_retry_takes_what_was_recovered_in_the_meantime_as_it_is() -> None:
    backfill = Backfill(3, parallel=3)
    backfill.step()
    for position in range(3):
        backfill.end(position, W.FAILED)
    backfill.instance(0, W.SUCCEEDED)
    backfill.instance(1, W.RUNNING)
    backfill.signal(BackfillSignal.RETRY)
    assert [run.state for run in backfill.runs] == [S.SUCCEEDED, S.STARTED, S.WAITING]
    assert backfill.step().start == (2,)
    assert [run.tries for run in backfill.runs] == [1, 1, 2]


# -- dates that wait for others --------------------------------------------------------------


def test_a_date_starts_only_after_those_it_depends_on_have_ended_well() -> None:
    backfill = Backfill(4, parallel=4, waits_for=lambda run: {1: [0], 3: [2]}.get(run.position, []))
    assert backfill.step().start == (0, 2)
    assert backfill.end(2).start == (3,)
    backfill.end(0, W.FAILED)
    assert backfill.runs[1].state is S.CANCELLED
    assert backfill.runs[1].reason == (
        "not started: it depends on number 0, for 2026-01-01T00:00:00Z, which did not succeed"
    )
    backfill.end(3)
    assert backfill.reason == "1 of 4 runs failed, 1 did not start"


def test_what_waits_for_a_later_place_does_not_block_it() -> None:
    backfill = Backfill(3, parallel=1, waits_for=lambda run: [run.position + 1][: 2 - run.position])
    for position in (2, 1, 0):
        assert backfill.step().start == (position,)
        backfill.instance(position, W.SUCCEEDED)
    backfill.step()
    assert backfill.is_in(BackfillState.SUCCEEDED)


def test_a_chain_behind_a_failure_is_given_up_whatever_its_order() -> None:
    backfill = Backfill(4, parallel=1, waits_for=lambda run: [run.position + 1][: 3 - run.position])
    assert backfill.step().start == (3,)
    backfill.end(3, W.FAILED)
    assert backfill.counts() == {S.FAILED: 1, S.CANCELLED: 3}
    assert backfill.is_in(BackfillState.FAILED)


def test_dates_that_wait_for_each_other_fail_in_words_instead_of_for_ever() -> None:
    backfill = Backfill(3, parallel=2, waits_for=lambda run: {0: [1], 1: [0]}.get(run.position, []))
    assert backfill.step().start == (2,)
    assert backfill.is_in(BackfillState.RUNNING)
    backfill.end(2)
    assert backfill.is_in(BackfillState.FAILED)
    assert "wait for each other" in (backfill.runs[0].reason or "")


# -- whatever happens ------------------------------------------------------------------------

MOVES = st.lists(
    st.tuples(
        st.sampled_from(
            ["end", "end", "end", "fail", "refuse", "step", "pause", "resume", "retry"]
        ),
        st.integers(0, 99),
    ),
    max_size=60,
)


@given(
    count=st.integers(1, 12),
    parallel=st.integers(1, 5),
    stop_after=st.none() | st.integers(1, 3),
    edges=st.sets(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=6),
    moves=MOVES,
)
@settings(deadline=None, max_examples=300)
def test_whatever_happens_the_window_holds_and_every_date_ends(
    count: int,
    parallel: int,
    stop_after: int | None,
    edges: set[tuple[int, int]],
    moves: list[tuple[str, int]],
) -> None:
    def waits_for(run: BackfillRun) -> list[int]:
        return [b for a, b in edges if a == run.position and b < count and a != b]

    backfill = Backfill(count, parallel, stop_after, waits_for)
    for move, number in moves:
        if backfill.state in ENDED_BACKFILL and move != "retry":
            break
        _move(backfill, move, number)
        _check(backfill, parallel, stop_after, waits_for)
    _drive_to_the_end(backfill)
    assert backfill.state in ENDED_BACKFILL
    assert not backfill.of(S.WAITING)
    assert not backfill.of(S.STARTED)
    ended_well = all(run.state is S.SUCCEEDED for run in backfill.runs)
    assert (backfill.state is BackfillState.SUCCEEDED) is ended_well


def _move(backfill: Backfill, move: str, number: int) -> None:
    started = backfill.of(S.STARTED)
    chosen = started[number % len(started)].position if started else None
    match move:
        case "end" | "fail" if chosen is not None:
            backfill.end(chosen, W.SUCCEEDED if move == "end" else W.FAILED)
        case "refuse" if chosen is not None:
            backfill.outcomes[chosen] = DayOutcome(CommandState.REFUSED, reason="no")
            backfill.step()
        case "pause" if backfill.state is BackfillState.RUNNING:
            backfill.signal(BackfillSignal.PAUSE)
        case "resume" if backfill.state is BackfillState.PAUSED:
            backfill.signal(BackfillSignal.RESUME)
        case "retry" if backfill.state not in (BackfillState.SUCCEEDED, BackfillState.CANCELLING):
            backfill.signal(BackfillSignal.RETRY)
            backfill.step()
        case "step" if backfill.state not in ENDED_BACKFILL:
            backfill.step()


def _check(
    backfill: Backfill,
    parallel: int,
    stop_after: int | None,
    waits_for: Callable[[BackfillRun], Collection[int]],
) -> None:
    assert backfill.most <= parallel
    tries = Counter(backfill.started)
    assert all(run.tries == tries[run.position] for run in backfill.runs)
    failed = len(backfill.of(S.FAILED))
    if stop_after is not None and failed >= stop_after and backfill.state in ENDED_BACKFILL:
        assert not backfill.of(S.WAITING)


def _drive_to_the_end(backfill: Backfill) -> None:
    if backfill.state is BackfillState.PAUSED:
        backfill.signal(BackfillSignal.RESUME)
    for _ in range(200):
        if backfill.state in ENDED_BACKFILL:
            return
        before = backfill.step()
        for run in backfill.of(S.STARTED):
            backfill.instance(run.position, W.SUCCEEDED)
        assert before.changed or backfill.of(S.STARTED) or backfill.state in ENDED_BACKFILL


@given(count=st.integers(1, 12), parallel=st.integers(1, 6), seed=st.randoms())
@settings(deadline=None)
def test_without_failures_dates_start_once_in_order_and_no_place_stays_empty(
    count: int, parallel: int, seed: Any
) -> None:
    backfill = Backfill(count, parallel)
    backfill.step()
    while backfill.state is BackfillState.RUNNING:
        left = len(backfill.of(S.WAITING)) + len(backfill.of(S.STARTED))
        assert len(backfill.of(S.STARTED)) == min(parallel, left)
        backfill.end(seed.choice(backfill.of(S.STARTED)).position)
    assert backfill.started == list(range(count))


@given(count=st.integers(1, 10), parallel=st.integers(1, 4), ended=st.sets(st.integers(0, 9)))
@settings(deadline=None)
def test_a_step_that_nobody_remembers_is_the_same_again(
    count: int, parallel: int, ended: set[int]
) -> None:
    """The step is computed from what is stored alone: without the commit it never was."""
    backfill = Backfill(count, parallel)
    backfill.step()
    for run in backfill.of(S.STARTED):
        if run.position in ended:
            backfill.instance(run.position, W.SUCCEEDED)
    before, outcomes, state = list(backfill.runs), dict(backfill.outcomes), backfill.state
    first = backfill.step()
    backfill.runs, backfill.outcomes, backfill.state = before, outcomes, state
    assert backfill.step() == first


@given(
    states=st.lists(st.sampled_from(list(S)), min_size=1, max_size=15),
    parallel=st.integers(1, 4),
    stop_after=st.none() | st.integers(1, 4),
    state=st.sampled_from([BackfillState.RUNNING, BackfillState.PAUSED]),
    ended=st.lists(st.sampled_from([None, W.SUCCEEDED, W.FAILED]), min_size=15, max_size=15),
)
@settings(deadline=None, max_examples=300)
def test_the_first_ones_and_how_many_others_there_are_say_the_same_as_all(
    states: list[BackfillRunState],
    parallel: int,
    stop_after: int | None,
    state: BackfillState,
    ended: list[WorkflowState | None],
) -> None:
    runs = [BackfillRun(n, 1, FIRST + timedelta(days=n), one) for n, one in enumerate(states)]
    outcomes = {
        run.position: DayOutcome(CommandState.DONE, 1, ended[run.position] or W.RUNNING, 0)
        for run in runs
        if run.state is S.STARTED
    }
    options: dict[str, Any] = {"parallel": parallel, "stop_after": stop_after, "waits_for": free}
    whole = window(state, runs, outcomes, **options)
    waiting = [run for run in runs if run.state is S.WAITING]
    failed = sum(run.state is S.FAILED for run in runs)
    failed += sum(outcome.instance is W.FAILED for outcome in outcomes.values())
    if stop_after is None or failed < stop_after:
        waiting = waiting[:parallel]
    seen = sorted(
        [*waiting, *(run for run in runs if run.state is S.STARTED)], key=lambda run: run.position
    )
    unseen = Counter(states) - Counter(run.state for run in seen)
    assert window(state, seen, outcomes, **options, unseen=unseen) == whole


def test_a_date_that_somebody_else_has_just_started_is_left_to_him() -> None:
    run = BackfillRun(0, 1, FIRST, S.STARTED, 1, 5)
    step = window(BackfillState.RUNNING, [run], {}, parallel=1, stop_after=None, waits_for=free)
    assert step == WindowStep()


def test_quarantined_run_takes_no_place_in_the_window() -> None:
    backfill = Backfill(3)
    backfill.step()
    stuck = DayOutcome(CommandState.DONE, 100, W.RUNNING, partition=0, is_quarantined=True)
    backfill.outcomes[0] = stuck
    assert backfill.step().start == (1,)
    # Repaired, it counts again: the next date waits for both.
    backfill.instance(0, W.RUNNING)
    assert backfill.end(1).start == ()
    assert backfill.end(0).start == (2,)
    # The last runs are stuck: the backfill has not ended.
    backfill.outcomes[2] = stuck
    assert backfill.step().state is None
