"""Workflows written in Python: what they mean, and what is refused at once."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.client import (
    AuthoringError,
    Container,
    DataQuality,
    Flink,
    Http,
    MapReduce,
    Parameter,
    Procedure,
    Python,
    Schedule,
    Shell,
    Spark,
    Sql,
    Ssh,
    Task,
    Workflow,
    load_definitions,
)
from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.runtime.documents.yaml_file import read_yaml
from shoal.runtime.documents.yaml_text import definition_yaml
from shoal.runtime.plugins import check_definition


def upstream(workflow: Workflow) -> dict[str, list[str]]:
    """Task -> the tasks it depends on."""
    return {name: list(task.upstream) for name, task in workflow.tasks.items()}


def test_arrows_join_tasks_and_lists_both_ways() -> None:
    with Workflow("w") as w:
        a, b, c, d, e, f = (Shell(name, script="true") for name in "abcdef")
        result = a >> b >> [c, d] >> e
        f << [d, e]
        [a, b] >> f
        [a, b] << Shell("g", script="true")
    assert result is e
    assert upstream(w) == {
        "a": ["g"],
        "b": ["a", "g"],
        "c": ["b"],
        "d": ["b"],
        "e": ["c", "d"],
        "f": ["d", "e", "a", "b"],
        "g": [],
    }


def test_an_edge_that_is_drawn_twice_is_one_edge() -> None:
    with Workflow("w") as w:
        a, b = Shell("a", script="true"), Shell("b", script="true", depends_on="a")
        a >> b
    assert upstream(w)["b"] == ["a"]


def test_depends_on_takes_tasks_and_names_of_later_tasks() -> None:
    with Workflow("w") as w:
        a = Shell("a", script="true", depends_on="later")
        Shell("later", script="true")
        Shell("c", script="true", depends_on=[a, "later"])
    assert upstream(w) == {"a": ["later"], "later": [], "c": ["a", "later"]}


def test_workflow_can_be_passed_and_nested_withs_do_not_mix() -> None:
    outer = Workflow("outer")
    with Workflow("inner") as inner:
        Shell("there", script="true", workflow=outer)
        with outer:
            Shell("here", script="true")
        Shell("back", script="true")
    assert (list(outer.tasks), list(inner.tasks)) == (["there", "here"], ["back"])


def test_all_that_the_model_knows_can_be_said() -> None:
    with Workflow(
        "w",
        project="p",
        description="d",
        parameters={"date": Parameter(dt.date(2013, 1, 1), "date", "day"), "n": 3, "must": None},
        schedules=[
            "0 6 * * *",
            Schedule("0 0 7 * * ?", "Europe/Berlin", {"n": 4}, enabled=False),
            Schedule(
                "30 2 * * *",
                priority="LOW",
                on_gap="skip",
                on_overlap="both",
                start=dt.date(2026, 1, 1),
                end=dt.datetime(2027, 1, 1, 6),
                exclude=[dt.date(2026, 5, 1), "2026-12-25"],
                calendar="closed",
                missed="all",
                missed_window=dt.timedelta(hours=2),
            ),
        ],
        timezone="Europe/Paris",
        priority="HIGH",
        on_failure="fail_fast",
        environment="ml",
    ) as w:
        Shell(
            "a",
            script="true",
            interpreter="bash",
            arguments=["x"],
            description="first",
            enabled=False,
            priority="LOW",
            worker_group="gpu",
            run_when="all_done",
            retries=2,
            retry_delay="10s",
            timeout=dt.timedelta(minutes=5),
        )
        Python("b", script="print()", interpreter="python3", environment="none")
        Spark("c", script="print()", driver_memory="1g", conf={"spark.ui.enabled": "true"})
        Task("d", type="SHELL", script="true", retries=1)
        Task("e", type="SHELL", params={"script": "true"})
        MapReduce("m", jar="/jobs/words.jar", arguments=["in", "out"], conf={"a.b": "1"})
    spec = w.spec()
    a = spec.tasks[0]
    assert (spec.timezone, spec.on_failure, spec.priority.name) == (
        "Europe/Paris",
        "fail_fast",
        "HIGH",
    )
    assert (spec.environment, a.environment, spec.tasks[1].environment) == ("ml", None, "none")
    assert (a.retries, a.retry_delay, a.timeout, a.worker_group) == (2, 10.0, 300.0, "gpu")
    assert (a.run_when, a.enabled, a.priority.name) == ("all_done", False, "LOW")
    assert spec.parameters["date"].default == "2013-01-01"
    assert spec.parameters["must"].default is None
    assert spec.schedules[1].parameters == {"n": "4"}
    last = spec.schedules[2]
    assert (last.priority, last.on_gap, last.on_overlap) == (3, "skip", "both")
    assert (last.start, last.end) == (dt.datetime(2026, 1, 1), dt.datetime(2027, 1, 1, 6))
    assert last.exclude == (dt.date(2026, 5, 1), dt.date(2026, 12, 25))
    assert (last.calendar, last.missed, last.missed_window) == ("closed", "all", 7200)
    assert spec.tasks[3].params == {"script": "true"}
    assert check_definition(w.to_dict()).digest() == spec.digest()


_TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\t"))


@given(
    script=_TEXT.filter(lambda text: text.strip() and "$" not in text),
    value=_TEXT.filter(lambda text: "$" not in text),
    retries=st.integers(0, 100),
    delay=st.floats(0, 1e6, allow_nan=False),
)
def test_yaml_of_a_workflow_is_the_same_definition(
    tmp_path_factory: pytest.TempPathFactory,
    script: str,
    value: str,
    retries: int,
    delay: float,
) -> None:
    with Workflow("w", parameters={"x": value}, description=value) as w:
        Shell("a", script=script, retries=retries, retry_delay=delay, description=value)
        Shell("b", script="true", depends_on="a", arguments=[value])
    file = tmp_path_factory.getbasetemp() / "w.yaml"
    file.write_text(w.to_yaml(), encoding="utf-8", newline="")
    (loaded,) = load_definitions([file]).definitions
    assert loaded.spec == w.spec()
    assert loaded.spec.digest() == w.spec().digest()


def test_texts_of_several_lines_are_blocks_in_yaml() -> None:
    with Workflow("w") as w:
        Shell("a", script="one\ntwo\n")
    assert "      script: |\n        one\n        two\n" in w.to_yaml()


def test_problems_of_a_workflow_carry_file_and_line() -> None:
    with Workflow("w") as w:
        Shell("a", script="true", retries=-1)
    with pytest.raises(InvalidDefinition) as caught:
        w.spec()
    (problem,) = (p for p in caught.value.problems if p.field == "tasks[0].retries")
    line = next(n for n, t in enumerate(Path(__file__).read_text().splitlines(), 1)
                if "retries=-1" in t)  # fmt: skip
    assert (problem.file, problem.line) == (__file__, line)


def test_tasks_that_speak_to_services() -> None:
    with Workflow("w") as w:
        Sql("load", data_source="lake", sql="SELECT ${a}", types={"a": "integer"}, result="row")
        DataQuality(
            "check",
            data_source="lake",
            table="t",
            checks=[{"check": "rows", "min": 1}],
            on_failure="warn",
            retries=2,
        )
        Http("ask", url="https://example.org", deadline="30s", timeout="10m")
        Ssh("far", data_source="farm", script="true", interpreter="bash")
        Ssh("kept", data_source="farm", file="etl/far.sh")
        Procedure("close", data_source="lake", procedure="sales.close", arguments={"n": 3})
        Flink("join", data_source="flows", jar="/jobs/j.jar", arguments=["a"], wait="running")
        Container(
            "box",
            engine="podman",
            image="etl/load:1",
            command=["load", "${day}"],
            mounts=[{"source": "/data", "target": "/in"}],
            memory="64m",
        )
    load, check, ask, far, kept, close, join, box = w.spec().tasks
    assert load.params == {
        "data_source": "lake",
        "sql": "SELECT ${a}",
        "types": {"a": "integer"},
        "result": "row",
    }
    assert (check.type, check.params["on_failure"], check.retries) == ("DATA_QUALITY", "warn", 2)
    assert (ask.params["timeout"], ask.timeout) == ("30s", 600)
    assert far.params == {"data_source": "farm", "script": "true", "interpreter": "bash"}
    assert join.type == "FLINK"
    assert join.params == {
        "data_source": "flows",
        "jar": "/jobs/j.jar",
        "arguments": ["a"],
        "wait": "running",
    }
    assert kept.params == {"data_source": "farm", "file": "etl/far.sh"}
    assert close.type == "PROCEDURE"
    assert close.params == {"data_source": "lake", "name": "sales.close", "arguments": {"n": 3}}
    assert box.type == "CONTAINER"
    assert box.params == {
        "engine": "podman",
        "image": "etl/load:1",
        "command": ["load", "${day}"],
        "mounts": [{"source": "/data", "target": "/in"}],
        "memory": "64m",
    }
    with pytest.raises(AuthoringError, match="exactly one of sql and sql_file"):
        Sql("none", data_source="lake", workflow=Workflow("v"))
    with pytest.raises(AuthoringError, match="checks"):
        DataQuality("none", data_source="lake", table="t", checks=1, workflow=Workflow("v"))  # type: ignore[arg-type]


def test_script_files_are_found_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo hi\n")
    program = tmp_path / "f.py"
    program.write_text(
        "from shoal.client import Shell, Workflow\n"
        "with Workflow('w') as w:\n    Shell('a', script_file='run.sh')\n"
    )
    (loaded,) = load_definitions([program]).definitions
    assert loaded.spec.tasks[0].params["script"] == "echo hi\n"
    program.write_text(program.read_text().replace("run.sh", "nope.sh"))
    with pytest.raises(InvalidDefinition, match=r"f\.py:3: task 'a': there is no file .*nope\.sh"):
        load_definitions([program])


def _two() -> tuple[Task, Task]:
    return (
        Shell("a", script="true", workflow=Workflow("one")),
        Shell("b", script="true", workflow=Workflow("two")),
    )


def _same_name_twice() -> None:
    with Workflow("w"):
        Shell("a", script="true")
        Shell("a", script="true")


def _foreign_edge() -> None:
    a, b = _two()
    a >> b


def _itself() -> None:
    a, _ = _two()
    a >> a


def _no_task() -> None:
    a, _ = _two()
    a >> "b"  # type: ignore[type-var]  # what a checker would find too


def _list_with_a_stranger() -> None:
    a, _ = _two()
    a >> [print]  # type: ignore[type-var]  # what a checker would find too


def _no_workflow() -> None:
    Shell("a", script="true")


def _two_scripts() -> None:
    Shell("a", script="true", script_file="x", workflow=Workflow("w"))


def _no_script() -> None:
    Shell("a", workflow=Workflow("w"))


def _no_plain_value() -> None:
    with Workflow("w") as w:
        Task("a", type="SHELL", script=object())
    w.to_dict()


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (_same_name_twice, "workflow 'w' has a task 'a' already, made at .*test_sdk.py:"),
        (_foreign_edge, "'b' of workflow 'two' cannot depend on 'a', which belongs to .*'one'"),
        (_itself, "task 'a' cannot depend on itself"),
        (_no_task, "joins tasks and lists of tasks, not 'b'"),
        (_list_with_a_stranger, "not <built-in function print>; call it to make its task"),
        (_no_workflow, "task 'a' belongs to no workflow; make it inside `with Workflow"),
        (_two_scripts, "task 'a': give exactly one of script and script_file"),
        (_no_script, "task 'a': give exactly one of script and script_file"),
        (_no_plain_value, "is not text, a number, a truth value, a date, a list or a mapping"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(act: Any, says: str) -> None:
    with pytest.raises(AuthoringError, match=says):
        act()


@pytest.mark.parametrize("text", ["0E0", "1e3", "0o17", "12e03", ".5", "true", "null", "~", "1.10"])
def test_text_that_looks_like_something_else_stays_text_in_yaml(text: str) -> None:
    written = definition_yaml({"text": text})
    problems: list[DefinitionProblem] = []
    (source,) = read_yaml(written, "w.yaml", problems)
    assert not problems
    assert source.value == {"text": text}
