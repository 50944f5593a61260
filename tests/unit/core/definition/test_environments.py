"""What an environment may be, which task runs in which, and what a definition may say of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.environments import (
    LARGEST_SETUP,
    LONGEST_VALUE,
    EnvironmentSpec,
    allows,
    findings,
    name_problem,
)
from shoal.core.definition.model import WorkflowSpec
from shoal.runtime.plugins import check_definition, environment_named


def wrong(**fields: Any) -> list[tuple[str, str]]:
    return list(findings(EnvironmentSpec.model_validate(fields)))


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"variables": {"SHOAL_TASK": "x"}}, "variables.SHOAL_TASK", "is set by Shoal"),
        ({"variables": {"TMPDIR": "/tmp"}}, "variables.TMPDIR", "is set by Shoal"),
        ({"variables": {"a-b": "x"}}, "variables.a-b", "is not a name of a variable"),
        ({"variables": {"A": "a\0b"}}, "variables.A", "NUL"),
        ({"variables": {"A": "é" * (LONGEST_VALUE // 2 + 1)}}, "variables.A", "32,770 bytes"),
        ({"variables": {"A": "x ${secret.token}"}}, "variables.A", "names a secret"),
        (
            {"variables": {"VIRTUAL_ENV": "/x"}, "python": "/x"},
            "variables.VIRTUAL_ENV",
            "follows from `python`",
        ),
        (
            {"variables": {f"V{n}": "x" * 32_000 for n in range(5)}},
            "variables",
            "at most 131,072 are allowed",
        ),
        ({"python": "venv"}, "python", "absolute path"),
        ({"python": "~/venv"}, "python", "absolute path"),
        ({"python": "/opt/../etc"}, "python", "absolute path"),
        ({"python": "/opt/a:b"}, "python", "colon"),
        ({"python": "/opt/a\nb"}, "python", "control character"),
        ({"setup": "export A=1\r\n"}, "setup", "carriage return"),
        ({"setup": "a\0b"}, "setup", "NUL"),
        ({"setup": "#" * (LARGEST_SETUP + 1)}, "setup", "65,537 bytes"),
        ({"worker_groups": ["a", "b", "a"]}, "worker_groups[2]", "twice"),
        ({"description": "a\x1b[2J"}, "description", "control character"),
    ],
)
def test_what_is_wrong_is_told_with_its_field(
    fields: dict[str, Any], field: str, words: str
) -> None:
    [(where, said)] = wrong(**fields)
    assert where == field
    assert words in said


def test_word_of_the_administrator_is_taken() -> None:
    """Also what loaders and interpreters are steered by, and texts that look like placeholders."""
    variables = {"LD_PRELOAD": "/x.so", "PATH": "/x", "PYTHONPATH": "/y", "A": "${b} $[yyyy]"}
    assert wrong(variables=variables, python="/opt/venv", setup="a\nb", description="a\nb") == []
    assert wrong(variables={"VIRTUAL_ENV": "/x"}) == []


@pytest.mark.parametrize("fields", [{"variables": {"A": 1}}, {"oops": 1}, {"worker_groups": ["/"]}])
def test_other_shapes_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EnvironmentSpec.model_validate(fields)


@pytest.mark.parametrize(("name", "fits"), [("ml", True), ("a.b-1", True), ("none", False)])
def test_names(name: str, fits: bool) -> None:
    assert (name_problem(name) is None) is fits
    assert name_problem("None") is not None
    assert name_problem("a/b") is not None


def test_no_groups_are_all_groups() -> None:
    assert allows((), "gpu")
    assert allows(("cpu", "gpu"), "gpu")
    assert not allows(("cpu",), "gpu")


def definition(
    task: str | None = None, default: str | None = None, kind: str = "SHELL", **params: Any
) -> dict[str, Any]:
    made: dict[str, Any] = {"name": "a", "type": kind, "params": params or {"script": "true"}}
    made |= {"environment": task} if task is not None else {}
    whole: dict[str, Any] = {"name": "w", "tasks": [made]}
    return whole | ({"environment": default} if default is not None else {})


SQL = {"kind": "SQL", "data_source": "wh", "sql": "SELECT 1"}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, None),
        ({"default": "ml"}, "ml"),
        ({"task": "gis"}, "gis"),
        ({"task": "gis", "default": "ml"}, "gis"),
        ({"task": "none", "default": "ml"}, None),
        ({"task": "none"}, None),
        ({"default": "ml", "kind": "PYTHON"}, "ml"),
        ({"default": "ml", "kind": "SPARK", "script": "print()"}, "ml"),
        ({"default": "ml", "kind": "MR", "jar": "a.jar"}, "ml"),
        ({"default": "ml", **SQL}, None),
        ({"default": "ml", "kind": "SUB_WORKFLOW", "workflow": "x"}, None),
    ],
)
def test_task_runs_in_its_own_environment_else_in_the_workflows(
    fields: dict[str, Any], found: str | None
) -> None:
    spec = check_definition({"project": "p", **definition(**fields)})
    [task] = spec.tasks
    assert environment_named(spec, task) == found
    assert WorkflowSpec.model_validate(spec.canonical()).digest() is not None


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"task": "ml", **SQL}, "tasks[0].environment", "tasks of the type SQL start no program"),
        (
            {"task": "ml", "kind": "SUB_WORKFLOW", "workflow": "x"},
            "tasks[0].environment",
            "start no program",
        ),
        ({"default": "none"}, "environment", "is for tasks"),
        ({"task": "a/b"}, "tasks[0].environment", "is not a valid name"),
        ({"default": ""}, "environment", "is not a valid name"),
    ],
)
def test_what_a_definition_may_not_say(fields: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        check_definition({"project": "p", **definition(**fields)})
    [problem] = refused.value.problems
    assert problem.field == field
    assert words in problem.message


def test_task_that_needs_none_may_say_so_whatever_its_type() -> None:
    check_definition({"project": "p", **definition(task="none", **SQL)})
