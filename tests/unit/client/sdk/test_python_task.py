"""Functions as tasks: the script that a worker gets does what the function does."""
# ruff: noqa: T201  (printing is what the tasks of these tests are for)

import datetime as dt
import functools
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from shoal.client import AuthoringError, Parameter, Shell, Task, Workflow, python_task
from shoal.core.macros import placeholders as macros
from shoal.worker.supervisor.shim.outputs import collect
from tests.support.waiting import START_S

OUTSIDE = 3


def run(task: Task, parameters: Mapping[str, str], folder: Path) -> str:
    """Run a task's script as a worker would and return what it printed; "output" is its file."""
    given = folder / "parameters.json"
    given.write_text(json.dumps(dict(parameters)))
    base = dt.datetime(2013, 1, 15, tzinfo=dt.UTC)
    script = macros.render(task.params["script"], base=base, parameters={})
    done = subprocess.run(
        [sys.executable, "-I", "-c", script],
        env={"SHOAL_PARAMETERS": str(given), "SHOAL_OUTPUT": str(folder / "output")},
        capture_output=True,
        text=True,
        timeout=START_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_arguments_are_the_parameters_converted_by_annotation_or_declared_type(
    tmp_path: Path,
) -> None:
    parameters: dict[str, Any] = {
        "day": Parameter(type="date"),
        "count": Parameter(1, "integer"),
        "share": "0.5",
        "on": Parameter(True, "boolean"),
        "text": "x",
        "unused": "y",
    }
    with Workflow("w", parameters=parameters):

        @python_task
        def report(  # type: ignore[no-untyped-def]  # count is for its declared type
            day: dt.date,
            count,
            share: float,
            *,
            on: bool,
            text: "str | None",
            more: int = 7,
        ) -> None:
            print(repr([day, count, share, on, text, more]))

        task = report()
    given = {"day": "2013-02-03", "count": "4", "share": "0.25", "on": "false", "text": "a\n'b'"}
    printed = run(task, given, tmp_path)
    assert printed == "[datetime.date(2013, 2, 3), 4, 0.25, False, \"a\\n'b'\", 7]\n"


def test_fixed_arguments_are_written_into_the_script(tmp_path: Path) -> None:
    with Workflow("w", parameters={"a": "from the run"}) as w:

        @w.task(retries=2)
        def show(a: str, b: str, c: dt.date, d: float | None = None) -> None:
            print(a, b, c, d)

        first = show(b='it\'s "b"', c=dt.date(2013, 1, 2))
        second = show.named("again")(a="fixed", b="$[yyyy] ${a}", c=dt.date(2013, 1, 2), d=1.5)
    assert (first.options, second.name) == ({"retries": 2}, "again")
    assert run(first, {"a": "run"}, tmp_path) == 'run it\'s "b" 2013-01-02 None\n'
    assert run(second, {}, tmp_path) == "fixed $[yyyy] ${a} 2013-01-02 1.5\n"


def test_a_function_means_what_it_says_even_where_it_looks_like_a_date(tmp_path: Path) -> None:
    with Workflow("w") as w:

        @w.task
        def show() -> None:
            print("$[yyyy] $${x} ${system.biz.date} ${other}")

        task = show()
    w.spec()
    assert run(task, {}, tmp_path) == "$[yyyy] $${x} ${system.biz.date} ${other}\n"


def test_texts_of_several_lines_and_inner_functions_survive(tmp_path: Path) -> None:
    with Workflow("w"):

        @python_task
        def show() -> None:
            """Multi
            line."""
            import textwrap

            class Box:
                size = 2

                def double(self) -> int:
                    return self.size * 2

            def inner(n: int) -> list[int]:
                return [n * k for k in range(Box().double())]

            print(
                textwrap.dedent("  x"),
                inner(3),
                """
at the edge""",
            )

        task = show()
    assert run(task, {}, tmp_path) == "x [0, 3, 6, 9] \nat the edge\n"


def test_a_function_may_call_itself_and_stays_callable_for_tests(tmp_path: Path) -> None:
    with Workflow("w"):

        @python_task(name="fac")
        def factorial(n: int = 5) -> int:
            again: Any = factorial  # on the worker it is the function
            result = 1 if n < 2 else n * again(n - 1)
            print(result)
            return int(result)

        task = factorial()
    assert task.name == "fac"
    assert factorial.function(1) == 1
    assert run(task, {}, tmp_path).split() == ["1", "2", "6", "24", "120"]


def test_tasks_of_functions_join_like_all_others() -> None:
    with Workflow("w") as w:

        @python_task
        def a() -> None:
            pass

        @w.task
        def b() -> None:
            pass

        Shell("start", script="true") >> a() >> [b()]
    assert {name: list(task.upstream) for name, task in w.tasks.items()} == {
        "start": [],
        "a": ["start"],
        "b": ["a"],
    }


def _closure() -> Callable[..., Any]:
    secret = 3

    def f() -> None:
        print(secret)

    return f


def _global() -> Callable[..., Any]:
    def f() -> None:
        print(OUTSIDE, json)

    return f


def _global_in_inner() -> Callable[..., Any]:
    def f() -> None:
        def inner() -> int:
            return OUTSIDE

        inner()

    return f


def _default() -> Callable[..., Any]:
    def f(n: int = OUTSIDE) -> None:
        pass

    return f


def _decorated() -> Callable[..., Any]:
    @functools.wraps(print)
    @functools.cache
    def f() -> None:
        pass

    return f


def test_dict_that_a_function_returns_are_its_outputs(tmp_path: Path) -> None:
    with Workflow("w"):

        @python_task
        def give() -> dict[str, Any]:
            import datetime

            day = datetime.date(2026, 1, 31)
            return {"rows": 7, "text": 'a\n"ü"', "day": day, "list": [1, None], "on": True}

        @python_task
        def quiet() -> int:
            return 3

        gives, is_quiet = give(), quiet()

    assert run(is_quiet, {}, tmp_path) == ""
    assert not (tmp_path / "output").exists()
    run(gives, {}, tmp_path)
    found = collect(str(tmp_path / "output"), str(tmp_path / "none.log"), "")
    assert found == {
        "rows": "7",
        "text": 'a\n"ü"',
        "day": "2026-01-31",
        "list": "[1,null]",
        "on": "true",
    }


def test_arguments_may_be_parameters_of_the_task(tmp_path: Path) -> None:
    with Workflow("w", parameters={"share": Parameter(type="number")}):

        @python_task(parameters={"rows": "${rows}", "share": "0.25"})
        def take(rows: int, share) -> None:  # type: ignore[no-untyped-def]  # its declared type
            print(rows * share)

        takes = take()

    assert run(takes, {"rows": "8", "share": "0.25"}, tmp_path) == "2.0\n"


def _generator() -> Callable[..., Any]:
    def f() -> Any:
        yield 1

    return f


def _coroutine() -> Callable[..., Any]:
    async def f() -> None:
        pass

    return f


def _without_source() -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec("def f(): pass", names)
    return names["f"]  # type: ignore[no-any-return]  # made by exec


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_closure, r"f\(\) uses 'secret' from outside of itself"),
        (_global, r"f\(\) uses 'OUTSIDE', 'json' from outside of itself"),
        (_global_in_inner, r"f\(\) uses 'OUTSIDE'"),
        (_default, r"f\(\) uses 'OUTSIDE'"),
        (_decorated, "is not a function that def makes"),
        (_generator, r"f\(\) is async or a generator"),
        (_coroutine, r"f\(\) is async or a generator"),
        (_without_source, r"the source of f\(\) is not to be had"),
        (lambda: lambda: None, "a lambda cannot be a task"),
        (lambda: print, "is not a function that def makes"),
    ],
)
def test_functions_that_cannot_stand_alone_are_refused(make: Any, says: str) -> None:
    with pytest.raises(AuthoringError, match=says):
        python_task(make())


def _annotated_with_a_list(values: list[int]) -> None:
    print(values)


def _takes_anything(*values: str) -> None:
    print(values)


def _takes_one(value: str) -> None:
    print(value)


@pytest.mark.parametrize(
    ("function", "fixed", "says"),
    [
        (_annotated_with_a_list, {}, "argument 'values' is annotated list"),
        (_takes_anything, {}, r"\*values has no parameters to take"),
        (
            _takes_one,
            {},
            r"wants 'value', but workflow 'w' has no such parameter \(it has values\)",
        ),
        (_takes_one, {"other": 1}, "has no argument other"),
        (_takes_one, {"value": object()}, "cannot be written into a script"),
    ],
)
def test_arguments_that_cannot_be_filled_are_refused(
    function: Any, fixed: dict[str, Any], says: str
) -> None:
    with Workflow("w", parameters={"values": "1"}), pytest.raises(AuthoringError, match=says):
        python_task(function)(**fixed)


def test_unknown_options_and_calls_outside_of_a_workflow_are_refused() -> None:
    with pytest.raises(
        AuthoringError,
        match="unknown option retrys; a task has concurrency_group, delay, depends_on, ",
    ):
        python_task(retrys=3)  # type: ignore[call-overload]  # what a checker would find too
    with pytest.raises(AuthoringError, match="belongs to no workflow"):
        python_task(_takes_one)()
