"""Definitions with mistakes: all of them are reported at once, each at its place."""

from typing import Any, Literal

import pytest
from pydantic import Field

from shoal.core.checks.workflow import InvalidDefinition, check_workflow
from shoal.core.definition.fields import Priority
from shoal.core.definition.model import WorkflowSpec
from shoal.core.definition.parameters import ParameterType, check_value
from shoal.core.task_types import (
    Exit,
    LogicType,
    Script,
    TaskContext,
    TaskKind,
    TaskParams,
    TaskType,
)
from shoal.runtime.plugins import check_definition


def task(name: str, *upstream: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": "SHELL",
        "params": {"script": "true"},
        "depends_on": list(upstream),
        **fields,
    }


def problems(raw: Any) -> dict[str, str]:
    """Field to message of every problem in ``raw``."""
    with pytest.raises(InvalidDefinition) as caught:
        check_definition(raw)
    return {problem.field: problem.message for problem in caught.value.problems}


def test_good_definition_is_returned_with_its_durations_in_seconds() -> None:
    spec = check_definition(
        {
            "name": "w",
            "priority": "high",
            "tasks": [task("a", retry_delay="90s", timeout="2h", priority=0)],
        }
    )
    assert spec.tasks[0].retry_delay == 90
    assert spec.tasks[0].timeout == 7200
    assert (spec.priority, spec.tasks[0].priority) == (Priority.HIGH, Priority.HIGHEST)


def test_all_mistakes_are_reported_at_once() -> None:
    found = problems(
        {
            "name": "bad name!",
            "colour": "red",
            "timezone": "Mars/Olympus",
            "parameters": {"PATH": "x", "a": 1, "A": 2},
            "schedules": [{"cron": "61 * * * *"}],
            "tasks": [
                task("a", "c"),
                task("b", "a"),
                task("c", "b"),
                task("d", "bb"),
                task("a"),
                {"name": "e", "type": "SHEL", "params": {}},
                {"name": "f", "type": "SHELL", "params": {"scrip": "x"}, "timeout": "soon"},
                {"name": "g", "type": "SHELL", "params": {"script": "echo $[nonsense(]"}},
            ],
        }
    )
    assert "not a valid name" in found["name"]
    assert "tasks" not in found
    assert found["colour"] == "is not a known field"
    assert "Mars/Olympus" in found["timezone"]
    assert "reserved" in found["parameters.PATH"]
    assert "only in case" in found["parameters.A"]
    assert "61" in found["schedules[0]"]
    assert "a → b → c → a" in found["tasks[0].depends_on"]
    assert "did you mean 'b'" in found["tasks[3].depends_on[0]"]
    assert "tasks[0]" in found["tasks[4].name"]
    assert "SHELL" in found["tasks[5].type"]
    assert found["tasks[6].params.scrip"] == "is not a known field; did you mean 'script'?"
    assert "tasks[6].timeout" in found
    assert "tasks[7].params.script" in found


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        "text",
        3,
        {},
        {"name": "w"},
        {"name": "w", "tasks": []},
        {"name": "w", "tasks": [None]},
        {"name": "w", "tasks": {"a": 1}},
        {"name": "w", "tasks": [{"name": ["x"], "type": {}, "params": 3, "depends_on": 5}]},
        {"name": "w", "tasks": [task("a")], "parameters": [1], "schedules": "daily"},
    ],
)
def test_nonsense_is_reported_and_never_crashes(raw: Any) -> None:
    assert problems(raw)


def test_edge_named_twice_is_reported() -> None:
    found = problems({"name": "w", "tasks": [task("a"), task("b", "a", "a")]})
    assert "twice" in found["tasks[1].depends_on[1]"]


def test_canonical_form_and_digest_ignore_how_it_was_written() -> None:
    short = check_definition(
        {
            "name": "w",
            "parameters": {"x": 1, "day": "2024-01-01"},
            "tasks": [{"name": "a", "type": "SHELL", "params": {"script": "true"}}],
        }
    )
    long = check_definition(
        {
            "project": "default",
            "name": "w",
            "description": "",
            "parameters": {
                "x": {"default": "1"},
                "day": {"default": "2024-01-01", "type": "string"},
            },
            "tasks": [task("a", retries=0)],
        }
    )
    assert short.digest() == long.digest()
    assert WorkflowSpec.model_validate(short.canonical()) == short


def test_thousands_of_tasks_are_checked_quickly_and_too_many_refused() -> None:
    chain = [task(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(2000)]
    assert len(check_definition({"name": "w", "tasks": chain}).tasks) == 2000
    found = problems({"name": "w", "tasks": [task(f"t{n}") for n in range(20_001)]})
    assert "tasks" in found


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (ParameterType.INTEGER, "-3", "3.5"),
        (ParameterType.NUMBER, "1e3", "one"),
        (ParameterType.BOOLEAN, "true", "True"),
        (ParameterType.DATE, "2024-02-29", "2023-02-29"),
        (ParameterType.STRING, "", "a\0b"),
    ],
)
def test_values_are_checked_by_type(kind: ParameterType, good: str, bad: str) -> None:
    check_value(kind, good)
    with pytest.raises(ValueError, match="is no"):
        check_value(kind, bad)


def test_one_bad_field_of_the_only_task_is_one_problem() -> None:
    found = problems({"name": "w", "tasks": [task("a", retries="many")]})
    assert list(found) == ["tasks[0].retries"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("start", 2026, "2026 is not a day or time such as 2026-01-31"),
        ("start", "1767225600", "not a day or time"),
        ("start", "2026-01-01T00:00:00.5", "whole second"),
        ("end", "0999-01-01", "1970 to 2199"),
        ("exclude[0]", ["31.1.2026"], "not a day such as 2026-01-31"),
        ("exclude[0]", ["2026-02-30"], "outside expected range"),
        ("calendar", "a b", "not a valid name"),
        ("missed", "never", "not one of 'skip', 'last' or 'all'"),
        ("missed_window", "long", "duration"),
        ("on_gap", "first", "'shift' or 'skip'"),
        ("priority", "urgent", "one of HIGHEST"),
        ("cron", "0 " * 200, "255"),
    ],
)
def test_mistake_in_a_schedule_is_reported_with_its_field(
    field: str, value: object, message: str
) -> None:
    schedule = {"cron": "0 6 * * *", field.removesuffix("[0]"): value}
    found = problems({"name": "w", "tasks": [task("a")], "schedules": [schedule]})
    assert found.keys() == {f"schedules[0].{field}"}
    assert message in found[f"schedules[0].{field}"]


def test_bounds_of_a_schedule_are_compared_in_its_time_zone() -> None:
    def bounded(end: str, **schedule: str) -> dict[str, Any]:
        start = "2026-01-02T05:00+00:00"
        schedules = [{"cron": "0 6 * * *", "start": start, "end": end, **schedule}]
        return {
            "name": "w",
            "timezone": "Asia/Tokyo",
            "tasks": [task("a")],
            "schedules": schedules,
        }

    found = problems(bounded("2026-01-02T14:00"))
    assert "later than the start, 2026-01-02T05:00:00+00:00" in found["schedules[0].end"]
    check_definition(bounded("2026-01-02T14:01"))
    check_definition(bounded("2026-01-02T14:00", timezone="Europe/Berlin"))


def test_descriptions_hold_no_control_characters() -> None:
    task = {"name": "a", "type": "SHELL", "params": {"script": "true"}}
    fine = {"name": "w", "tasks": [task | {"description": "two\n\tlines"}]}
    assert check_definition(fine).tasks[0].description == "two\n\tlines"
    bad = {"name": "w", "description": "a\x1b[2J", "tasks": [task | {"description": "\x9b"}]}
    with pytest.raises(InvalidDefinition) as error:
        check_definition(bad)
    assert [problem.field for problem in error.value.problems] == [
        "description",
        "tasks[0].description",
    ]


class _Params(TaskParams):
    """Of a task type of somebody else, who has not thought of placeholders."""

    folder: str = Field(default="/", pattern="^/")
    level: int = Field(default=1, ge=1)
    mode: Literal["fast", "small"] = "fast"
    either: int | Literal["all"] = 1
    program: Script = Field(default="x", max_length=2)
    many: list[str] = Field(default_factory=list)


class _OnWorker(TaskType[_Params]):
    Params = _Params

    async def run(self, context: TaskContext, params: _Params) -> Exit:
        raise AssertionError


class _InMaster(LogicType[_Params]):
    Params = _Params


def _found_in(params: dict[str, Any], kind: type[TaskKind[Any]] = _OnWorker) -> dict[str, str]:
    raw = {"name": "w", "tasks": [{"name": "a", "type": "X", "params": params}]}
    try:
        check_workflow(raw, lambda _: kind)
    except InvalidDefinition as error:
        return {one.field.removeprefix("tasks[0].params."): one.message for one in error.problems}
    return {}


def test_values_that_are_still_to_be_rendered_are_judged_when_they_are() -> None:
    params = {"folder": "${f}/x", "level": "${n}", "mode": "$[yyyy]", "either": "${e}"}
    assert _found_in(params) == {}
    # Masters render no params.
    assert set(_found_in(params, _InMaster)) >= {"folder", "level", "mode"}


def test_what_placeholders_do_not_excuse() -> None:
    found = _found_in({"many": "${m}", "program": "${p}", "foldr": "${f}", "folder": "x"})
    assert set(found) == {"many", "program", "foldr", "folder"}
    assert found["folder"] == "'x' does not match ^/"
