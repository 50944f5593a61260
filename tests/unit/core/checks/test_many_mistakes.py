"""However many mistakes a text or a definition holds: what they cost and say is bounded."""

import difflib
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from shoal.core import hints
from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.core.definition.parameters import ParameterSpec, definition_problem, launch_problems
from shoal.core.hints import MOST_COMPARED, MOST_HINTS, MOST_MISTAKES, Hints
from shoal.core.macros import placeholders as macros
from shoal.runtime.plugins import check_definition
from tests.support.growth import keeps, shortest_s


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many names each search for a similar one has looked at."""
    found: list[int] = []
    search = difflib.get_close_matches

    def counted(name: str, known: list[str], n: int) -> list[str]:
        found.append(len(known))
        return search(name, known, n=n)

    monkeypatch.setattr(hints, "get_close_matches", counted)
    return found


def problems_of(tasks: list[dict[str, Any]]) -> list[DefinitionProblem]:
    shell = {"type": "SHELL", "params": {"script": "true"}}
    with pytest.raises(InvalidDefinition) as error:
        check_definition({"name": "w", "tasks": [shell | task for task in tasks]})
    assert len(str(error.value)) < 200_000
    return error.value.problems


def test_only_the_first_names_are_compared_with_others(compared: list[int]) -> None:
    one = Hints()
    known = [f"task-{n}" for n in range(5_000)]
    told = [one.of(f"tusk-{n}", known) for n in range(50)]
    assert told[0] == "; did you mean 'task-0'?"
    assert told[-1] == ""
    assert len(compared) <= MOST_HINTS
    assert sum(compared) <= MOST_COMPARED
    assert Hints().of("x" * 101, ["x" * 100]) == ""


def test_unknown_upstream_tasks_are_told_up_to_a_hundred(compared: list[int]) -> None:
    names = [f"t{n}" for n in range(400)]
    found = problems_of([{"name": name, "depends_on": [f"no-{name}"]} for name in names])
    assert len(found) == MOST_MISTAKES + 1
    assert found[-1].message == "and more than these 100"
    assert sum(compared) <= MOST_COMPARED


def test_upstream_tasks_have_a_limit() -> None:
    (found,) = problems_of([{"name": "a"}, {"name": "b", "depends_on": ["a"] * 40_000}])
    assert found.field == "tasks[1].depends_on"
    assert "names 40000 upstream tasks, at most 1000" in found.message
    twice = problems_of([{"name": "a"}, {"name": "b", "depends_on": ["a"] * 1_000}])
    assert len(twice) == MOST_MISTAKES + 1
    assert "twice" in twice[0].message


def test_tasks_have_a_limit() -> None:
    (found,) = problems_of([{"name": f"t{n}"} for n in range(10_001)])
    assert found.field == "tasks"


def test_long_names_are_not_repeated_in_answers() -> None:
    found = problems_of([{"name": "x" * 1_000_000, "depends_on": ["y" * 1_000_000]}] * 2)
    assert all(len(problem.message) < 1_000 for problem in found)


def test_mistakes_of_a_text_are_told_up_to_a_hundred() -> None:
    for text in ("$[x]" * 5_000, "$[ $[yyyy] ]" * 5_000, "$['" * 5_000):
        assert len(macros.check(text)) <= MOST_MISTAKES


def test_marks_that_stay_open_have_a_limit() -> None:
    (mistake,) = macros.check("${" * 600_000)
    assert "more than 150,000 placeholders and marks in one text" in mistake


def test_unknown_parameters_are_told_up_to_a_hundred_and_do_not_list_thousands() -> None:
    specs = {f"p{n}": ParameterSpec(default="") for n in range(5_000)}
    found = launch_problems(specs, {f"q{n}": "" for n in range(5_000)})
    assert len(found) == MOST_MISTAKES
    assert max(map(len, found.values())) < 500


@pytest.mark.parametrize(
    "text",
    ["$[x]", "$[yyyyMMdd] ", "${a", "$${", "${a}", "$[ $[x] ] ", "x\n$[no", "${$[x]", "]}'", "$['"],
)
def test_text_costs_as_much_as_it_is_long(text: str) -> None:
    """Sixteen times the text: quadratic work would cost 256 times as much."""
    small, large = (text * n for n in (4_000, 64_000))
    definition_problem("a", small)
    cost_s = shortest_s(lambda: definition_problem("a", small))
    assert keeps(90 * max(cost_s, 0.002), lambda: definition_problem("a", large))


def test_definition_costs_as_much_as_it_is_long() -> None:
    def work(count: int) -> Callable[[], object]:
        tasks = [{"name": f"t{n}", "depends_on": [f"u{n}"] * 9} for n in range(count)]
        return lambda: problems_of(tasks)

    assert keeps(90 * max(shortest_s(work(200)), 0.002), work(3_200))


def test_unknown_fields_beyond_those_that_are_told_cost_nothing() -> None:
    """pydantic makes an error of each, and holds the interpreter meanwhile."""
    shell = {"type": "SHELL", "params": {"script": "true"}}
    tasks = [{"name": f"t{n}", **shell} for n in range(2_000)]
    unknown = [task | {f"u{m}": 1 for m in range(50)} for task in tasks]
    rest = {f"w{m}": 1 for m in range(100_000)}

    def cost_s(**raw: Any) -> float:
        began_s = time.process_time()
        with suppress(InvalidDefinition):
            check_definition({"name": "w", **raw})
        return time.process_time() - began_s

    usual_s = min(cost_s(tasks=tasks) for _ in range(3))
    assert min(cost_s(tasks=unknown, **rest) for _ in range(3)) < 2 * usual_s + 0.05
    with pytest.raises(InvalidDefinition) as error:
        check_definition({"name": "w", "tasks": unknown})
    assert len(error.value.problems) == MOST_MISTAKES + 1
