"""``decide`` against an independent reading of docs/semantics.md: thousands of random cases.

``SHOAL_TESTS_LONG=1`` tries five times as many; ``make model`` tries as many as you like.
"""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from shoal.core.decide import decide
from shoal.core.runs.events import Event
from shoal.core.runs.run import (
    Action,
    AskSlot,
    Attempt,
    Decision,
    Enqueue,
    Kill,
    Run,
    SkipCause,
    WakeAt,
    Watch,
    Withdraw,
)
from shoal.core.runs.states import WorkflowState
from shoal.runtime.plugins import check_definition
from tests.support.length import share
from tests.unit.core.decide.reference import world
from tests.unit.core.decide.reference.campaign import Tally, first_failing, run_cases
from tests.unit.core.decide.reference.cases import Case, as_written, random_case
from tests.unit.core.decide.reference.play import replay
from tests.unit.core.decide.reference.shrink import difference_of, shrink

SEED = 1
PORTIONS, PORTION = share(10, 2), 500
ENOUGH_TO_NOTICE = 400  # cases in which a fault of ``decide`` must show


@pytest.fixture(scope="module")
def total() -> Tally:
    """What the portions have come to so far."""
    return Tally()


@pytest.mark.parametrize("portion", range(PORTIONS))
def test_decide_and_the_reference_agree_after_every_event(portion: int, total: Tally) -> None:
    tally = run_cases(SEED, portion * PORTION, PORTION)
    total.add(tally)
    assert not tally.failing, "\n".join(tally.explain(SEED))


def test_the_cases_have_been_in_every_corner_of_the_semantics(total: Tally) -> None:
    missing = PORTIONS * PORTION - total.cases
    if missing:  # this test runs by itself
        total.add(run_cases(SEED, total.cases, missing))
    assert not total.empty_corners


def test_random_definitions_are_such_as_can_be_saved() -> None:
    dice = random.Random(SEED)
    for _ in range(300):
        check_definition(as_written(random_case(dice)))


def test_a_task_that_was_left_is_skipped_before_the_choices_behind_it_are_made() -> None:
    choice = {"task": "b", "is": "success"}
    definition = {
        "tasks": {
            "a": {
                "depends_on": [],
                "type": "SWITCH",
                "params": {"cases": [{"when": "nowhere == 1", "then": ["e"]}], "default": ["i"]},
            },
            "b": {"depends_on": ["a"]},
            "c": {
                "depends_on": ["b"],
                "type": "CONDITIONS",
                "params": {"when": choice, "then": ["e"], "else": []},
            },
            "e": {"depends_on": ["a", "c"], "run_when": "any_failed"},
            "f": {
                "depends_on": ["e"],
                "type": "CONDITIONS",
                "params": {"when": {"task": "e", "is": "success"}, "then": ["i"], "else": []},
            },
            "i": {"depends_on": ["a", "f"], "run_when": "any_failed"},
        }
    }
    ended = replay(Case(definition, None, admitted=True))
    assert ended.run.attempts["i"].skip_cause is SkipCause.BRANCH


def test_of_what_is_due_together_failures_come_before_starts() -> None:
    other = {"when": {"workflow": "other", "date": "today"}}
    definition = {
        "on_failure": "finish_running",
        "tasks": {
            "late": {"depends_on": [], "delay": 2},
            "over": {"depends_on": [], "type": "DEPENDENT", "params": other, "timeout": 4},
        },
    }
    ended = replay(Case(definition, None, admitted=True, moves=(("pass", 5),)))
    assert ended.run.attempts["late"].skip_cause is SkipCause.FAILING


def test_a_nested_instance_is_heard_while_its_task_waits_for_a_slot_after_a_pause() -> None:
    task = {
        "depends_on": [],
        "concurrency_group": "g",
        "type": "SUB_WORKFLOW",
        "params": {"workflow": "other"},
    }
    moves = (
        ("grant", 0),
        ("obey", 0, 0),
        ("request", "pause"),
        ("read", 0),
        ("obey", 0, 0),
        ("read", 0),
        ("live", 0, 0),  # somebody resumes it alone
        ("read", 0),
        ("live", 0, 3),  # and it fails
        ("request", "resume"),
        ("read", 0),
    )
    ended = replay(Case({"tasks": {"a": task}}, None, admitted=True, moves=moves))
    assert ended.run.state is WorkflowState.FAILED


def test_task_that_is_released_in_the_moment_of_a_failure_ends_when_its_instance_has() -> None:
    task = {"depends_on": [], "type": "SUB_WORKFLOW", "params": {"workflow": "other"}}
    moves = (
        ("obey", 84, 382),
        ("request", "pause"),
        ("obey", 54, 382),
        ("live", 2, 48),
        ("live", 63, 213),
    )
    definition = {"on_failure": "fail_fast", "tasks": {"c": task, "e": task}}
    ended = replay(Case(definition, None, admitted=True, moves=moves))
    states = {name: attempt.state for name, attempt in ended.run.attempts.items()}
    assert states == {"c": "FAILED", "e": "KILLED"}


# -- would a fault be noticed? -----------------------------------------------------------------


def _forget(kind: type[Action], decision: Decision) -> Decision:
    kept = tuple(action for action in decision.actions if not isinstance(action, kind))
    return replace(decision, actions=kept)


@pytest.mark.parametrize("kind", [Enqueue, Withdraw, Kill, WakeAt, AskSlot, Watch])
def test_an_action_that_is_forgotten_is_noticed(
    kind: type[Action], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "decide", lambda run, event: _forget(kind, decide(run, event)))
    assert first_failing(SEED, ENOUGH_TO_NOTICE)


def test_messages_that_are_forgotten_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(run: Run, event: Event) -> Decision:
        return replace(decide(run, event), messages=())

    monkeypatch.setattr(world, "decide", silent)
    assert first_failing(SEED, ENOUGH_TO_NOTICE)


def _another_cause(attempt: Attempt) -> Attempt:
    """What is behind a branch that was not taken counts as failed."""
    if attempt.skip_cause is SkipCause.BRANCH:
        return replace(attempt, skip_cause=SkipCause.UPSTREAM)
    return attempt


def _endless_retries(attempt: Attempt) -> Attempt:
    """Nobody counts the tries."""
    return replace(attempt, failures=0)


@pytest.mark.parametrize("spoil", [_another_cause, _endless_retries])
def test_a_result_that_is_wrong_is_noticed_and_cut_down_to_a_small_case(
    spoil: Callable[[Attempt], Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(run: Run, event: Event) -> Decision:
        decision = decide(run, event)
        attempts = {key: spoil(attempt) for key, attempt in decision.attempts.items()}
        return replace(decision, attempts=attempts)

    monkeypatch.setattr(world, "decide", spoilt)
    failing = first_failing(SEED, ENOUGH_TO_NOTICE)
    assert failing
    small = shrink(failing)
    assert difference_of(small)
    assert len(small.definition["tasks"]) <= 3
    assert len(small.moves) <= 6
