"""Choices, selections and tasks that do not take part, in examples."""

from typing import Any

import pytest

from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.selection import Selection, SelectionMode
from shoal.core.runs.run import SkipCause
from shoal.core.runs.states import TaskSignal, WorkflowState
from shoal.runtime.plugins import check_definition
from tests.unit.core.decide.driving import Driver, spec

FAIL = TaskSignal.FAIL
Tasks = dict[str, dict[str, Any]]


def causes(run: Driver) -> dict[str, SkipCause]:
    return {a.task: a.skip_cause for a in run.run.attempts.values() if a.skip_cause}


def conditions(when: dict[str, Any], then: list[str], otherwise: list[str]) -> dict[str, Any]:
    return {"type": "CONDITIONS", "params": {"when": when, "then": then, "else": otherwise}}


HANDLED: Tasks = {
    "a": {},
    "how": conditions({"task": "a", "is": "success"}, ["go"], ["mend"]) | {"depends_on": ["a"]},
    "go": {"depends_on": ["how"]},
    "mend": {"depends_on": ["how"]},
    "join": {"depends_on": ["go", "mend"]},
}


@pytest.mark.parametrize("strategy", ["continue", "fail_fast", "finish_running", "ignore"])
@pytest.mark.parametrize(
    ("signal", "taken", "left"), [("SUCCEED", "go", "mend"), ("FAIL", "mend", "go")]
)
def test_conditions_choose_by_results_and_handle_the_failure(
    strategy: str, signal: str, taken: str, left: str
) -> None:
    run = Driver(spec(HANDLED, on_failure=strategy))
    run.do("a", TaskSignal(signal))
    assert causes(run) == {left: SkipCause.BRANCH}
    run.do(taken)
    run.do("join")
    assert run.state() is WorkflowState.SUCCEEDED


def test_switch_chooses_by_parameters_and_outputs() -> None:
    tasks: Tasks = {
        "count": {},
        "how": {
            "type": "SWITCH",
            "depends_on": ["count"],
            "params": {
                "cases": [{"when": "number(rows) == 0", "then": "nothing"}],
                "default": "load",
            },
        },
        "nothing": {"depends_on": ["how"]},
        "load": {"depends_on": ["how"]},
        "after": {"depends_on": ["load"]},
    }
    run = Driver(spec(tasks))
    run.end_with("count", {"rows": "0"})
    assert causes(run) == {"load": SkipCause.BRANCH, "after": SkipCause.BRANCH}
    run.do("nothing")
    assert run.state() is WorkflowState.SUCCEEDED
    run = Driver(spec(tasks))
    run.end_with("count", {"rows": "5"})
    assert set(run.queue.values()) == {"load"}


def test_switch_that_cannot_be_evaluated_fails_with_the_reason() -> None:
    tasks: Tasks = {
        "how": {"type": "SWITCH", "params": {"cases": [{"when": "nowhere == 1", "then": "b"}]}},
        "b": {"depends_on": ["how"]},
    }
    run = Driver(spec(tasks))
    assert run.state() is WorkflowState.FAILED
    assert "nowhere" in (run.run.attempts["how"].reason or "")
    assert causes(run) == {"b": SkipCause.UPSTREAM}


def test_disabled_task_keeps_the_order_and_the_failures_that_lead_through_it() -> None:
    tasks: Tasks = {
        "a": {},
        "b": {"depends_on": ["a"], "enabled": False},
        "c": {"depends_on": ["b"]},
    }
    run = Driver(spec(tasks))
    assert set(run.queue.values()) == {"a"}, "c must not overtake a"
    run.do("a")
    assert causes(run) == {"b": SkipCause.DISABLED}
    run.do("c")
    assert run.state() is WorkflowState.SUCCEEDED
    run = Driver(spec(tasks))
    run.do("a", FAIL)
    assert causes(run) == {"b": SkipCause.UPSTREAM, "c": SkipCause.UPSTREAM}


@pytest.mark.parametrize(
    ("mode", "runs"),
    [
        (SelectionMode.ONLY, ["b"]),
        (SelectionMode.UPSTREAM, ["a", "b"]),
        (SelectionMode.DOWNSTREAM, ["b", "c"]),
    ],
)
def test_selection_runs_the_chosen_tasks_in_their_order(
    mode: SelectionMode, runs: list[str]
) -> None:
    tasks: Tasks = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["b"]}, "other": {}}
    run = Driver(spec(tasks), Selection(("b",), mode))
    for task in runs:
        assert set(run.queue.values()) == {task}
        run.do(task)
    assert run.state() is WorkflowState.SUCCEEDED
    assert set(causes(run).values()) == {SkipCause.NOT_SELECTED}
    assert set(causes(run)) == set(tasks) - set(runs)


@pytest.mark.parametrize(
    ("tasks", "field", "part"),
    [
        (HANDLED | {"go": {}}, "tasks[1].params", "'go' cannot be chosen"),
        (
            HANDLED
            | {"how": conditions({"task": "x", "is": "done"}, ["go"], []) | {"depends_on": ["a"]}},
            "tasks[1].params.when",
            "not a direct upstream",
        ),
        (HANDLED | {"how": HANDLED["how"] | {"retries": 2}}, "tasks[1].retries", "takes no time"),
        (
            HANDLED | {"how": HANDLED["how"] | {"run_when": "always"}},
            "tasks[1].run_when",
            "always waits",
        ),
        ({"a": {"run_when": "any_failed"}}, "tasks[0].run_when", "upstream"),
        (
            {"a": {"type": "SUB_WORKFLOW", "params": {"workflow": "w"}}},
            "tasks[0].params.workflow",
            "itself",
        ),
        (
            {"a": {"type": "MAP", "params": {"workflow": "v", "items": ["1"], "parallel": 0}}},
            "tasks[0].params.parallel",
            "greater than",
        ),
        (
            {"a": {"type": "DEPENDENT", "params": {"when": {"workflow": "v", "date": "todday"}}}},
            "tasks[0].params.when.date",
            "todday",
        ),
        (
            {
                "a": {"type": "SWITCH", "params": {"cases": [{"when": "1 +", "then": "b"}]}},
                "b": {"depends_on": ["a"]},
            },
            "tasks[0].params.cases[0].when",
            "invalid syntax",
        ),
    ],
)
def test_definitions_that_cannot_work_are_refused(
    tasks: dict[str, Any], field: str, part: str
) -> None:
    raw = {
        "name": "w",
        "tasks": [
            {"name": n, "type": "SHELL", "params": {"script": "true"}, **t}
            for n, t in tasks.items()
        ],
    }
    with pytest.raises(InvalidDefinition) as caught:
        check_definition(raw)
    found = {(p.field, p.message) for p in caught.value.problems}
    assert any(f == field and part in m for f, m in found), found
