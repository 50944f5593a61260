"""Decisions about more attempts than allowed are refused, whole, and can be made elsewhere."""

from typing import Any

import pytest

from shoal.core.decide import LongDecision, decide
from shoal.core.runs.events import TaskEnded
from shoal.core.runs.run import Run
from shoal.core.runs.states import TaskSignal, TaskState
from tests.unit.core.decide.driving import START, Driver, spec

TASKS = 20


def fan(**fields: object) -> Driver:
    """A run whose first task is held by a worker, with all others behind it."""
    behind = {f"t{number}": {"depends_on": ["first"]} for number in range(TASKS)}
    driver = Driver(spec({"first": {}, **behind}, **fields))
    driver.claim("first")
    return driver


def end_of_first(run: Run, signal: TaskSignal = TaskSignal.SUCCEED) -> TaskEnded:
    attempt = run.attempts["first"]
    assert attempt.id is not None
    return TaskEnded(attempt.id, signal, START, attempt.worker)


@pytest.mark.parametrize("signal", [TaskSignal.SUCCEED, TaskSignal.FAIL])
def test_end_of_one_task_that_changes_many_is_refused(signal: TaskSignal) -> None:
    run = fan().run
    before = dict(run.attempts)
    with pytest.raises(LongDecision):
        decide(run, end_of_first(run, signal), TASKS)
    assert run.attempts == before


def test_what_is_allowed_is_decided_as_without_a_limit() -> None:
    run = fan().run
    event = end_of_first(run)
    decision = decide(run, event, TASKS + 1)
    assert len(decision.attempts) == TASKS + 1
    assert decision == decide(run, event)


def test_chain_that_is_skipped_behind_a_failure_counts_as_well() -> None:
    tasks = {"first": {}, "t0": {"depends_on": ["first"]}}
    tasks |= {f"t{n}": {"depends_on": [f"t{n - 1}"]} for n in range(1, TASKS)}
    driver = Driver(spec(tasks))
    driver.claim("first")
    event = end_of_first(driver.run, TaskSignal.FAIL)
    with pytest.raises(LongDecision):
        decide(driver.run, event, TASKS)
    skipped = decide(driver.run, event).attempts.values()
    assert sum(one.state is TaskState.SKIPPED for one in skipped) == TASKS


def test_decision_that_only_looks_at_many_is_refused() -> None:
    """Each task behind is judged, though none of them may start yet."""
    tasks: dict[str, dict[str, Any]] = {"first": {}, "second": {}}
    tasks |= {f"t{number}": {"depends_on": ["first", "second"]} for number in range(TASKS)}
    driver = Driver(spec(tasks))
    driver.claim("first")
    event = end_of_first(driver.run)
    with pytest.raises(LongDecision):
        decide(driver.run, event, TASKS)
    assert len(decide(driver.run, event).attempts) == 1


LONG_TEXT = "${x}" * 20_000


def test_long_text_of_a_task_of_the_master_is_decided_elsewhere() -> None:
    tasks: dict[str, dict[str, Any]] = {
        "first": {},
        "choose": {
            "type": "SWITCH",
            "params": {"cases": [{"when": "words == ''", "then": ["t"]}]},
            "parameters": {"words": LONG_TEXT, "x": ""},
            "depends_on": ["first"],
        },
        "t": {"depends_on": ["choose"]},
    }
    driver = Driver(spec(tasks))
    driver.claim("first")
    event = end_of_first(driver.run)
    with pytest.raises(LongDecision):
        decide(driver.run, event, TASKS)
    assert decide(driver.run, event).attempts["choose", 1].state is TaskState.SUCCEEDED


def test_parameter_that_a_switch_does_not_name_is_not_rendered() -> None:
    tasks: dict[str, dict[str, Any]] = {
        "first": {},
        "choose": {
            "type": "SWITCH",
            "params": {"cases": [{"when": "x == 'y'", "then": ["t"]}]},
            "parameters": {"words": LONG_TEXT, "bad": "$[no date", "x": "y"},
            "depends_on": ["first"],
        },
        "t": {"depends_on": ["choose"]},
    }
    driver = Driver(spec(tasks))
    driver.claim("first")
    decision = decide(driver.run, end_of_first(driver.run), TASKS)
    assert decision.attempts["choose", 1].state is TaskState.SUCCEEDED


def test_switch_whose_parameter_is_over_the_budget_fails_and_names_it() -> None:
    tasks: dict[str, dict[str, Any]] = {
        "choose": {
            "type": "SWITCH",
            "params": {"cases": [{"when": "words == ''", "then": ["t"]}]},
            "parameters": {"words": "${" * 300_000},
        },
        "t": {"depends_on": ["choose"]},
    }
    attempt = Driver(spec(tasks)).run.attempts["choose"]
    assert attempt.state is TaskState.FAILED
    assert "value of parameter 'words'" in (attempt.reason or "")
