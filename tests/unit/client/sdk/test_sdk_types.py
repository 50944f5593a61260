"""A wrong type anywhere in a definition ends in one line at the author's own line."""

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import shoal.client as sdk
from shoal.client.sdk.workflow import TaskOptions, WorkflowOptions
from shoal.client.sources.definitions import load_definitions
from shoal.client.sources.python_file import read_python
from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from tests.support.length import share

# What each call needs; the argument under test is put in its place.
CALLS = {
    "Workflow": {"name": "'other'"},
    "Parameter": {"default": "'x'"},
    "Schedule": {"cron": "'0 0 * * *'"},
    "Task": {"name": "'t'", "type": "'SHELL'", "params": "{'script': 'true'}"},
    "Shell": {"name": "'t'", "script": "'true'"},
    "Python": {"name": "'t'", "script": "'pass'"},
    "Spark": {"name": "'t'", "script": "'pass'"},
    "Conditions": {"name": "'t'", "when": "ended('a')", "then": "'b'", "depends_on": "'a'"},
    "Switch": {"name": "'t'", "cases": "{'1 == 1': 'b'}"},
    "SubWorkflow": {"name": "'t'", "runs": "'other'"},
    "Map": {"name": "'t'", "runs": "'other'", "items": "[1]"},
    "Dependent": {"name": "'t'", "when": "ran('other', 'today')"},
    "ended": {"task": "'a'"},
    "ran": {"workflow": "'other'", "date": "'today'"},
    "none_of": {"condition": "ended('a')"},
    "python_task": {"name": "'t'"},
}
VALUES = {
    "number": "5",
    "fraction": "-0.5",
    "truth": "True",
    "text": "'\\n x'",
    "bytes": "b'x'",
    "object": "object()",
    "type": "int",
    "function": "lambda: 1",
    "list of objects": "[object()]",
    "list of mappings": "[{'cron': '0 0 * * *'}]",
    "list of numbers": "[1, None]",
    "set": "{1, 'a'}",
    "mapping": "{'cron': '0 0 * * *'}",
    "mapping of objects": "{'a': object()}",
    "mapping of numbers": "{1: 2}",
    "holds itself": "CIRCLE",
    "spiteful": "Spiteful()",
}
HEAD = """\
from shoal.client import *

CIRCLE = []
CIRCLE.append(CIRCLE)

class Spiteful:
    def __repr__(self): raise ValueError("no")
    def __eq__(self, other): raise ValueError("no")
    __hash__ = None

with Workflow("w") as w:
    Shell("a", script="true")
    Shell("b", script="true", depends_on="a")
"""
LINE = HEAD.count("\n") + 1
SHARE = share(1, 4)


def arguments(call: str) -> Iterator[str]:
    """Every argument of a function of the SDK by its name, options included."""
    options: dict[str, Any] = {"Workflow": WorkflowOptions}
    for name, parameter in inspect.signature(getattr(sdk, call)).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            yield name
    if call not in ("Parameter", "Schedule", "ended", "ran", "none_of"):
        yield from options.get(call, TaskOptions).__annotations__


CASES = [(call, name) for call in CALLS for name in dict.fromkeys(arguments(call))]


def written(call: str, given: dict[str, str]) -> str:
    shown = ", ".join(f"{name}={value}" for name, value in given.items())
    if call == "python_task":
        shown = shown.replace("function=", "")
        return (
            f"    python_task({shown})(lambda: 1)\n"
            if "lambda" in shown
            else (f"    made = python_task({shown})\n")
        )
    return f"    made = {call}({shown})\n"


def invalid(file: Path) -> Sequence[DefinitionProblem]:
    """What the check of the definition finds, which every kind of file goes through."""
    try:
        load_definitions([file])
    except InvalidDefinition as error:
        return error.problems
    return ()


def test_wrong_types_are_told_at_the_line_of_the_call(tmp_path: Path) -> None:
    file = tmp_path / "definition.py"
    # A short run tries each value at every fourth argument.
    cases = [
        (call, argument, kind)
        for number, (call, argument) in enumerate(CASES)
        for kind in list(VALUES)[number % SHARE :: SHARE]
    ]
    for call, argument, kind in cases:
        file.write_text(HEAD + written(call, {**CALLS[call], argument: VALUES[kind]}))
        problems: list[DefinitionProblem] = []
        read_python(file, problems)
        for problem in problems:
            where = f"{call}({argument}={kind}): {problem}"
            assert (problem.file, problem.line) == (str(file), LINE), where
            assert "\n" not in problem.message, where
            assert not problem.message.startswith(("TypeError", "AttributeError")), where
        if not problems:
            told = invalid(file)
            assert {one.file for one in told} <= {str(file)}, (call, argument, kind, told)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            "Workflow('x', schedules=[{'cron': '0 0 * * *'}])",
            "Workflow: schedules[0] takes a Schedule(…) or text, "
            "not {'cron': '0 0 * * *'}, which is a dict",
        ),
        (
            "Workflow('x', schedules='0 0 * * *')",
            "Workflow: schedules takes a list, each of a Schedule(…) or text, "
            "not '0 0 * * *', which is a str",
        ),
        ("Shell('t', script=5)", "Shell: script takes text, not 5, which is an int"),
        (
            "Shell('t', script='true', parameters={'day': object})",
            "Shell: parameters['day'] takes text or a whole number or a number or True or False "
            "or a date, not <class 'object'>, which is a type",
        ),
        ("Shell(script='true')", "Shell: missing a required argument: 'name'"),
        (
            "Shell('t', script='true', retries='3')",
            "Shell: retries takes a whole number, not '3', which is a str",
        ),
    ],
)
def test_message_says_what_it_takes_and_what_it_was_given(
    call: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "definition.py"
    file.write_text(f"{HEAD}    made = {call}\n")
    problems: list[DefinitionProblem] = []
    assert read_python(file, problems) == []
    (problem,) = problems
    assert (problem.message, problem.file, problem.line) == (said, str(file), LINE)


def test_workflow_that_was_changed_in_vain_is_told_at_the_line_that_made_it(tmp_path: Path) -> None:
    file = tmp_path / "definition.py"
    file.write_text(f"{HEAD}    w.schedules.append({{}})\n")
    problems: list[DefinitionProblem] = []
    assert read_python(file, problems) == []
    assert [(one.file, one.line) for one in problems] == [(str(file), LINE - 3)]
